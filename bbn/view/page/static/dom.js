"use strict";
// Making elements: HTML for the panels, SVG for the picture. Text always goes in as text, never as markup. And mappings
// whose keys are names of the network, which may be any text.

export const SVG = "http://www.w3.org/2000/svg";
export const $ = (id) => document.getElementById(id);

// What some mappings hold, by name. It has no prototype, so "constructor" and "__proto__" are names like others.
export const byName = (...from) => Object.assign(Object.create(null), ...from);

export function html(name, text = null, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function element(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// Set an attribute or a text where it differs: what is not touched need not be laid out again.
export function put(made, key, value) {
  const wanted = typeof value === "number" ? String(Math.round(100 * value) / 100) : String(value);
  if (made.getAttribute(key) !== wanted) made.setAttribute(key, wanted);
}

export function putText(made, text) {
  if (made.textContent !== text) made.textContent = text;
}

export function button(text, act, attributes = {}) {
  const made = html("button", text, { type: "button", ...attributes });
  made.addEventListener("click", act);
  return made;
}

export function field(label, input) {
  const made = html("label", label + " ", { class: "field" });
  made.append(input);
  return made;
}

export function select(label, options, value, act) {
  const made = html("select", null, { "aria-label": label });
  for (const [key, text] of options) made.append(html("option", text, { value: key }));
  made.value = value;
  made.addEventListener("change", () => act(made.value));
  return made;
}

// A row of buttons.
export function acts(...buttons) {
  const made = html("div", null, { class: "acts" });
  made.append(...buttons);
  return made;
}

// A table: cells are text, numbers or elements.
export function table(head, rows, label = null) {
  const made = html("table", null, label ? { "aria-label": label } : {}), top = html("thead"), line = html("tr"), body = html("tbody");
  for (const cell of head) line.append(cell ? html("th", cell, { scope: "col" }) : html("td"));
  top.append(line);
  for (const cells of rows) {
    const row = html("tr");
    for (const cell of cells) row.append(tableCell(cell));
    body.append(row);
  }
  made.append(top, body);
  return made;
}

function tableCell(cell) {
  const made = html("td");
  if (cell instanceof Node) made.append(cell);
  else made.textContent = String(cell);
  if (typeof cell === "number" || /^[-−<>0-9.]+(e[-+]?\d+)?%?$/.test(made.textContent)) made.className = "number";
  return made;
}

// A bar for a share between 0 and 1, with a thin one below for the reference.
export function bar(share, before = null) {
  const made = html("span", null, { class: "bars", "aria-hidden": "true" }), now = html("span", null, { class: "bar" });
  now.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  made.append(now);
  if (before !== null) {
    const then = html("span", null, { class: "then" });
    then.style.width = `${100 * Math.max(0, Math.min(1, before))}%`;
    made.append(then);
  }
  return made;
}

export const clipped = (text) => ([...text].length > 40 ? [...text].slice(0, 39).join("") + "…" : text);

export function percent(p) {
  if (p > 0 && p < 0.0005) return "<0.1%";
  if (p < 1 && p > 0.9995) return ">99.9%";
  return (100 * p).toFixed(p > 0 && p < 1 ? 1 : 0) + "%";
}

// A share of those that are known, or a dash where none is.
export const shareText = (shares, i) => (shares.length ? percent(shares[i] || 0) : "–");

export const short = (x) => (Number.isInteger(x) && Math.abs(x) < 1e6 ? String(x) : String(Number(x.toPrecision(4))));

export function saveText(text, name, kind) {
  const link = html("a", null, { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

export async function openText(file) {
  return file ? file.text() : "";
}

export function say(text, wrong = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", wrong);
}

export function copyText(text, told) {
  const failed = () => say("the browser does not allow copying", true);
  try { return navigator.clipboard.writeText(text).then(() => say(told), failed); } catch { return failed(); }
}
