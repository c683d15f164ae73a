"use strict";
// Findings: { state: i }, { do: i or x }, { virtual: [weights] }, { soft: [shares] }, { number: x }. In files states go by
// their names; links hold indices.
import { state } from "./state.js";
import { byName, percent, short } from "./dom.js";

const isWeights = (w, n) => Array.isArray(w) && w.length === n && w.every((x) => Number.isFinite(x) && x >= 0) && w.some((x) => x > 0);

export function isFinding(node, finding) {
  if (!node || node.kind === "utility" || !finding || typeof finding !== "object" || Object.keys(finding).length !== 1) return false;
  if (node.kind === "number") return Number.isFinite(finding.number) || Number.isFinite(finding.do);
  const code = (i) => Number.isInteger(i) && i >= 0 && i < node.states.length, n = node.states.length;
  if (node.kind === "decision") return code(finding.state);
  return code(finding.state) || code(finding.do) || isWeights(finding.virtual, n) ||
    (isWeights(finding.soft, n) && Math.abs(finding.soft.reduce((a, b) => a + b) - 1) < 1e-6);
}

export const ruledOut = (node, i) => ({ virtual: node.states.map((_, j) => Number(j !== i)) });
export const sameFinding = (one, other) => JSON.stringify(one) === JSON.stringify(other);
export const kindOf = (finding) => (!finding ? "" : "virtual" in finding || "soft" in finding ? "likely" : "do" in finding ? "done" : "observed");

// What a finding says, in words.
export function words(name, finding) {
  const node = state.nodes.get(name), states = node.states, named = (value) => (node.kind === "number" ? short(value) : states[value]);
  if ("state" in finding) return `${name} = ${states[finding.state]}`;
  if ("number" in finding) return `${name} = ${short(finding.number)}`;
  if ("do" in finding) return `do ${name} = ${named(finding.do)}`;
  if ("soft" in finding) return `${name} is ` + states.map((s, i) => `${s} ${percent(finding.soft[i])}`).join(", ");
  const zero = finding.virtual.indexOf(0);
  if (zero >= 0 && sameFinding(finding, ruledOut(node, zero)) && states.length > 1) return `${name} is not ${states[zero]}`;
  return `${name} ~ ` + states.map((s, i) => `${s} ${short(finding.virtual[i])}`).join(", ");
}

// The soft finding in which one state has a share and the others keep their proportions.
export function pulled(shares, i, share) {
  const rest = shares.reduce((sum, p, j) => (j === i ? sum : sum + p), 0), others = shares.length - 1;
  const soft = shares.map((p, j) => (j === i ? share : rest > 0 ? (p / rest) * (1 - share) : (1 - share) / others));
  const total = soft.reduce((a, b) => a + b);
  return { soft: soft.map((p) => p / total) };
}

// Findings with the names of states, for files that people read.
export function toFile(findings) {
  const named = (name, finding) => {
    const { states, kind } = state.nodes.get(name), [key, value] = Object.entries(finding)[0];
    if (kind === "number") return finding;
    return { [key]: Array.isArray(value) ? Object.fromEntries(states.map((s, i) => [s, value[i]])) : states[value] };
  };
  return Object.fromEntries(Object.entries(findings).map(([name, finding]) => [name, named(name, finding)]));
}

// And back. What is not a finding stays as it is, for `known` to refuse.
export function fromFile(findings) {
  const code = (states, value) => (typeof value === "number" ? value : states.indexOf(value));
  const coded = (name, finding) => {
    const node = state.nodes.get(name);
    if (!node || !finding || typeof finding !== "object" || node.kind === "number") return finding;
    return Object.fromEntries(Object.entries(finding).map(([key, value]) =>
      [key, value && typeof value === "object" && !Array.isArray(value) ? node.states.map((s) => value[s]) : Array.isArray(value) ? value : code(node.states, value)]));
  };
  if (!findings || typeof findings !== "object" || Array.isArray(findings)) return findings;
  return Object.fromEntries(Object.entries(findings).map(([name, finding]) => [name, coded(name, finding)]));
}

// The findings that this network knows, and a complaint about the others.
export function known(read, where) {
  if (!read || typeof read !== "object" || Array.isArray(read)) return { findings: byName(), complaint: `${where} holds no evidence that can be read` };
  const findings = byName(), unknown = [];
  for (const [name, finding] of Object.entries(read)) {
    if (isFinding(state.nodes.get(name), finding)) findings[name] = finding; else unknown.push(name);
  }
  return { findings, complaint: unknown.length ? `${where} has evidence that this network does not: ${unknown.slice(0, 5).join(", ")}` : "" };
}

export function toLink(findings) {
  return Object.keys(findings).length ? "#e=" + encodeURIComponent(JSON.stringify(findings)) : "";
}

export function fromLink(hash) {
  if (!hash.startsWith("#e=")) return { findings: byName(), complaint: "" };
  let read = null;
  try { read = JSON.parse(decodeURIComponent(hash.slice(3))); } catch { /* known() says so */ }
  return known(read, "the link");
}
