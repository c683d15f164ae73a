"use strict";
// The panels beside the picture, one shown at a time, under tabs.
import { $, html } from "./dom.js";
import { state } from "./state.js";
import { nodePanel } from "./node_panel.js";
import { changesPanel, evidencePanel } from "./evidence_panel.js";
import { explainPanel, informationPanel, mpePanel, sensitivityPanel } from "./answer_panels.js";
import { openSheet } from "./sheet.js";

const PANELS = { node: nodePanel, evidence: evidencePanel, changes: changesPanel, mpe: mpePanel, explain: explainPanel, information: informationPanel, sensitivity: sensitivityPanel };
const ALWAYS = new Set(["mpe", "evidence", "changes"]);  // panels that need no chosen node
let drawing = 0, shown = null;  // shown: what the node panel is of, and how to refresh it

export function startPanels() {
  const hidden = state.model.hidden || [], tabs = Object.keys(PANELS).filter((name) => !hidden.includes(name));
  for (const name of hidden) $("tab-" + name).hidden = true;
  for (const [i, name] of tabs.entries()) {
    const tab = $("tab-" + name), open = (j) => { const next = tabs.at(j % tabs.length); showTab(next); $("tab-" + next).focus(); };
    tab.addEventListener("click", () => showTab(name));
    tab.addEventListener("keydown", (event) => {
      const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
      if (next !== undefined) { event.preventDefault(); open(next); }
    });
  }
}

export function showTab(name) {
  state.tab = name;
  openSheet();
  return showPanel();
}

// Draw the panel anew; the node panel, if it is of the same node, is brought up to date in place, so that a bar can be dragged.
export async function showPanel(anew = false) {
  const panel = $("panel"), now = ++drawing, key = state.tab === "node" ? state.chosen : null;
  if (!anew && key && shown && shown.key === key) { shown.refresh(); return; }
  for (const button of document.querySelectorAll("[role=tab]")) {
    const selected = button.id === "tab-" + state.tab;
    button.setAttribute("aria-selected", String(selected));
    button.setAttribute("tabindex", selected ? 0 : -1);
  }
  panel.setAttribute("aria-labelledby", "tab-" + state.tab);
  shown = null;
  if (!ALWAYS.has(state.tab) && !state.chosen) { panel.replaceChildren(html("p", "Choose a node: click its name."), aboutNetwork()); return; }
  try {
    const made = await PANELS[state.tab]();
    if (now !== drawing) return;
    panel.replaceChildren(...(made.elements || made));
    if (key) shown = { key, refresh: made.refresh };
  } catch (error) {
    if (now === drawing) panel.replaceChildren(html("p", error.message));
  }
}

function aboutNetwork() {
  return html("p", state.model.description || "", { class: "description" });
}
