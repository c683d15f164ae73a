"use strict";
// What the page knows: the network, the evidence and its history, the beliefs now and those they are compared with.

export const state = {
  model: null,
  nodes: new Map(),      // name to node
  evidence: {},          // name to finding
  suspended: {},         // findings that are switched off
  beliefs: {},           // name to shares, or to a density
  worths: {},            // decision to what each choice is worth
  utilities: {},         // utility to what it is expected to come to
  reference: null,       // { label, beliefs } that cards show as thin bars
  cases: {},             // name to findings
  chosen: null,
  tab: "node",
  focus: null,           // null, or { kind, steps, name }
};

const past = [], future = [];

export function takeModel(model) {
  state.model = model;
  state.nodes = new Map(model.nodes.map((node) => [node.name, node]));
}

const snapshot = () => JSON.stringify([state.evidence, state.suspended]);
const restore = (text) => { [state.evidence, state.suspended] = JSON.parse(text); };

// New evidence; while a bar is dragged, only the first change is one to go back to.
export function setEvidence(evidence, suspended = state.suspended, dragging = false) {
  if (!dragging) { past.push(snapshot()); future.length = 0; }
  state.evidence = evidence;
  state.suspended = suspended;
}

// An edit of the network is one step among those of the evidence.
export function noteEdit() { past.push("edit"); future.length = 0; }

// Go back (or forth): what is to be undone is evidence, or "edit" for the network itself; null if there is nothing.
export function goBack() { return stepHistory(past, future); }
export function goForth() { return stepHistory(future, past); }
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

function stepHistory(source, other) {
  const top = source.pop();
  if (top === undefined) return null;
  if (top === "edit") { other.push("edit"); return "edit"; }
  other.push(snapshot());
  restore(top);
  return "evidence";
}

// The share of each state: of an observed node 0 and 1.
export function shares(name) {
  const finding = state.evidence[name], states = state.nodes.get(name).states, fixed = fixedState(finding);
  return fixed !== undefined && states.length ? states.map((_, i) => Number(i === fixed)) : state.beliefs[name] || [];
}

// The state that a finding fixes, by observing or doing.
export const fixedState = (finding) => (finding ? finding.state ?? finding.do : undefined);

export const parentsOf = (name) => state.model.arcs.filter((arc) => arc.child === name).map((arc) => arc.parent);
export const childrenOf = (name) => state.model.arcs.filter((arc) => arc.parent === name).map((arc) => arc.child);
