"use strict";
// What the page knows: the network, the evidence and its history, the beliefs now and those they are compared with.
import { byName } from "./dom.js";

export const state = {
  model: null,
  nodes: new Map(),      // name to node
  evidence: byName(),    // name to finding
  suspended: byName(),   // findings that are switched off
  beliefs: byName(),     // name to shares, or to a density; none where the evidence has no answer
  worths: byName(),      // decision to what each choice is worth
  utilities: byName(),   // utility to what it is expected to come to
  trouble: "",           // why there are no beliefs
  reference: null,       // { label, beliefs } that cards show as thin bars
  cases: byName(),       // name to findings
  places: new Map(),     // name to where its card was moved
  drafts: new Map(),     // name to rows of its table that were typed and not yet set
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
const restore = (text) => { [state.evidence, state.suspended] = JSON.parse(text).map((findings) => byName(findings)); };

// New evidence; while a bar is dragged, only the first change is one to go back to.
export function setEvidence(evidence, suspended = state.suspended, dragging = false) {
  if (!dragging) { past.push(snapshot()); future.length = 0; }
  state.evidence = byName(evidence);
  state.suspended = byName(suspended);
}

// An edit of the network is one step among those of the evidence; with it the evidence before it is kept.
export function noteEdit() { past.push({ before: snapshot() }); future.length = 0; }

// The edits that Python has kept from before the page was opened, to go back to and forth.
export function takeHistory(back, forth) {
  past.push(...Array.from({ length: back }, () => ({ before: null })));
  future.push(...Array.from({ length: forth }, () => ({ before: null })));
}

// Go back (or forth): what is undone is "evidence", or an edit of the network, with the evidence from before it if that
// is known; null if there is nothing.
export function goBack() { return stepHistory(past, future); }
export function goForth() { return stepHistory(future, past); }
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

function stepHistory(source, other) {
  const top = source.pop();
  if (top === undefined) return null;
  if (typeof top !== "string") { other.push({ before: snapshot() }); return top; }
  other.push(snapshot());
  restore(top);
  return "evidence";
}

// The evidence of an edit that is undone.
export function takeEvidence({ before }) { if (before) restore(before); }

// The share of each state: of an observed node 0 and 1.
export function shares(name) {
  const finding = state.evidence[name], states = state.nodes.get(name).states, fixed = fixedState(finding);
  return fixed !== undefined && states.length ? states.map((_, i) => Number(i === fixed)) : state.beliefs[name] || [];
}

// The same, where nothing is known all states alike: what dragging a bar starts from.
export function sharesOrEven(name) {
  const now = shares(name), { states } = state.nodes.get(name);
  return now.length ? now : states.map(() => 1 / states.length);
}

// The state that a finding fixes, by observing or doing.
export const fixedState = (finding) => (finding ? finding.state ?? finding.do : undefined);

export const parentsOf = (name) => state.model.arcs.filter((arc) => arc.child === name).map((arc) => arc.parent);
export const childrenOf = (name) => state.model.arcs.filter((arc) => arc.parent === name).map((arc) => arc.child);
