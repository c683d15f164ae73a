"use strict";
// Editing, where the page was served with it: move cards, rename, change rows of tables, add and remove nodes and arcs, save
// as YAML. Each edit is a new network in Python; undo goes back. What the page knows of a node goes along when it is renamed.
import { $, acts, button, byName, field, html, say, saveText, select } from "./dom.js";
import { state, noteEdit, parentsOf, childrenOf, takeEvidence, takeModel } from "./state.js";
import { known } from "./findings.js";
import { ask } from "./ask.js";
import { cards, placeCard } from "./cards.js";
import { placeArcs } from "./arcs.js";
import { NOTHING, compareWith } from "./cases.js";
import { drawPicture, picture, reveal } from "./zoom.js";
import { showPanel } from "./panel.js";
import { update } from "./main.js";

const NUDGE = 10, OFF = 1e-9;
const KEEPS_ROWS = ["rename", "relabel", "row"];  // edits after which the rows of tables are what they were

// Edit the network; `undone` is the step of the history, where one is undone or done again.
export async function edit(request, chosen = state.chosen, undone = null) {
  try {
    const told = await ask("edit", request);
    if (!undone) noteEdit();
    if (told.renamed) renamed(...told.renamed);
    else if (!KEEPS_ROWS.includes(request.op)) state.drafts.clear();
    takeModel(told.model);
    if (undone) takeEvidence(undone);
    await redraw(told.renamed && chosen === told.renamed[0] ? told.renamed[1] : chosen);
  } catch (error) { say(error.message, true); }
}

// What is known of a node, under its new name.
function renamed(from, to) {
  const moved = (findings) => byName(Object.fromEntries(Object.entries(findings).map(([name, finding]) => [name === from ? to : name, finding])));
  for (const key of ["evidence", "suspended"]) state[key] = moved(state[key]);
  for (const name of Object.keys(state.cases)) state.cases[name] = moved(state.cases[name]);
  state.reference.evidence = moved(state.reference.evidence);
  for (const kept of [state.places, state.drafts]) {
    if (kept.has(from)) kept.set(to, kept.get(from));
    kept.delete(from);
  }
}

// Draw the new network, keeping what was moved, what is looked at, and the evidence that it still knows.
async function redraw(chosen) {
  const { model, reference } = state, place = picture.place, before = cards.size;
  state.evidence = known(state.evidence, "").findings;
  state.suspended = known(state.suspended, "").findings;
  state.chosen = state.nodes.has(chosen) ? chosen : null;
  state.focus = null;
  $("focus").hidden = true;
  drawPicture();
  if (model.nodes.length === before) d3.select(picture.svg).call(picture.zoomer.transform, place);
  for (const card of cards.values()) movable(card);
  await compareWith(reference.label, known(reference.evidence, "").findings).catch(() => compareWith(NOTHING, {}));
  await update();
  showPanel(true);
}

export function startEdit() {
  $("edit-tools").hidden = false;
  $("add-node").addEventListener("click", addNode);
  $("save-yaml").addEventListener("click", async () => saveText((await ask("yaml", {})).text, `${state.model.name || "network"}.yaml`, "application/yaml"));
  for (const card of cards.values()) movable(card);
}

function addNode() {
  const taken = (name) => state.nodes.has(name);
  let n = 1;
  while (taken(`Node${n}`)) n++;
  return edit({ op: "add_node", name: `Node${n}`, states: ["yes", "no"] }, `Node${n}`).then(() => { if (state.nodes.has(`Node${n}`)) reveal(`Node${n}`); });
}

// What can be changed of a node, in its panel.
export function editSection(node) {
  const text = (value, label, act) => {
    const input = html("input", null, { type: "text", value, "aria-label": label });
    input.value = value;
    input.addEventListener("change", () => { if (input.value.trim() && input.value !== value) act(input.value.trim()); });
    return input;
  };
  const rename = (to) => edit({ op: "rename", name: node.name, to });
  const states = node.states.map((label, i) => field(`State ${i + 1}`, text(label, `State ${i + 1}`, (to) => edit({ op: "relabel", name: node.name, state: i, to }))));
  const others = state.model.nodes.map((other) => other.name).filter((name) => name !== node.name && !parentsOf(node.name).includes(name) && !childrenOf(node.name).includes(name));
  const parent = select("New parent", [["", "choose …"], ...others.map((name) => [name, name])], "", (name) => { if (name) edit({ op: "add_arc", parent: name, child: node.name }); });
  const cut = parentsOf(node.name).map((name) => button(`Remove arc from ${name}`, () => edit({ op: "remove_arc", parent: name, child: node.name })));
  return [html("h3", "Edit"), field("Name", text(node.name, "Name", rename)), ...states, field("Add a parent", parent),
    acts(...cut, button("Remove this node", () => edit({ op: "remove_node", name: node.name }, null)))];
}

// The cells of a row as inputs, with a check of their sum, and a button that changes the table.
export function editRow(node, codes, values) {
  const key = codes.join(), draft = (state.drafts.get(node.name) || {})[key];
  const inputs = values.map((value, i) => {
    const input = html("input", null, { type: "number", min: 0, max: 1, step: "any", "aria-label": `P(${node.states[i]})`, class: "cell" });
    input.value = draft && draft.length === values.length ? draft[i] : value;
    return input;
  });
  const set = button("Set", () => { keep(false); edit({ op: "row", name: node.name, codes, values: numbers() }); }), sum = html("span", "", { class: "sum", role: "status" });
  const numbers = () => inputs.map((input) => Number(input.value));
  const keep = (typed) => state.drafts.set(node.name, { ...state.drafts.get(node.name), [key]: typed ? inputs.map((input) => input.value) : null });
  const check = () => {
    const total = numbers().reduce((a, b) => a + b, 0), right = Math.abs(total - 1) <= OFF && numbers().every((p) => p >= 0);
    set.disabled = !right || numbers().every((p, i) => p === values[i]);
    sum.textContent = right ? "" : `sum ${Number(total.toPrecision(6))}`;
    for (const input of inputs) input.setAttribute("aria-invalid", String(!right));
  };
  for (const input of inputs) {
    input.addEventListener("input", () => { keep(true); check(); });
    input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !set.disabled) set.click(); });
  }
  check();
  const end = html("span", null, { class: "acts" });
  end.append(set, sum);
  return [...inputs, end];
}

// Cards move by dragging their names, or by Alt with an arrow.
function movable(card) {
  card.title.classList.add("movable");
  card.title.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const from = [event.clientX, event.clientY], start = [card.x, card.y], k = picture.place.k;
    let dragged = false;
    const move = (moved) => {
      const [dx, dy] = [moved.clientX - from[0], moved.clientY - from[1]];
      if (!dragged && Math.hypot(dx, dy) < 4) return;
      dragged = true;
      moveCard(card, start[0] + dx / k, start[1] + dy / k);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", () => {
      window.removeEventListener("pointermove", move);
      if (dragged) window.addEventListener("click", (click) => click.stopPropagation(), { capture: true, once: true });
    }, { once: true });
  });
}

function moveCard(card, x, y) {
  placeCard(card, x, y);
  state.places.set(card.node.name, { x, y });
  placeArcs();
}

export function nudge(event, name) {
  const by = { ArrowLeft: [-NUDGE, 0], ArrowRight: [NUDGE, 0], ArrowUp: [0, -NUDGE], ArrowDown: [0, NUDGE] }[event.key];
  if (!by || !state.model.edit) return false;
  event.preventDefault();
  const card = cards.get(name);
  moveCard(card, card.x + by[0], card.y + by[1]);
  return true;
}
