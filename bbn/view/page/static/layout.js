"use strict";
// A small layered layout, for a few nodes that are looked at apart: parents above children, each layer in the order of its
// neighbours' mean place.

const GAP = 26, LAYER_GAP = 46, LAYER_SWEEPS = 8;

// Nodes (name, width, height) and arcs [parent, child] to name → { x, y }.
export function layered(nodes, arcs) {
  const names = new Set(nodes.map((node) => node.name)), inside = arcs.filter(([a, b]) => names.has(a) && names.has(b));
  const layers = layersOf(nodes, inside);
  for (let sweep = 0; sweep < LAYER_SWEEPS; sweep++) sortLayers(layers, inside);
  const widths = layers.map((layer) => layer.reduce((sum, node) => sum + node.width + GAP, -GAP)), widest = Math.max(...widths);
  const places = new Map();
  let y = 0;
  layers.forEach((layer, i) => {
    let x = (widest - widths[i]) / 2;
    const tallest = Math.max(...layer.map((node) => node.height));
    for (const node of layer) { places.set(node.name, { x, y: y + (tallest - node.height) / 2 }); x += node.width + GAP; }
    y += tallest + LAYER_GAP;
  });
  return places;
}

// A node's layer is one below its lowest parent; a root stands just above its highest child.
function layersOf(nodes, arcs) {
  const depth = new Map(nodes.map((node) => [node.name, 0])), hasParent = new Set(arcs.map(([, child]) => child));
  for (let round = 0, moved = true; moved && round < nodes.length; round++) {
    moved = false;
    for (const [a, b] of arcs) if (depth.get(b) <= depth.get(a)) { depth.set(b, depth.get(a) + 1); moved = true; }
  }
  for (const { name } of nodes) {
    const below = arcs.filter(([a]) => a === name).map(([, b]) => depth.get(b));
    if (!hasParent.has(name) && below.length) depth.set(name, Math.min(...below) - 1);
  }
  const layers = [];
  for (const node of nodes) (layers[depth.get(node.name)] ||= []).push(node);
  return layers.filter(Boolean);
}

function sortLayers(layers, arcs) {
  const place = new Map();
  for (const layer of layers) layer.forEach((node, i) => place.set(node.name, (i + 0.5) / layer.length));
  for (const layer of layers) {
    const wanted = new Map(layer.map(({ name }) => {
      const near = arcs.filter(([a, b]) => a === name || b === name).map(([a, b]) => place.get(a === name ? b : a));
      return [name, near.length ? near.reduce((a, b) => a + b) / near.length : place.get(name)];
    }));
    layer.sort((one, other) => wanted.get(one.name) - wanted.get(other.name));
    layer.forEach((node, i) => place.set(node.name, (i + 0.5) / layer.length));
  }
}
