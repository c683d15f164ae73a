"use strict";
// The density of a number: a curve over its range, the reference as a thin line, the observed number as an upright one.
import { element, short } from "./dom.js";
import { state } from "./state.js";

const BLUE = "#4878a8", INK = "#1b1f24", ORANGE = "#b5541c", GREY = "#78828f";

// A plot of this size in an SVG group; `paint` shows beliefs in it, and a pointer dragged along it sets the number.
export class DensityPlot {
  constructor(group, name, x, y, width, height, onNumber) {
    Object.assign(this, { name, x, y, width, height, range: null });
    this.area = element("path", { class: "share", fill: BLUE }, group);
    this.before = element("path", { class: "before-line", fill: "none", stroke: INK, "stroke-width": 1.2 }, group);
    element("line", { class: "axis", x1: x, x2: x + width, y1: y + height, y2: y + height, stroke: GREY }, group);
    this.mark = element("line", { class: "mark", y1: y, y2: y + height, stroke: ORANGE, "stroke-width": 2.5 }, group);
    this.low = element("text", { x, y: y + height + 10, "font-size": 8.5, fill: INK }, group);
    this.high = element("text", { x: x + width, y: y + height + 10, "font-size": 8.5, "text-anchor": "end", fill: INK }, group);
    this.hit = element("rect", { class: "pull", x, y, width, height: height + 12, fill: "transparent" }, group);
    dragAlong(this.hit, (share, dragging) => { if (this.range) onNumber(this.range[0] + share * (this.range[1] - this.range[0]), dragging); });
  }

  paint() {
    const belief = state.beliefs[this.name], finding = state.evidence[this.name], then = state.reference && state.reference.beliefs[this.name];
    const fixed = finding ? finding.number ?? finding.do : undefined, drawn = fixed === undefined && belief && belief.density.length;
    const spans = [drawn && belief, then && then.density && then.density.length && then].filter(Boolean);
    if (spans.length) this.range = [Math.min(...spans.map((s) => s.low)), Math.max(...spans.map((s) => s.high))];
    const [low, high] = this.range || [0, 1], top = Math.max(1e-300, ...spans.flatMap((s) => s.density));
    const at = (value) => this.x + Math.max(0, Math.min(1, (value - low) / (high - low || 1))) * this.width;
    const curve = (s) => s.density.map((p, i) => `${at(s.low + (i / (s.density.length - 1)) * (s.high - s.low)).toFixed(2)} ${(this.y + this.height * (1 - p / top)).toFixed(2)}`).join(" L");
    const base = this.y + this.height;
    this.area.setAttribute("d", drawn ? `M${at(belief.low)} ${base} L${curve(belief)} L${at(belief.high)} ${base} Z` : "");
    this.before.setAttribute("d", spans.includes(then) && (!drawn || JSON.stringify(then) !== JSON.stringify(belief)) ? `M${curve(then)}` : "");
    const value = fixed ?? (belief && !belief.density.length ? belief.mean : undefined);
    this.mark.setAttribute("visibility", value === undefined ? "hidden" : "inherit");
    if (value !== undefined) for (const key of ["x1", "x2"]) this.mark.setAttribute(key, at(value));
    this.low.textContent = this.range ? short(low) : "";
    this.high.textContent = this.range ? short(high) : "";
  }
}

// The mean and spread in words.
export function summary(name) {
  const finding = state.evidence[name], belief = state.beliefs[name];
  if (finding) return short(finding.number ?? finding.do);
  return belief ? `${short(belief.mean)} ± ${Number(belief.std.toPrecision(3))}` : "";
}

// Call `act(share along the element, whether this is not the first call of a drag)` as a pointer is dragged along it. Fingers
// drag in the panels only, where `touch` is set: in the picture they pan.
export function dragAlong(hit, act, touch = false) {
  hit.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.pointerType === "touch" && !touch)) return;
    const from = event.clientX;
    let dragging = false;
    const move = (moved) => {
      if (!dragging && Math.abs(moved.clientX - from) < 4) return;
      const box = hit.getBoundingClientRect();
      act(Math.max(0, Math.min(1, (moved.clientX - box.left) / box.width)), dragging);
      dragging = true;
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      if (dragging) window.addEventListener("click", (click) => click.stopPropagation(), { capture: true, once: true });
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end, { once: true });
  });
}
