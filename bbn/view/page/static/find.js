"use strict";
// Find: nodes by parts of a name, a state or a description, with a list to walk by arrow keys.
import { $, html, say } from "./dom.js";
import { state } from "./state.js";
import { goTo } from "./main.js";

const MOST_FOUND = 12;

// The nodes whose name, state or description holds every word that is looked for: names that start so first.
export function matches(text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  const rank = (node) => {
    const name = node.name.toLowerCase(), all = [name, node.description || "", ...node.states].join(" ").toLowerCase();
    if (!wanted.every((word) => all.includes(word))) return -1;
    return name === wanted.join(" ") ? 0 : name.startsWith(wanted[0]) ? 1 : wanted.every((word) => name.includes(word)) ? 2 : 3;
  };
  return state.model.nodes.map((node) => ({ node, rank: rank(node) })).filter((one) => one.rank >= 0)
    .sort((a, b) => a.rank - b.rank).slice(0, MOST_FOUND).map((one) => one.node);
}

// What is shown of a find: the name, and the state or the description that was found.
function foundText(node, text) {
  const wanted = text.trim().toLowerCase();
  if (node.name.toLowerCase().includes(wanted)) return node.name;
  const hit = node.states.find((one) => one.toLowerCase().includes(wanted));
  return hit ? `${node.name} (${hit})` : node.description ? `${node.name}: ${node.description}` : node.name;
}

export function startFind() {
  const input = $("search"), list = $("found");
  let at = -1;
  const close = () => { list.hidden = true; list.replaceChildren(); at = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const pick = (name) => { close(); input.value = ""; goTo(name); };
  const show = () => {
    const nodes = matches(input.value);
    close();
    if (!input.value.trim()) return;
    list.replaceChildren(...nodes.map((node, i) => {
      const option = html("li", foundText(node, input.value), { role: "option", id: `found-${i}`, "aria-selected": "false", "data-name": node.name });
      option.addEventListener("pointerdown", (event) => { event.preventDefault(); pick(node.name); });
      return option;
    }));
    if (!nodes.length) list.append(html("li", "nothing found", { role: "option", "aria-disabled": "true", "aria-selected": "false" }));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };
  const step = (by) => {
    const options = [...list.querySelectorAll("[data-name]")];
    if (!options.length) return;
    at = (at + by + options.length) % options.length;
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    options[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[at].id);
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); if (list.hidden) show(); step(event.key === "ArrowDown" ? 1 : -1); }
    if (event.key === "Escape") { input.value = ""; close(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    const options = [...list.querySelectorAll("[data-name]")], best = options[Math.max(0, at)];
    if (best) pick(best.dataset.name); else if (input.value.trim()) say(`no node is like ${input.value.trim()}`, true);
  });
}
