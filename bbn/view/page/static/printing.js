"use strict";
// Printing: the whole picture, with every card's rows, as large as the paper allows; the style sheet unfolds the rest.
import { picture, placed, wholePicture } from "./zoom.js";

export function startPrinting() {
  const media = window.matchMedia("print");
  media.addEventListener("change", () => setPrinting(media.matches));
  window.addEventListener("beforeprint", () => setPrinting(true));
  window.addEventListener("afterprint", () => setPrinting(false));
}

function setPrinting(printing) {
  if (printing === picture.printing) return;
  picture.printing = printing;
  if (printing) {
    const [x, y, width, height] = wholePicture();
    picture.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    picture.svg.setAttribute("class", "picture cards");
    picture.view.removeAttribute("transform");
  } else {
    picture.svg.removeAttribute("viewBox");
    picture.level = "";
    placed();
  }
}
