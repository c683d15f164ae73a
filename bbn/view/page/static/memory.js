"use strict";
// What outlives a reload of the page, in the browser's memory of this tab: cases, findings that are switched off, where cards
// were moved, rows that were typed and not yet set. Evidence is in the address, and edits are in Python.
import { byName } from "./dom.js";
import { state } from "./state.js";
import { known } from "./findings.js";

const shelf = () => `bbn ${location.pathname} ${state.model.name}`;

export function startMemory() {
  window.addEventListener("pagehide", () => {
    const { cases, suspended, places, drafts } = state;
    try { sessionStorage.setItem(shelf(), JSON.stringify({ cases, suspended, places: [...places], drafts: [...drafts] })); } catch { /* a frame has none */ }
  });
}

export function recall() {
  let kept = null;
  try { kept = JSON.parse(sessionStorage.getItem(shelf())); } catch { /* a frame has none */ }
  if (!kept) return;
  for (const [name, findings] of Object.entries(kept.cases)) state.cases[name] = known(findings, "").findings;
  state.suspended = known(kept.suspended, "").findings;
  state.places = new Map(kept.places);
  state.drafts = new Map(kept.drafts);
}
