"use strict";
// The arcs: curves behind the cards. Where a node is set from outside, the arcs into it are dashed and cut by scissors.
import { element } from "./dom.js";
import { state } from "./state.js";
import { cards, COLOURS } from "./cards.js";

const SCISSORS = "M-6.5 -4.2 a2.4 2.4 0 1 0 .01 0 M-6.5 4.2 a2.4 2.4 0 1 0 .01 0 M-4.6 -0.4 L9 5 M-4.6 0.4 L9 -5";
const links = [];

export function drawArc(arc, view) {
  const group = element("g", { class: "link", "data-parent": arc.parent, "data-child": arc.child }, view);
  const observes = state.nodes.get(arc.child).kind === "decision";
  const line = element("path", { class: observes ? "arc observes" : "arc", fill: "none", stroke: COLOURS.arc, "stroke-width": 1.2 }, group);
  if (observes) line.setAttribute("stroke-dasharray", "5 4");
  element("title", {}, line, observes ? `${arc.child} observes ${arc.parent}` : `${arc.parent} → ${arc.child}`);
  const head = element("polygon", { class: "arrow", fill: COLOURS.arc }, group);
  links.push({ arc, group, line, head, scissors: null, cut: false });
}

export function forgetArcs() { links.length = 0; }

// Put every arc where its cards are: as laid out, or as a plain curve where one of them was moved.
export function placeArcs() {
  for (const link of links) {
    const from = cards.get(link.arc.parent), to = cards.get(link.arc.child), shown = from.shown && to.shown;
    link.group.setAttribute("display", shown ? "inline" : "none");
    if (!shown) continue;
    const still = (card) => card.x === card.node.x && card.y === card.node.y;
    const drawn = still(from) && still(to) && link.arc.path ? link.arc : between(from, to);
    link.line.setAttribute("d", drawn.path);
    link.head.setAttribute("points", drawn.head);
    placeScissors(link);
  }
}

function between(from, to) {
  const x0 = from.x + from.node.width / 2, y0 = from.y + from.node.height, x1 = to.x + to.node.width / 2, y1 = to.y;
  const bend = Math.max(18, Math.abs(y1 - y0) / 2);
  return { path: `M${x0} ${y0} C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1}`, head: `${x1},${y1} ${x1 - 3.5},${y1 - 8} ${x1 + 3.5},${y1 - 8}` };
}

export function paintArcs() {
  for (const link of links) {
    const cut = "do" in (state.evidence[link.arc.child] || {});
    if (cut === link.cut) continue;
    link.cut = cut;
    link.group.classList.toggle("cut", cut);
    placeScissors(link);
  }
}

function placeScissors(link) {
  if (link.scissors) { link.scissors.remove(); link.scissors = null; }
  if (!link.cut) return;
  const length = link.line.getTotalLength(), middle = link.line.getPointAtLength(length / 2), after = link.line.getPointAtLength(length / 2 + 1);
  const angle = Math.atan2(after.y - middle.y, after.x - middle.x) * 180 / Math.PI + 90;
  link.scissors = element("g", { class: "scissors", transform: `translate(${middle.x} ${middle.y}) rotate(${angle})` }, link.group);
  element("circle", { r: 10, fill: "#ffffff", class: "behind" }, link.scissors);
  element("path", { d: SCISSORS, fill: "none", stroke: COLOURS.observed, "stroke-width": 1.6 }, link.scissors);
  element("title", {}, link.scissors, `${link.arc.parent} → ${link.arc.child} is cut: ${link.arc.child} is set from outside`);
}
