"use strict";
// On a phone the panels are a sheet at the bottom: a button opens and closes it, a finger on it makes it higher or lower.
import { $ } from "./dom.js";
import { refit } from "./zoom.js";

const small = window.matchMedia("(max-width: 760px)");
const LOWEST = 0.25, HIGHEST_SHEET = 0.85;

function setOpen(open) {
  $("sheet").setAttribute("aria-expanded", String(open));
  $("sheet").setAttribute("aria-label", open ? "Close the panel" : "Open the panel");
  $("details").classList.toggle("closed", !open);
}

export function openSheet() { if (small.matches) setOpen(true); }
export const isPhone = () => small.matches;

export function startSheet() {
  setOpen(!small.matches);
  small.addEventListener("change", () => { $("details").style.removeProperty("height"); setOpen(!small.matches); });
  $("sheet").addEventListener("click", () => setOpen($("sheet").getAttribute("aria-expanded") !== "true"));
  $("sheet").addEventListener("pointerdown", (event) => {
    const from = event.clientY;
    const move = (moved) => {
      if (Math.abs(moved.clientY - from) < 6) return;
      const share = 1 - moved.clientY / window.innerHeight;
      setOpen(share > LOWEST / 2);
      $("details").style.height = `${100 * Math.max(LOWEST, Math.min(HIGHEST_SHEET, share))}%`;
    };
    $("sheet").setPointerCapture(event.pointerId);
    $("sheet").addEventListener("pointermove", move);
    $("sheet").addEventListener("pointerup", () => $("sheet").removeEventListener("pointermove", move), { once: true });
  });
  new ResizeObserver(refit).observe($("canvas"));
  $("more").addEventListener("click", () => toggleTools($("more").getAttribute("aria-expanded") !== "true"));
  document.addEventListener("click", (event) => { if (!$("more").contains(event.target)) toggleTools(false); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") toggleTools(false); });
}

function toggleTools(open) {
  $("more").setAttribute("aria-expanded", String(open));
  $("tools").classList.toggle("open", open);
}
