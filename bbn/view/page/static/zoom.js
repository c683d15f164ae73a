"use strict";
// Zoom and pan by d3-zoom, and levels of detail: cards turn into names, then into dots, as they shrink.
import { $, element } from "./dom.js";
import { state } from "./state.js";
import { cards, drawCard, drawRows, paintCard, placeCard, placeOf } from "./cards.js";
import { drawArc, forgetArcs, paintArcs, placeArcs } from "./arcs.js";
import { drawMinimap, moveFrame } from "./minimap.js";
import { rove } from "./keyboard.js";
import { chooseNear } from "./main.js";

const READABLE = 0.55, NAMED = 0.16, CLOSE = 0.9, LARGEST = 6;
export const MARGIN = 12;
export const picture = { svg: null, view: null, zoomer: null, place: null, level: "", moved: false, printing: false, frame: { x: 0, y: 0, width: 1, height: 1 } };

// Draw the network anew.
export function drawPicture() {
  const { model } = state, svg = element("svg", { class: "picture", role: "group", "font-family": "Helvetica, Arial, 'DejaVu Sans', sans-serif",
    "aria-label": `${model.kind === "decisions" ? "Decision" : "Bayesian"} network ${model.name}, ${model.nodes.length} nodes` });
  const view = element("g", {}, svg);
  cards.clear();
  forgetArcs();
  Object.assign(picture, { svg, view, place: d3.zoomIdentity, level: "" });
  for (const arc of model.arcs) drawArc(arc, view);
  for (const node of model.nodes) { const { x, y } = placeOf(node); placeCard(drawCard(node, view), x, y); }
  placeArcs();
  $("canvas").replaceChildren(svg);
  rove(cards.values().next().value.stops[0]);
  picture.zoomer = d3.zoom().on("zoom", (event) => { picture.place = event.transform; placed(); }).filter(panned).clickDistance(4).tapDistance(10);
  d3.select(svg).call(picture.zoomer).on("dblclick.zoom", null);
  svg.addEventListener("keydown", zoomKeys);
  svg.addEventListener("click", (event) => { if (event.target === svg) chooseNear(event); });
  reframe();
}

// A mouse that drags a bar, a density, or a card that may be moved does not pan.
function panned(event) {
  if (event.type === "mousedown" && event.target.closest && event.target.closest(".pull, .movable")) return false;
  return (!event.ctrlKey || event.type === "wheel") && !event.button;
}

// The box around what is shown; fit it, and draw the minimap of it.
export function reframe() {
  const shown = [...cards.values()].filter((card) => card.shown);
  const x = Math.min(...shown.map((c) => c.x)), y = Math.min(...shown.map((c) => c.y));
  picture.frame = { x, y, width: Math.max(...shown.map((c) => c.x + c.node.width)) - x, height: Math.max(...shown.map((c) => c.y + c.node.height)) - y };
  drawMinimap(shown);
  fit();
}

export function bounds() {
  const box = $("canvas").getBoundingClientRect();
  return { width: Math.max(1, box.width), height: Math.max(1, box.height) };
}

// After a move: the transform, the level of detail, and the rows of cards that came into view.
export function placed() {
  const { place, view, svg } = picture;
  if (picture.printing) return;
  view.setAttribute("transform", place.toString());
  const next = place.k >= READABLE ? "cards" : place.k >= NAMED ? "names" : "dots";
  if (next !== picture.level) { picture.level = next; svg.setAttribute("class", `picture ${next}`); }
  if (next === "cards") {
    const { width, height } = bounds(), [x0, y0] = place.invert([0, 0]), [x1, y1] = place.invert([width, height]);
    for (const card of cards.values()) {
      if (!card.rows && card.shown && card.x < x1 && card.x + card.node.width > x0 && card.y < y1 && card.y + card.node.height > y0) drawRows(card);
    }
  }
  moveFrame();
}

export function fit() {
  const { width, height } = bounds(), { frame, zoomer } = picture;
  const k = Math.max(1e-4, Math.min(1.4, (width - 2 * MARGIN) / frame.width, (height - 2 * MARGIN) / frame.height));
  zoomer.scaleExtent([Math.min(0.5, k / 2), LARGEST]);
  to(d3.zoomIdentity.translate((width - k * frame.width) / 2 - k * frame.x, (height - k * frame.height) / 2 - k * frame.y).scale(k));
  picture.moved = false;
}

export function refit() { if (picture.printing) return; if (picture.moved) placed(); else fit(); }
export function to(transform) { picture.moved = true; d3.select(picture.svg).call(picture.zoomer.transform, transform); }
export function zoomBy(factor) { picture.moved = true; d3.select(picture.svg).call(picture.zoomer.scaleBy, factor); }
export function panBy(x, y) { picture.moved = true; d3.select(picture.svg).call(picture.zoomer.translateBy, x / picture.place.k, y / picture.place.k); }

function zoomKeys(event) {
  const step = 80, keys = { "+": () => zoomBy(1.25), "=": () => zoomBy(1.25), "-": () => zoomBy(0.8), "0": fit };
  const pans = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.shiftKey && event.key in pans) { event.preventDefault(); event.stopPropagation(); panBy(...pans[event.key]); }
  else if (event.key in keys) { event.preventDefault(); keys[event.key](); }
}

// Bring a card into view, large enough to read.
export function reveal(name, centre = false) {
  const card = cards.get(name), { width, height } = bounds(), { place } = picture, k = Math.max(place.k, CLOSE);
  const [left, top] = place.apply([card.x, card.y]), [right, bottom] = place.apply([card.x + card.node.width, card.y + card.node.height]);
  const inside = place.k >= READABLE && left >= 0 && top >= 0 && right <= width && bottom <= height;
  if (!inside || centre) to(d3.zoomIdentity.translate(width / 2 - k * (card.x + card.node.width / 2), height / 2 - k * (card.y + card.node.height / 2)).scale(k));
}

export function paint() {
  for (const card of cards.values()) paintCard(card);
  paintArcs();
}

// Draw the rows of every card that is shown; the box around them all.
export function wholePicture() {
  const { frame } = picture;
  for (const card of cards.values()) if (!card.rows && card.shown) drawRows(card);
  return [frame.x - MARGIN, frame.y - MARGIN, frame.width + 2 * MARGIN, frame.height + 2 * MARGIN];
}

// The picture as an SVG file, in the light colours that the shapes carry.
export function pictureText() {
  const box = wholePicture(), [, , wide, high] = box;
  const copy = picture.svg.cloneNode(true);
  copy.firstChild.removeAttribute("transform");
  for (const one of copy.querySelectorAll(".large, .whole, .pull, [display=none]")) one.remove();
  copy.prepend(element("rect", { x: box[0], y: box[1], width: wide, height: high, fill: "#ffffff" }));
  for (const [key, value] of Object.entries({ viewBox: box.join(" "), width: wide, height: high })) copy.setAttribute(key, value);
  return new XMLSerializer().serializeToString(copy);
}

// The same as a PNG file, twice as fine; `act` gets its address.
export function picturePng(act) {
  const image = new Image(), fine = Math.min(2, 8000 / Math.max(picture.frame.width, picture.frame.height));
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = image.width * fine;
    canvas.height = image.height * fine;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    act(canvas.toDataURL("image/png"));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(pictureText());
}
