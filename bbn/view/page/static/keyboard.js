"use strict";
// The keyboard in the picture, which is one stop of Tab: arrows move within a card and from card to card.
import { cards } from "./cards.js";
import { reveal } from "./zoom.js";
import { release } from "./main.js";
import { nudge } from "./edit.js";

export function rove(stop) {
  for (const other of document.querySelectorAll('svg [tabindex="0"]')) other.setAttribute("tabindex", -1);
  stop.setAttribute("tabindex", 0);
}

export function go(name, index) {
  if (!cards.has(name)) return;
  reveal(name);
  const stops = cards.get(name).stops;
  stops.at(Math.min(index, stops.length - 1)).focus({ preventScroll: true });
}

export function move(event, stop, name, act) {
  const names = [...cards.values()].filter((card) => card.shown).map((card) => card.node.name);
  const here = names.indexOf(name), at = cards.get(name).stops.indexOf(stop);
  const down = () => {
    reveal(name);
    if (at + 1 < cards.get(name).stops.length) go(name, at + 1); else go(names[here + 1], 0);
  };
  const acts = {
    "Enter": act, " ": act, ArrowDown: down,
    ArrowUp: () => (at > 0 ? go(name, at - 1) : go(names[here - 1], Infinity)),
    ArrowRight: () => go(names[here + 1], 0), ArrowLeft: () => go(names[here - 1], 0),
    Home: () => go(names[0], 0), End: () => go(names.at(-1), 0),
    Escape: () => release(name), Delete: () => release(name),
  };
  if (event.altKey && nudge(event, name)) return;
  if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  event.preventDefault();
  acts[event.key]();
}
