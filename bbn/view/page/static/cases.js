"use strict";
// Named cases: evidence under a name, kept in the page, saved to a file and read back; and what cards are compared with.
import { byName, say, saveText } from "./dom.js";
import { state, fixedState } from "./state.js";
import { fromFile, known, toFile } from "./findings.js";
import { ask } from "./ask.js";

export const NOTHING = "no evidence";

export function keepCase(name) {
  state.cases = byName(state.cases, { [name]: byName(state.evidence) });
}

export function dropCase(name) {
  const rest = byName(state.cases);
  delete rest[name];
  state.cases = rest;
}

export function casesText() {
  const cases = Object.fromEntries(Object.entries(state.cases).map(([name, findings]) => [name, toFile(findings)]));
  return JSON.stringify({ network: state.model.name, cases }, null, 1) + "\n";
}

export function saveCases() {
  saveText(casesText(), `${state.model.name || "network"}-cases.json`, "application/json");
}

// Take the cases of a file; what is wrong with it is said, and what this network knows is kept.
export function readCases(text) {
  let read = null;
  try { read = JSON.parse(text).cases; } catch { /* said below */ }
  if (!read || typeof read !== "object" || Array.isArray(read)) { say("the file holds no cases that can be read", true); return; }
  const complaints = [], taken = byName();
  for (const [name, findings] of Object.entries(read)) {
    const one = known(fromFile(findings), `case ${name}`);
    taken[name] = one.findings;
    if (one.complaint) complaints.push(one.complaint);
  }
  state.cases = byName(state.cases, taken);
  say(complaints[0] || `${Object.keys(taken).length} cases read`, complaints.length > 0);
}

// The beliefs under some evidence, observed nodes among them.
export async function beliefsUnder(evidence) {
  const { beliefs } = await ask("beliefs", { evidence }), made = byName(beliefs);
  for (const [name, finding] of Object.entries(evidence)) {
    const { states } = state.nodes.get(name), fixed = fixedState(finding);
    if (fixed !== undefined && states.length) made[name] = states.map((_, i) => Number(i === fixed));
  }
  return made;
}

export async function compareWith(label, evidence) {
  state.reference = { label, evidence: byName(evidence), beliefs: await beliefsUnder(evidence) };
}
