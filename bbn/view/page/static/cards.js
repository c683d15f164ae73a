"use strict";
// The cards: a name with a row for each state, a density for a number, what each choice is worth for a decision. Rows are
// made when a card is first large enough to read, so that a thousand nodes open at once.
import { clipped, element, put, putText, shareText, short } from "./dom.js";
import { state, shares, fixedState } from "./state.js";
import { kindOf } from "./findings.js";
import { DensityPlot, dragAlong, summary } from "./density.js";
import { choose, pull, setNumber, tap, toggle } from "./main.js";
import { move, rove } from "./keyboard.js";

export const COLOURS = { belief: "#4878a8", observed: "#b5541c", likely: "#8a6d1f", track: "#eef1f4", edge: "#78828f",
                         head: "#e8eef5", headObserved: "#f7e3d6", ink: "#1b1f24", arc: "#57606a" };
export const cards = new Map();

// A card: its frame and its name. The large name is what shows when the rows are too small to read.
export function drawCard(node, view) {
  const group = element("g", { class: `node ${node.kind}` }, view), rounded = node.kind === "decision" ? 0 : node.kind === "utility" ? 12 : 4;
  const frame = element("rect", { class: "card", width: node.width, height: node.height, rx: rounded, fill: "#ffffff", stroke: COLOURS.edge }, group);
  const title = element("g", { class: "title", tabindex: -1, role: "button", "aria-label": `Choose ${node.name}` }, group);
  element("rect", { class: "hit whole", width: node.width, height: node.height, rx: rounded, fill: "transparent" }, title);
  const head = element("rect", { class: "hit head", x: 0.8, y: 0.8, width: node.width - 1.6, height: state.model.title - 1.6, rx: Math.max(0, rounded - 0.5), fill: COLOURS.head }, title);
  element("text", { class: "small", x: node.width / 2, y: 14, "font-size": 11, "font-weight": 600, "text-anchor": "middle", fill: COLOURS.ink }, title, clipped(node.name));
  const size = Math.min(34, node.height * 0.7, 11 * (node.width - 8) / node.wide);
  element("text", { class: "large", x: node.width / 2, y: node.height / 2 + size * 0.35, "font-size": size, "font-weight": 600, "text-anchor": "middle", fill: COLOURS.ink }, title, clipped(node.name));
  element("title", {}, title, node.description ? `${node.name}: ${node.description}` : node.name);
  title.addEventListener("click", () => choose(node.name));
  title.addEventListener("keydown", (event) => move(event, title, node.name, () => choose(node.name)));
  title.addEventListener("focus", () => rove(title));
  const card = { node, group, frame, head, title, rows: null, plot: null, worth: null, stops: [title], x: node.x, y: node.y, shown: true };
  cards.set(node.name, card);
  return card;
}

// Where a card belongs: where it was moved, or as the network was laid out.
export const placeOf = (node) => state.places.get(node.name) || node;

export function placeCard(card, x, y, shown = true) {
  Object.assign(card, { x, y, shown });
  card.group.setAttribute("transform", `translate(${x} ${y})`);
  card.group.setAttribute("display", shown ? "inline" : "none");
}

export function drawRows(card) {
  const node = card.node, top = state.model.title + 3;
  if (node.kind === "number") {
    card.plot = new DensityPlot(card.group, node.name, 7, top, node.width - 14, state.model.density, (x, dragging) => setNumber(node.name, x, dragging));
    card.worth = element("text", { x: node.width / 2, y: top + state.model.density + state.model.row + 11, "font-size": 10.5, "text-anchor": "middle", fill: COLOURS.ink }, card.group);
    card.rows = [];
  } else if (node.kind === "utility") {
    card.worth = element("text", { x: node.width / 2, y: top + 11, "font-size": 10.5, "text-anchor": "middle", fill: COLOURS.ink }, card.group);
    card.rows = [];
  } else {
    card.rows = Array.from({ length: node.rows }, (_, i) => drawRow(card, i, top + state.model.row * i));
    card.stops.push(...card.rows.map((row) => row.row));
  }
  paintCard(card);
}

function drawRow(card, i, top) {
  const node = card.node, row = element("g", { class: "state", tabindex: -1, role: "button", "aria-pressed": "false" }, card.group);
  const hit = element("rect", { class: "hit", x: 2, y: top, width: node.width - 4, height: state.model.row, fill: "transparent" }, row);
  const label = element("text", { x: 7, y: top + 11, "font-size": 10.5, fill: COLOURS.ink }, row);
  const left = 7 + node.label + 8, width = node.width - left - 7 - node.beside;
  const track = element("rect", { class: "track", x: left, y: top + 3, width, height: 9, fill: COLOURS.track }, row);
  const bar = element("rect", { class: "share", x: left, y: top + 3, width: 0, height: 9, fill: COLOURS.belief }, row);
  const before = element("rect", { class: "before", x: left, y: top + 12, width: 0, height: 1.8, fill: COLOURS.ink }, row);
  const share = element("text", { x: node.width - 7, y: top + 11, "font-size": 9.5, "text-anchor": "end", fill: COLOURS.ink }, row);
  const made = { row, label, track, bar, before, share, width, state: i };
  const act = () => (made.state < 0 ? choose(node.name) : toggle(node.name, made.state));
  row.addEventListener("click", (event) => (tap(event, hit) ? choose(node.name) : act()));
  row.addEventListener("keydown", (event) => move(event, row, node.name, act));
  row.addEventListener("focus", () => rove(row));
  if (node.kind === "chance" && node.states.length > 1) {
    const bars = element("rect", { class: "pull", x: left, y: top, width, height: state.model.row, fill: "transparent" }, row);
    dragAlong(bars, (p, dragging) => { if (made.state >= 0) pull(node.name, made.state, p, dragging); });
  }
  return made;
}

export function paintCard(card) {
  const name = card.node.name, kind = kindOf(state.evidence[name]);
  const colour = kind === "likely" ? COLOURS.likely : kind ? COLOURS.observed : COLOURS.belief;
  put(card.frame, "stroke", kind ? colour : COLOURS.edge);
  put(card.head, "fill", kind ? COLOURS.headObserved : COLOURS.head);
  put(card.group, "data-kind", kind);
  card.group.classList.toggle("chosen", name === state.chosen);
  if (!card.rows || !card.shown) return;
  if (card.plot) { card.plot.paint(); putText(card.worth, summary(name)); }
  else if (card.node.kind === "utility") putText(card.worth, name in state.utilities ? short(state.utilities[name]) : "");
  else if (card.node.kind === "decision" && !kind) paintChoices(card);
  else paintShares(card, colour);
}

function paintShares(card, colour) {
  const name = card.node.name, now = shares(name), then = state.reference && state.reference.beliefs[name], fixed = fixedState(state.evidence[name]);
  shownStates(card.node, now).forEach((i, slot) => {
    const row = card.rows[slot], more = i < 0, p = now[i] || 0;
    row.state = i;
    putText(row.label, more ? `… ${card.node.states.length - card.rows.length + 1} more` : clipped(card.node.states[i]));
    put(row.track, "visibility", more ? "hidden" : "inherit");
    put(row.bar, "width", more ? 0 : row.width * p);
    put(row.bar, "fill", colour);
    put(row.before, "width", then && !more && now.length && Math.abs(then[i] - p) > 1e-6 ? row.width * then[i] : 0);
    putText(row.share, more ? "" : shareText(now, i));
    put(row.row, "aria-pressed", String(i >= 0 && fixed === i));
    put(row.row, "aria-label", more ? `All states of ${name}` : `${name} = ${card.node.states[i]}, ${now.length ? shareText(now, i) : "unknown"}`);
  });
}

// A decision that is open: what each choice is worth, as a bar between the worst and the best.
function paintChoices(card) {
  const name = card.node.name, worths = state.worths[name], best = worths ? Math.max(...worths) : 0;
  const lowest = worths ? Math.min(...worths, 0) : 0, span = Math.max(best, 0) - lowest || 1;
  shownStates(card.node, worths || shares(name)).forEach((i, slot) => {
    const row = card.rows[slot], choice = card.node.states[i], worth = worths ? worths[i] : undefined;
    row.state = i;
    putText(row.label, i < 0 ? "… more" : clipped(choice));
    put(row.bar, "width", i >= 0 && worths ? row.width * (worth - lowest) / span : 0);
    put(row.bar, "fill", worth === best ? COLOURS.belief : COLOURS.edge);
    put(row.before, "width", 0);
    row.row.classList.toggle("best", worth !== undefined && worth === best);
    putText(row.share, worth === undefined ? "" : short(worth));
    put(row.row, "aria-pressed", "false");
    put(row.row, "aria-label", worth === undefined ? `${name} = ${choice}` : `${name} = ${choice}, expected utility ${short(worth)}`);
  });
}

// The states that a card shows, -1 for "more": all, or the most probable of very many.
function shownStates(node, now) {
  const all = node.states.map((_, i) => i);
  if (node.rows === all.length) return all;
  const best = [...all].sort((a, b) => (now[b] || 0) - (now[a] || 0) || a - b).slice(0, node.rows - 1);
  return [...best.sort((a, b) => a - b), -1];
}
