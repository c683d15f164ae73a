"use strict";
// The panel of one node: its beliefs, evidence on it by buttons and bars, its neighbours, its slices in time, its table.
import { acts, bar, button, copyText, element, field, html, percent, select, shareText, short, table } from "./dom.js";
import { state, shares, sharesOrEven, parentsOf, childrenOf } from "./state.js";
import { kindOf, pulled, ruledOut, sameFinding, words } from "./findings.js";
import { DensityPlot, dragAlong, summary } from "./density.js";
import { FOCUS_KINDS, setFocus } from "./focus.js";
import { goTo, setFinding, setNumber } from "./main.js";
import { tableSection } from "./table_panel.js";
import { editSection } from "./edit.js";

let barMode = "soft";  // what dragging a bar says: the belief itself, or the likelihood of what was seen

// The elements of the panel, and how to bring them up to date while they are used.
export function nodePanel() {
  const node = state.nodes.get(state.chosen), made = [html("h2", node.name)], refreshers = [];
  const add = ({ elements, refresh }) => { made.push(...elements); if (refresh) refreshers.push(refresh); };
  if (node.description) made.push(html("p", node.description, { class: "description" }));
  if (node.kind === "number") add(numberSection(node));
  else if (node.kind === "utility") add(utilitySection(node));
  else if (node.kind === "decision") add(choiceSection(node));
  else add(stateSection(node));
  if (node.slice) add(sliceSection(node));
  made.push(neighbours("Parents", parentsOf(node.name)), neighbours("Children", childrenOf(node.name)), focusField(node));
  add(tableSection(node));
  if (state.model.edit) made.push(...editSection(node));
  return { elements: made, refresh: () => refreshers.forEach((refresh) => refresh()) };
}

// A row for each state: see it, rule it out, do it, or drag its bar.
function stateSection(node) {
  const list = html("ul", null, { class: "states" }), can = state.model.kind === "network";
  const rows = node.states.map((label, i) => {
    const line = html("li"), share = html("output", "", { class: "number" });
    const slider = html("input", null, { type: "range", min: 0, max: 1, step: "any" });
    slider.addEventListener("input", () => drag(i, slider.dataset.dragging === "yes", slider));
    slider.addEventListener("change", () => { slider.dataset.dragging = ""; });
    const wanted = { see: { state: i }, not: ruledOut(node, i), do: { do: i } };
    const labels = { see: `Observe ${label}`, not: `Rule out ${label}`, do: `Do ${label}` };
    const buttons = Object.keys(wanted).filter((key) => key !== "do" || can).map((key) => {
      const made = button(key, () => setFinding(node.name, sameFinding(state.evidence[node.name], wanted[key]) ? null : wanted[key]), { "aria-label": labels[key] });
      return [made, wanted[key]];
    });
    line.append(html("span", label, { class: "label" }), share, slider);
    if (node.states.length > 1) line.append(acts(...buttons.map(([made]) => made)));
    list.append(line);
    return { slider, share, buttons, label };
  });
  const drag = (i, dragging, slider) => {
    slider.dataset.dragging = "yes";
    const value = Number(slider.value);
    if (barMode === "soft") { setFinding(node.name, pulled(sharesOrEven(node.name), i, value), dragging); return; }
    const virtual = weights().map((w, j) => (j === i ? value : w));
    if (virtual.some((w) => w > 0)) setFinding(node.name, virtual.every((w) => w === virtual[0]) ? null : { virtual }, dragging);
  };
  const weights = () => (state.evidence[node.name] || {}).virtual || node.states.map(() => 1);
  const told = html("p", "", { class: "help" });
  const mode = select("What bars set", [["soft", "my belief (soft evidence)"], ["virtual", "the likelihood of what I saw (virtual evidence)"]], barMode,
    (value) => { barMode = value; refresh(); });
  const copy = button("Copy numbers", () => copyText(node.states.map((label, i) => `${label}\t${shares(node.name)[i] ?? ""}`).join("\n"), "numbers copied"));
  const remove = button("Take back", () => setFinding(node.name, null));
  function refresh() {
    const now = shares(node.name), finding = state.evidence[node.name];
    rows.forEach(({ slider, share, buttons, label }, i) => {
      const value = barMode === "soft" ? now[i] || 0 : weights()[i];
      if (slider.dataset.dragging !== "yes") slider.value = value;
      slider.setAttribute("aria-label", `${barMode === "soft" ? "Belief in" : "Likelihood of"} ${label}`);
      slider.setAttribute("aria-valuetext", barMode === "soft" ? percent(value) : short(value));
      slider.style.setProperty("--at", `${100 * Math.min(1, value)}%`);
      share.textContent = shareText(now, i);
      for (const [made, wanted] of buttons) made.setAttribute("aria-pressed", String(sameFinding(finding, wanted)));
    });
    list.dataset.kind = kindOf(finding);
    remove.disabled = !finding;
    told.textContent = finding ? words(node.name, finding) : "See observes a state, not rules it out" + (can ? ", do sets it from outside and cuts its arcs." : ".");
  }
  refresh();
  return { elements: [list, told, field("Bars set", mode), acts(copy, remove)], refresh };
}

// The density, with a number to enter or to drag along the axis.
function numberSection(node) {
  const svg = element("svg", { class: "density", viewBox: "0 0 320 120", role: "img", "aria-label": `The density of ${node.name}` });
  const plot = new DensityPlot(svg, node.name, 6, 6, 308, 96, () => {});
  dragAlong(plot.hit, (share, dragging) => {
    if (plot.range) setNumber(node.name, plot.range[0] + share * (plot.range[1] - plot.range[0]), dragging);
  }, true);
  const input = html("input", null, { type: "number", step: "any" }), told = html("p", "", { class: "numbers" });
  const enter = (kind) => { if (input.value !== "" && Number.isFinite(Number(input.value))) setFinding(node.name, { [kind]: Number(input.value) }); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") enter("number"); });
  const remove = button("Take back", () => setFinding(node.name, null)), can = state.model.kind === "network";
  const copy = button("Copy numbers", () => { const b = state.beliefs[node.name]; copyText(b ? `mean\t${b.mean}\nstd\t${b.std}` : String(input.value), "numbers copied"); });
  function refresh() {
    const finding = state.evidence[node.name];
    plot.paint();
    told.textContent = finding ? words(node.name, finding) : `mean ± standard deviation: ${summary(node.name) || "–"}`;
    if (document.activeElement !== input) input.value = finding ? finding.number ?? finding.do : "";
    remove.disabled = !finding;
  }
  refresh();
  const buttons = [button("see", () => enter("number"), { "aria-label": "Observe this number" })];
  if (can) buttons.push(button("do", () => enter("do"), { "aria-label": "Do this number" }));
  return { elements: [svg, told, field("Number", input), acts(...buttons, remove, copy)], refresh };
}

// What each choice is worth, as bars; a click makes the choice.
function choiceSection(node) {
  const list = html("ul", null, { class: "states" }), told = html("p", "", { class: "help" });
  const rows = node.states.map((label, i) => {
    const line = html("li"), worth = html("output", "", { class: "number" }), bars = html("span", null, { class: "worth" });
    const made = button("choose", () => setFinding(node.name, sameFinding(state.evidence[node.name], { state: i }) ? null : { state: i }), { "aria-label": `Choose ${label}` });
    line.append(html("span", label, { class: "label" }), worth, bars, acts(made));
    list.append(line);
    return { line, worth, bars, made };
  });
  function refresh() {
    const worths = state.worths[node.name], finding = state.evidence[node.name], best = worths ? Math.max(...worths) : 0, lowest = worths ? Math.min(...worths, 0) : 0;
    rows.forEach(({ line, worth, bars, made }, i) => {
      worth.textContent = worths ? short(worths[i]) : finding ? "" : shareText(shares(node.name), i);
      bars.replaceChildren(bar(worths ? (worths[i] - lowest) / (Math.max(best, 0) - lowest || 1) : shares(node.name)[i] || 0));
      line.classList.toggle("best", Boolean(worths && worths[i] === best));
      made.setAttribute("aria-pressed", String(sameFinding(finding, { state: i })));
    });
    told.textContent = finding ? `${words(node.name, finding)} is decided` : worths
      ? "What each choice is worth, the other decisions being made as well as can be. The table says what to choose when."
      : "How often each choice is made under the best policy; the table says when.";
  }
  refresh();
  return { elements: [list, told], refresh };
}

function utilitySection(node) {
  const told = html("p", "", { class: "numbers" });
  const refresh = () => { told.textContent = node.name in state.utilities ? `expected: ${short(state.utilities[node.name])}` : "a sum or product of other utilities"; };
  refresh();
  return { elements: [told], refresh };
}

// The same variable in every slice of time.
function sliceSection(node) {
  const slices = state.model.nodes.filter((other) => other.slice && other.slice[0] === node.slice[0]).sort((a, b) => a.slice[1] - b.slice[1]);
  const holder = html("div"), label = `${node.slice[0]} over time`;
  function refresh() {
    const step = (other) => button(String(other.slice[1]), () => goTo(other.name), { class: "link", "aria-label": `Go to ${other.name}`, ...(other === node ? { "aria-current": "true" } : {}) });
    const rows = slices.map((other) => (other.kind === "number" ? [step(other), summary(other.name)]
      : [step(other), shareText(shares(other.name), 0), bar(shares(other.name)[0] || 0, state.reference ? (state.reference.beliefs[other.name] || [0])[0] : null)]));
    holder.replaceChildren(table(node.kind === "number" ? ["step", "mean ± std"] : ["step", node.states[0], ""], rows, label));
  }
  refresh();
  return { elements: [html("h3", label), holder], refresh };
}

function neighbours(title, names) {
  const made = html("p", `${title}: `);
  if (!names.length) made.append("none");
  for (const name of names) made.append(button(name, () => goTo(name), { class: "link" }), " ");
  return made;
}

function focusField(node) {
  const now = state.focus && state.focus.name === node.name ? state.focus.kind : "all";
  return field("Show", select(`Show around ${node.name}`, FOCUS_KINDS, now, (kind) => setFocus(node.name, kind)));
}
