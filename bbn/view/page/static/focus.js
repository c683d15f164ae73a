"use strict";
// Focus: a node with its parents and children, its Markov blanket, or all within k steps; the rest is put away.
import { $ } from "./dom.js";
import { state, parentsOf, childrenOf } from "./state.js";
import { cards, placeCard, placeOf } from "./cards.js";
import { placeArcs } from "./arcs.js";
import { layered } from "./layout.js";
import { paint, reframe } from "./zoom.js";

export const FOCUS_KINDS = [["all", "the whole network"], ["family", "its parents and children"], ["blanket", "its Markov blanket"],
                            ["2", "all within 2 steps"], ["3", "all within 3 steps"], ["4", "all within 4 steps"]];

// The names that a focus shows.
export function focused(name, kind) {
  const near = (names) => new Set([...names].flatMap((one) => [one, ...parentsOf(one), ...childrenOf(one)]));
  if (kind === "family") return near([name]);
  if (kind === "blanket") return new Set([name, ...parentsOf(name), ...childrenOf(name).flatMap((child) => [child, ...parentsOf(child)])]);
  let shown = new Set([name]);
  for (let step = 0; step < Number(kind); step++) shown = near(shown);
  return shown;
}

export function setFocus(name, kind) {
  state.focus = kind === "all" ? null : { name, kind };
  arrange();
}

// Put the cards where they belong: as the network was laid out, or a few of them by themselves.
export function arrange() {
  const { focus, model } = state, shown = focus ? focused(focus.name, focus.kind) : null;
  const nodes = shown ? model.nodes.filter((node) => shown.has(node.name)) : model.nodes;
  const places = shown ? layered(nodes, model.arcs.map((arc) => [arc.parent, arc.child])) : null;
  for (const card of cards.values()) {
    const place = places ? places.get(card.node.name) : placeOf(card.node);
    placeCard(card, place ? place.x : card.x, place ? place.y : card.y, Boolean(place));
  }
  $("focus").hidden = !focus;
  if (focus) $("focus-text").textContent = `${nodes.length} of ${model.nodes.length} nodes, around ${focus.name}`;
  placeArcs();
  reframe();
  paint();
}
