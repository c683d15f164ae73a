"use strict";
// The panels about evidence: what is given and can be switched off, named cases, and what moved most since the reference.
import { acts, bar, button, byName, field, html, openText, percent, select, short, table } from "./dom.js";
import { state, shares } from "./state.js";
import { words } from "./findings.js";
import { NOTHING, compareWith, dropCase, keepCase, readCases, saveCases } from "./cases.js";
import { change, goTo, setFinding, suspend } from "./main.js";
import { paint } from "./zoom.js";
import { showPanel } from "./panel.js";

const MOST_MOVED = 40, PINNED = "what was pinned";

export function evidencePanel() {
  const all = byName(state.evidence, state.suspended), names = Object.keys(all), made = [html("h2", "Evidence")];
  if (!names.length) made.push(html("p", "Nothing is observed yet."));
  else made.push(table(["on", "finding", ""], names.map((name) => {
    const on = html("input", null, { type: "checkbox", "aria-label": `Use ${words(name, all[name])}` });
    on.checked = name in state.evidence;
    on.addEventListener("change", () => suspend(name, !on.checked));
    return [on, button(words(name, all[name]), () => goTo(name), { class: "link" }), button("Remove", () => setFinding(name, null), { "aria-label": `Remove ${words(name, all[name])}` })];
  }), "Evidence"));
  return [...made, ...casesSection()];
}

function casesSection() {
  const name = html("input", null, { type: "text", "aria-label": "Name of the case", placeholder: "a name" });
  const keep = () => { keepCase(name.value.trim() || `Case ${Object.keys(state.cases).length + 1}`); showPanel(); };
  name.addEventListener("keydown", (event) => { if (event.key === "Enter") keep(); });
  const file = html("input", null, { type: "file", accept: ".json,application/json", "aria-label": "Open cases", class: "visually-hidden", tabindex: -1 });
  file.addEventListener("change", async () => { readCases(await openText(file.files[0])); showPanel(); });
  const cases = Object.entries(state.cases), save = button("Save to a file", saveCases);
  save.disabled = !cases.length;
  const rows = cases.map(([label, findings]) => [label, acts(
    button("Open", () => change(findings, {}), { "aria-label": `Open ${label}` }),
    button("Compare", () => compare(label, findings), { "aria-label": `Compare with ${label}`, "aria-pressed": String(Boolean(state.reference && state.reference.label === label)) }),
    button("Drop", () => { dropCase(label); showPanel(); }, { "aria-label": `Drop ${label}` }))]);
  const made = [html("h2", "Cases"), field("Keep this evidence as", name), acts(button("Keep", keep), save, button("Read a file", () => file.click()), file)];
  return rows.length ? [...made, table(["case", ""], rows, "Cases")] : made;
}

async function compare(label, findings) {
  await compareWith(label, findings);
  paint();
  showPanel();
}

// What moved most since the reference: by the largest change of a share, or of a mean in standard deviations.
export function changesPanel() {
  const { reference } = state, rows = reference ? moved(reference.beliefs) : [];
  const labels = [NOTHING, ...Object.keys(state.cases)], shown = reference ? reference.label : NOTHING;
  if (!labels.includes(shown)) labels.push(shown);
  const choice = select("Compare with", labels.map((label) => [label, label]), shown, (label) => compare(label, label === NOTHING ? {} : label === shown ? reference.evidence : state.cases[label]));
  const pin = button("Pin what is now", () => compare(PINNED, state.evidence));
  return [html("h2", "What moved most"), field("Compare with", choice), acts(pin),
    html("p", "Bold bars are now, thin ones below them the reference.", { class: "help" }),
    state.trouble ? html("p", `Nothing is known now: ${state.trouble}`) : rows.length ? table(["node", "before", "now", ""], rows.map((row) => [button(row.label, () => goTo(row.name), { class: "link" }), row.before, row.after, bar(row.now, row.then)]), "What moved most")
      : html("p", "Nothing has moved.")];
}

function moved(before) {
  const rows = state.model.nodes.map((node) => (node.kind === "number" ? movedNumber(node, before[node.name]) : movedShares(node, before[node.name]))).filter(Boolean);
  return rows.filter((row) => row.size > 1e-9).sort((a, b) => b.size - a.size).slice(0, MOST_MOVED);
}

function movedShares(node, then) {
  const now = shares(node.name);
  if (!then || !now.length) return null;
  const gaps = now.map((p, i) => Math.abs(p - then[i])), i = gaps.indexOf(Math.max(...gaps));
  return { name: node.name, label: `${node.name} = ${node.states[i]}`, size: gaps[i], before: percent(then[i]), after: percent(now[i]), then: then[i], now: now[i] };
}

function movedNumber(node, then) {
  const finding = state.evidence[node.name], now = finding ? { mean: finding.number ?? finding.do, std: 0 } : state.beliefs[node.name];
  if (!then || !now) return null;
  const size = Math.min(1, Math.abs(now.mean - then.mean) / (2 * (now.std + then.std) || 1));
  return { name: node.name, label: node.name, size, before: short(then.mean), after: short(now.mean), then: 0, now: size };
}
