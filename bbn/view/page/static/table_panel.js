"use strict";
// The table of a node: a search, the rows that agree with the evidence, and cells to change where the page may edit.
import { html, short, table } from "./dom.js";
import { state } from "./state.js";
import { ask } from "./ask.js";
import { editRow } from "./edit.js";

const LARGE = 30;  // rows from which only those that agree with the evidence are shown at first
let opened = false;

export function tableSection(node) {
  const section = html("details"), holder = html("div", null, { class: "wide", tabindex: 0, role: "region", "aria-label": `Table of ${node.name}` }), told = html("p", "", { class: "help" });
  const find = html("input", null, { type: "search", placeholder: "a parent's state", "aria-label": "Find rows" });
  const agree = html("input", null, { type: "checkbox" }), label = html("label", null, { class: "check" });
  let asked = 0, touched = false;
  async function load() {
    const turn = ++asked;
    if (!section.open) return;
    try {
      const answer = await ask("table", { target: node.name, evidence: state.evidence, agree: agree.checked, words: find.value });
      if (turn !== asked) return;
      if (!touched && answer.total > LARGE && answer.parents.some((name) => state.evidence[name]) && !agree.checked) { agree.checked = true; await load(); return; }
      show(answer);
    } catch (error) { holder.replaceChildren(html("p", error.message)); }
  }
  function show({ parents, columns, rows, codes, total, more }) {
    const cell = (value) => (typeof value === "number" ? short(value) : value);
    const editable = state.model.edit && node.kind === "chance";
    const lines = rows.map((row, i) => {
      const labels = row.slice(0, parents.length), values = row.slice(parents.length);
      return editable ? [...labels, ...editRow(node, codes[i], values)] : row.map(cell);
    });
    holder.replaceChildren(table([...parents, ...columns, ...(editable ? [""] : [])], lines, `Table of ${node.name}`));
    find.hidden = total < 2;
    label.hidden = !parents.some((name) => state.evidence[name]);
    told.textContent = `${rows.length}${more ? " or more" : ""} of ${total.toLocaleString("en")} row${total === 1 ? "" : "s"}`;
  }
  label.append(agree, " rows that agree with the evidence");
  section.append(html("summary", node.kind === "decision" ? "Best policy" : "Table"), find, label, told, holder);
  section.open = opened;
  section.addEventListener("toggle", () => { opened = section.open; load(); });
  find.addEventListener("input", load);
  agree.addEventListener("change", () => { touched = true; load(); });
  load();
  return { elements: [section], refresh: () => { if (!state.model.edit || agree.checked || node.kind === "decision") load(); } };
}
