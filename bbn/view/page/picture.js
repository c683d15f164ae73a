"use strict";
// The picture: cards that turn into names, then into dots, as they shrink; zoom and pan by d3-zoom; a minimap.
// Rows of states are made when a card is first large enough to read, so that a thousand nodes open at once.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = { belief: "#4878a8", observed: "#b5541c", likely: "#8a6d1f", track: "#eef1f4", edge: "#78828f",
                  head: "#e8eef5", headObserved: "#f7e3d6", ink: "#1b1f24", arc: "#57606a" };
const READABLE = 0.55, NAMED = 0.16, CLOSE = 0.9, MARGIN = 12, MINIMAP_FROM = 40;
let model, cards = new Map(), svg, view, zoomer, place = d3.zoomIdentity, level = "";

function element(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

const clipped = (text) => ([...text].length > 40 ? [...text].slice(0, 39).join("") + "…" : text);
const percent = (p) => (p > 0 && p < 0.0005 ? "<0.1%" : p < 1 && p > 0.9995 ? ">99.9%" : (100 * p).toFixed(p > 0 && p < 1 ? 1 : 0) + "%");

function draw() {
  svg = element("svg", { xmlns: SVG, role: "group", "aria-label": `Bayesian network ${model.name}, ${model.nodes.length} nodes`,
    "font-family": "Helvetica, Arial, 'DejaVu Sans', sans-serif" });
  view = element("g", {}, svg);
  for (const arc of model.arcs) {
    const group = element("g", { class: "link", "data-child": arc.child }, view);
    const line = element("path", { class: "arc", d: arc.path, fill: "none", stroke: COLOURS.arc, "stroke-width": 1.2 }, group);
    element("title", {}, line, `${arc.parent} → ${arc.child}`);
    element("polygon", { class: "arrow", points: arc.head, fill: COLOURS.arc }, group);
  }
  for (const node of model.nodes) cards.set(node.name, drawCard(node));
  $("canvas").replaceChildren(svg);
  rove(cards.values().next().value.stops[0]);
  zoomer = d3.zoom().on("zoom", (event) => { place = event.transform; placed(); })
    .filter((event) => !event.ctrlKey || event.type === "wheel").clickDistance(4);
  d3.select(svg).call(zoomer).on("dblclick.zoom", null);
  if (model.nodes.length > MINIMAP_FROM) drawMinimap();
  fit();
  new ResizeObserver(() => { if (!moved) fit(); else placed(); }).observe($("canvas"));
  svg.addEventListener("keydown", zoomKeys);
}

// A card: its name, and a row for each state. The large name is what shows when the rows are too small to read.
function drawCard(node) {
  const group = element("g", { class: "node", transform: `translate(${node.x} ${node.y})` }, view);
  const card = element("rect", { class: "card", width: node.width, height: node.height, rx: 4, fill: "#ffffff", stroke: COLOURS.edge }, group);
  const title = element("g", { class: "title", tabindex: -1, role: "button", "aria-label": `Choose ${node.name}` }, group);
  element("rect", { class: "hit whole", width: node.width, height: node.height, rx: 4, fill: "transparent" }, title);
  const head = element("rect", { class: "hit head", x: 0.8, y: 0.8, width: node.width - 1.6, height: model.title - 1.6, rx: 3.5, fill: COLOURS.head }, title);
  element("text", { class: "small", x: node.width / 2, y: 14, "font-size": 11, "font-weight": 600, "text-anchor": "middle", fill: COLOURS.ink }, title, clipped(node.name));
  const size = Math.min(34, node.height * 0.7, 11 * (node.width - 8) / node.wide);
  element("text", { class: "large", x: node.width / 2, y: node.height / 2 + size * 0.35, "font-size": size, "font-weight": 600, "text-anchor": "middle", fill: COLOURS.ink }, title, clipped(node.name));
  element("title", {}, title, node.name);
  title.addEventListener("click", () => choose(node.name));
  title.addEventListener("keydown", (event) => move(event, title, node.name, () => choose(node.name)));
  title.addEventListener("focus", () => rove(title));
  return { node, group, card, head, rows: null, stops: [title] };
}

function drawRows(card) {
  const node = card.node;
  card.rows = Array.from({ length: node.rows }, (_, i) => {
    const top = model.title + 3 + model.row * i;
    const row = element("g", { class: "state", tabindex: -1, role: "button", "aria-pressed": "false" }, card.group);
    element("rect", { class: "hit", x: 2, y: top, width: node.width - 4, height: model.row, fill: "transparent" }, row);
    const label = element("text", { x: 7, y: top + 11, "font-size": 10.5, fill: COLOURS.ink }, row);
    const left = 7 + node.label + 8, width = node.width - left - 7 - model.percent;
    const track = element("rect", { class: "track", x: left, y: top + 3, width, height: 9, fill: COLOURS.track }, row);
    const bar = element("rect", { class: "share", x: left, y: top + 3, width: 0, height: 9, fill: COLOURS.belief }, row);
    const before = element("rect", { class: "before", x: left, y: top + 12, width: 0, height: 1.8, fill: COLOURS.ink }, row);
    const share = element("text", { x: node.width - 7, y: top + 11, "font-size": 9.5, "text-anchor": "end", fill: COLOURS.ink }, row);
    const made = { row, label, track, bar, before, share, width, state: i };
    const act = () => (made.state < 0 ? choose(node.name) : toggle(node.name, made.state));
    row.addEventListener("click", act);
    row.addEventListener("keydown", (event) => move(event, row, node.name, act));
    row.addEventListener("focus", () => rove(row));
    return made;
  });
  card.stops.push(...card.rows.map((row) => row.row));
  paintCard(card);
}

// The states that a card shows, -1 for "more": all, or the most probable of very many.
function shownStates(node, now) {
  const all = node.states.map((_, i) => i);
  if (node.rows === all.length) return all;
  const best = [...all].sort((a, b) => (now[b] || 0) - (now[a] || 0) || a - b).slice(0, node.rows - 1);
  return [...best.sort((a, b) => a - b), -1];
}

function paintCard(card) {
  const name = card.node.name, finding = evidence[name], kind = !finding ? "" : "virtual" in finding ? "likely" : "do" in finding ? "done" : "observed";
  const colour = kind === "likely" ? COLOURS.likely : kind ? COLOURS.observed : COLOURS.belief;
  card.card.setAttribute("stroke", kind ? colour : COLOURS.edge);
  card.head.setAttribute("fill", kind ? COLOURS.headObserved : COLOURS.head);
  card.group.setAttribute("data-kind", kind);
  card.group.classList.toggle("chosen", name === chosen);
  if (!card.rows) return;
  const now = shares(name), then = reference && reference[name];
  shownStates(card.node, now).forEach((i, slot) => {
    const row = card.rows[slot], more = i < 0;
    row.state = i;
    row.label.textContent = more ? `… ${card.node.states.length - card.rows.length + 1} more` : clipped(card.node.states[i]);
    row.track.setAttribute("visibility", more ? "hidden" : "visible");
    const p = now[i] || 0, pressed = Boolean(finding && (finding.state === i || finding.do === i));
    row.bar.setAttribute("width", row.width * p);
    row.bar.setAttribute("fill", colour);
    row.before.setAttribute("width", then && !more && Math.abs(then[i] - p) > 1e-6 ? row.width * then[i] : 0);
    row.share.textContent = more ? "" : percent(p);
    row.row.setAttribute("aria-pressed", String(pressed));
    row.row.setAttribute("aria-label", more ? `All states of ${name}` : `${name} = ${card.node.states[i]}, ${percent(p)}`);
  });
}

function paint() {
  for (const card of cards.values()) paintCard(card);
  for (const link of view.querySelectorAll(".link")) link.classList.toggle("cut", "do" in (evidence[link.dataset.child] || {}));
}

// Zoom and pan

let moved = false;

function bounds() {
  const box = $("canvas").getBoundingClientRect();
  return { width: Math.max(1, box.width), height: Math.max(1, box.height) };
}

function placed() {
  view.setAttribute("transform", place.toString());
  const next = place.k >= READABLE ? "cards" : place.k >= NAMED ? "names" : "dots";
  if (next !== level) { level = next; svg.setAttribute("class", level); }
  if (level === "cards") {
    const { width, height } = bounds(), [x0, y0] = place.invert([0, 0]), [x1, y1] = place.invert([width, height]);
    for (const card of cards.values()) {
      const n = card.node;
      if (!card.rows && n.x < x1 && n.x + n.width > x0 && n.y < y1 && n.y + n.height > y0) drawRows(card);
    }
  }
  moveFrame();
}

function fit() {
  const { width, height } = bounds();
  const k = Math.min(1.4, (width - 2 * MARGIN) / model.width, (height - 2 * MARGIN) / model.height);
  zoomer.scaleExtent([Math.min(0.5, k / 2), 6]);
  to(d3.zoomIdentity.translate((width - k * model.width) / 2, (height - k * model.height) / 2).scale(k));
  moved = false;
}

function to(transform) { moved = true; d3.select(svg).call(zoomer.transform, transform); }
function zoomBy(factor) { moved = true; d3.select(svg).call(zoomer.scaleBy, factor); }
function panBy(x, y) { moved = true; d3.select(svg).call(zoomer.translateBy, x / place.k, y / place.k); }

function zoomKeys(event) {
  const step = 80, keys = { "+": () => zoomBy(1.25), "=": () => zoomBy(1.25), "-": () => zoomBy(0.8), "0": fit };
  const pans = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.shiftKey && event.key in pans) { event.preventDefault(); event.stopPropagation(); panBy(...pans[event.key]); }
  else if (event.key in keys) { event.preventDefault(); keys[event.key](); }
}

// Bring a card into view, large enough to read.
function reveal(name, centre = false) {
  const n = cards.get(name).node, { width, height } = bounds(), k = Math.max(place.k, CLOSE);
  const [left, top] = place.apply([n.x, n.y]), [right, bottom] = place.apply([n.x + n.width, n.y + n.height]);
  const inside = place.k >= READABLE && left >= 0 && top >= 0 && right <= width && bottom <= height;
  if (!inside || centre) to(d3.zoomIdentity.translate(width / 2 - k * (n.x + n.width / 2), height / 2 - k * (n.y + n.height / 2)).scale(k));
}

// The minimap: every node as a mark, and a frame around what is in view. It is a second way to pan, for pointers.

let frame = null, miniScale = 1;

function drawMinimap() {
  miniScale = Math.min(150 / model.width, 110 / model.height);
  const map = element("svg", { class: "minimap", "aria-hidden": "true", width: model.width * miniScale + 6, height: model.height * miniScale + 6,
    viewBox: `${-3 / miniScale} ${-3 / miniScale} ${model.width + 6 / miniScale} ${model.height + 6 / miniScale}` });
  for (const n of model.nodes) element("rect", { x: n.x, y: n.y, width: n.width, height: n.height }, map);
  frame = element("rect", { class: "frame", "vector-effect": "non-scaling-stroke" }, map);
  const pan = (event) => {
    if (!(event.buttons & 1)) return;
    const box = map.getBoundingClientRect(), { width, height } = bounds();
    const x = (event.clientX - box.left - 3) / miniScale, y = (event.clientY - box.top - 3) / miniScale;
    to(d3.zoomIdentity.translate(width / 2 - place.k * x, height / 2 - place.k * y).scale(place.k));
  };
  map.addEventListener("pointerdown", pan);
  map.addEventListener("pointermove", pan);
  $("canvas").append(map);
}

function moveFrame() {
  if (!frame) return;
  const { width, height } = bounds(), [x0, y0] = place.invert([0, 0]), [x1, y1] = place.invert([width, height]);
  for (const [key, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) frame.setAttribute(key, value);
}

// The keyboard: the picture is one stop of Tab; arrows move within a card and from card to card.

function rove(stop) {
  for (const other of document.querySelectorAll('svg [tabindex="0"]')) other.setAttribute("tabindex", -1);
  stop.setAttribute("tabindex", 0);
}

function go(name, index) {
  if (!cards.has(name)) return;
  reveal(name);
  const stops = cards.get(name).stops;
  stops.at(Math.min(index, stops.length - 1)).focus({ preventScroll: true });
}

function move(event, stop, name, act) {
  const names = [...cards.keys()], here = names.indexOf(name), stops = cards.get(name).stops, at = stops.indexOf(stop);
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
  if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  event.preventDefault();
  acts[event.key]();
}

function pictureText() {
  for (const card of cards.values()) if (!card.rows) drawRows(card);
  const copy = svg.cloneNode(true), g = copy.firstChild;
  g.removeAttribute("transform");
  for (const one of copy.querySelectorAll(".large, .whole")) one.remove();
  const paper = element("rect", { x: -MARGIN, y: -MARGIN, width: model.width + 2 * MARGIN, height: model.height + 2 * MARGIN, fill: "#ffffff" });
  copy.prepend(paper);
  for (const [key, value] of Object.entries({ viewBox: `${-MARGIN} ${-MARGIN} ${model.width + 2 * MARGIN} ${model.height + 2 * MARGIN}`,
    width: model.width + 2 * MARGIN, height: model.height + 2 * MARGIN })) copy.setAttribute(key, value);
  return new XMLSerializer().serializeToString(copy);
}
