"use strict";
// The panels that ask a further question: the most probable explanation, what moved a node, what to ask next, sensitivity.
import { bar, button, html, short, table } from "./dom.js";
import { state } from "./state.js";
import { ask } from "./ask.js";
import { goTo } from "./main.js";

const MOST_ROWS = 25;
const nodeLink = (name, text = name) => button(text, () => goTo(name), { class: "link" });
const bars = (rows, value) => { const most = Math.max(1e-12, ...rows.map(value)); return (row) => bar(value(row) / most); };

export async function mpePanel() {
  const told = await ask("mpe", { evidence: state.evidence });
  const rows = Object.entries(told.states).map(([name, value]) => [nodeLink(name), typeof value === "number" ? short(value) : value]);
  return [html("h2", "Most probable explanation"), html("p", `ln P = ${told.log_probability.toPrecision(6)}`), table(["node", "state"], rows, "Most probable explanation")];
}

export async function explainPanel() {
  const { steps } = await ask("explain", { target: state.chosen, evidence: state.evidence }), drawn = bars(steps, (step) => step.alone);
  return [html("h2", `What moved ${state.chosen}`), steps.length
    ? table(["finding", "bits", ""], steps.map((step) => [step.finding, step.alone.toPrecision(3), drawn(step)]), `What moved ${state.chosen}`)
    : html("p", "There is no evidence on other nodes yet.")];
}

export async function informationPanel() {
  const told = await ask("information", { target: state.chosen, evidence: state.evidence });
  const rows = told.bits.slice(0, MOST_ROWS), drawn = bars(rows, (row) => row[1]), title = `What would tell most about ${state.chosen}`;
  return [html("h2", title), table(["node", "bits", ""], rows.map((row) => [nodeLink(row[0]), row[1].toPrecision(3), drawn(row)]), title)];
}

export async function sensitivityPanel() {
  const name = state.chosen, finding = state.evidence[name], now = state.beliefs[name] || [];
  if (finding && !("virtual" in finding || "soft" in finding)) return [html("p", `${name} is observed; choose a node that is not.`)];
  if (!now.length) return [html("p", state.trouble)];
  const likely = now.indexOf(Math.max(...now)), told = await ask("sensitivity", { target: name, state: likely, evidence: state.evidence });
  const drawn = bars(told.entries, (entry) => Math.abs(entry.derivative)), title = `P(${name} = ${state.nodes.get(name).states[likely]}) by table entry`;
  return [html("h2", title), table(["entry", "slope", ""], told.entries.map((entry) => [entry.name, entry.derivative.toPrecision(3), drawn(entry)]), title)];
}
