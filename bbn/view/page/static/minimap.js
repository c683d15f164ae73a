"use strict";
// The minimap: every node as a mark, and a frame around what is in view. It is a second way to pan, for pointers.
import { $, element } from "./dom.js";
import { bounds, picture, to } from "./zoom.js";

const MINIMAP_FROM = 40, WIDEST = 150, HIGHEST = 110, EDGE = 3;
let map = null, inView = null, scale = 1;

export function drawMinimap(shown) {
  if (map) map.remove();
  map = null;
  if (shown.length <= MINIMAP_FROM) return;
  const { x, y, width, height } = picture.frame;
  scale = Math.min(WIDEST / width, HIGHEST / height);
  const edge = EDGE / scale;
  map = element("svg", { class: "minimap", "aria-hidden": "true", width: width * scale + 2 * EDGE, height: height * scale + 2 * EDGE,
    viewBox: `${x - edge} ${y - edge} ${width + 2 * edge} ${height + 2 * edge}` });
  for (const card of shown) element("rect", { x: card.x, y: card.y, width: card.node.width, height: card.node.height }, map);
  inView = element("rect", { class: "frame", "vector-effect": "non-scaling-stroke" }, map);
  map.addEventListener("pointerdown", jump);
  map.addEventListener("pointermove", jump);
  $("canvas").append(map);
}

function jump(event) {
  if (!(event.buttons & 1)) return;
  const box = map.getBoundingClientRect(), { width, height } = bounds(), { frame, place } = picture;
  const x = frame.x + (event.clientX - box.left - EDGE) / scale, y = frame.y + (event.clientY - box.top - EDGE) / scale;
  to(d3.zoomIdentity.translate(width / 2 - place.k * x, height / 2 - place.k * y).scale(place.k));
}

export function moveFrame() {
  if (!map) return;
  const { width, height } = bounds(), { place } = picture, [x0, y0] = place.invert([0, 0]), [x1, y1] = place.invert([width, height]);
  for (const [key, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) inView.setAttribute(key, value);
}
