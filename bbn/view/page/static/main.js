"use strict";
// The page: what clicks do to the evidence, asking for beliefs, and the controls.
import { $, byName, copyText, html, say, saveText, short } from "./dom.js";
import { state, takeModel, setEvidence, goBack, goForth, canUndo, canRedo, sharesOrEven, takeHistory } from "./state.js";
import { fromLink, known, pulled, toLink } from "./findings.js";
import { ask, connect, given, onFindings, tellFindings } from "./ask.js";
import { cards } from "./cards.js";
import { drawPicture, fit, paint, picture, picturePng, pictureText, reveal, zoomBy } from "./zoom.js";
import { setFocus } from "./focus.js";
import { NOTHING, compareWith } from "./cases.js";
import { showPanel, showTab, startPanels } from "./panel.js";
import { startFind } from "./find.js";
import { edit, startEdit } from "./edit.js";
import { startSheet } from "./sheet.js";
import { recall, startMemory } from "./memory.js";
import { startPrinting } from "./printing.js";

const FINGER = 44;  // pixels that a finger can hit
let turn = 0, busy = false, again = false, complaint = "";

// Evidence

export function change(evidence, suspended = state.suspended, dragging = false) {
  setEvidence(evidence, suspended, dragging);
  return update();
}

export function setFinding(name, finding, dragging = false) {
  const next = byName(state.evidence), off = byName(state.suspended);
  delete off[name];
  if (finding === null) delete next[name]; else next[name] = finding;
  return change(next, off, dragging);
}

export function toggle(name, i) {
  const now = state.evidence[name];
  state.chosen = name;
  return setFinding(name, now && now.state === i ? null : { state: i });
}

export function pull(name, i, share, dragging) {
  state.chosen = name;
  return setFinding(name, pulled(sharesOrEven(name), i, share), dragging);
}

export function setNumber(name, x, dragging) {
  const span = cards.get(name).plot ? cards.get(name).plot.range : null, fine = span ? (span[1] - span[0]) / 1000 : 0;
  state.chosen = name;
  return setFinding(name, { number: fine > 0 ? Number((Math.round(x / fine) * fine).toPrecision(6)) : x }, dragging);
}

// Switch a finding off, or on again.
export function suspend(name, off) {
  const on = byName(state.evidence), rest = byName(state.suspended);
  if (off) { rest[name] = on[name]; delete on[name]; } else { on[name] = rest[name]; delete rest[name]; }
  return change(on, rest);
}

export function release(name) {
  if (name in state.evidence) return setFinding(name, null);
  state.chosen = null;
  paint();
  return showPanel(true);
}

async function step(back) {
  const what = back ? goBack() : goForth();
  if (what === "evidence") await update();
  else if (what) await edit({ op: back ? "undo" : "redo" }, state.chosen, what);
}

// Ask for the beliefs and show them. While an answer is under way only the last change is asked for next.
export async function update() {
  keepLink();
  if (busy) { again = true; return; }
  busy = true;
  const start = performance.now(), now = ++turn;
  try {
    do { again = false; await askBeliefs(start); } while (again);
  } finally { busy = false; }
  if (now === turn) show();
}

// When no answer is under way.
async function settled() {
  while (busy) await new Promise((done) => { setTimeout(done); });
}

async function askBeliefs(start) {
  try {
    const told = await ask("beliefs", { evidence: state.evidence, current: true });
    takeBeliefs(told, "");
    if (!again) sayAnswer(told, performance.now() - start);
  } catch (error) { takeBeliefs({}, error.message); say(error.message, true); }
  if (again) show();
}

// What is known now; where there is no answer nothing is, and the last one is not shown as if it were of this evidence.
function takeBeliefs({ beliefs, worths, utilities }, trouble) {
  Object.assign(state, { beliefs: byName(beliefs), worths: byName(worths), utilities: byName(utilities), trouble });
}

function sayAnswer(told, ms) {
  const { log_evidence: log, expected_utility: worth } = told;
  const p = log > -700 ? Math.exp(log).toPrecision(4) : `exp(${log.toFixed(1)})`;
  if (complaint) { say(complaint, true); complaint = ""; }
  else {
    const density = Object.values(state.evidence).some((finding) => "number" in finding) ? "density of the evidence" : "P(evidence)";
    say((worth === undefined ? "" : `expected utility ${short(worth)}, `) + `${density} = ${p}, ${Math.round(ms)} ms`);
  }
}

function show() {
  paint();
  $("undo").disabled = !canUndo();
  $("redo").disabled = !canRedo();
  $("clear").disabled = !Object.keys(state.evidence).length && !Object.keys(state.suspended).length;
  showPanel();
}

function keepLink() {
  try { history.replaceState(null, "", toLink(state.evidence) || location.pathname + location.search); } catch { /* a frame without an address */ }
  tellFindings(state.evidence);
}

function takeLink() {
  const read = fromLink(location.hash);
  complaint = read.complaint;
  return read.findings;
}

// Looking

export function choose(name) {
  state.chosen = name;
  paint();
  return showTab("node");
}

export function goTo(name) {
  if (!cards.has(name)) return;
  if (!cards.get(name).shown) setFocus(name, "all");
  reveal(name, true);
  cards.get(name).stops[0].focus({ preventScroll: true });
  choose(name);
}

// Whether a finger hit something too small for it; the node is chosen then, and the panel has room for fingers.
export function tap(event, hit) {
  return event.pointerType === "touch" && hit.getBoundingClientRect().height < FINGER;
}

// A finger beside a small card means that card.
export function chooseNear(event) {
  if (event.pointerType !== "touch") return;
  const away = (card) => {
    const box = card.frame.getBoundingClientRect();
    return Math.hypot(Math.max(box.left - event.clientX, 0, event.clientX - box.right), Math.max(box.top - event.clientY, 0, event.clientY - box.bottom));
  };
  const near = [...cards.values()].filter((card) => card.shown).map((card) => [away(card), card]).sort((a, b) => a[0] - b[0])[0];
  if (near && near[0] < FINGER / 2) choose(near[1].node.name);
}

// Controls

function startControls() {
  const name = () => state.model.name || "network";
  const clicks = {
    undo: () => step(true), redo: () => step(false), clear: () => change({}, {}), smaller: () => zoomBy(1 / 1.25), larger: () => zoomBy(1.25), fit,
    share: () => copyText(location.href, "link copied"),
    "export": () => saveText(pictureText(), `${name()}.svg`, "image/svg+xml"),
    "export-png": () => picturePng((address) => html("a", null, { href: address, download: `${name()}.png` }).click()),
    "show-all": () => setFocus(null, "all"),
  };
  for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", act);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "range" && event.target.type !== "checkbox";
    if (event.key === "/" && !typing) { event.preventDefault(); $("search").focus(); }
    if (!(event.ctrlKey || event.metaKey) || typing) return;
    if (event.key === "z" && !event.shiftKey) { event.preventDefault(); step(true); }
    if (event.key === "y" || event.key === "Z") { event.preventDefault(); step(false); }
  });
  window.addEventListener("hashchange", () => change(takeLink(), {}));
}

async function start() {
  takeModel(await connect());
  document.title = `${state.model.name || "network"} · bbn`;
  $("title").textContent = state.model.name || "network";
  startSheet();
  recall();
  drawPicture();
  startFind();
  startPanels();
  startControls();
  if (state.model.edit) startEdit();
  takeHistory(...(state.model.history || [0, 0]));
  startMemory();
  startPrinting();
  state.evidence = given() ? known(given(), "Python").findings : takeLink();
  await update();
  if (Object.keys(state.evidence).length) await compareWith(NOTHING, {}).catch((error) => say(error.message, true));
  else state.reference = { label: NOTHING, evidence: {}, beliefs: state.beliefs };
  paint();
  onFindings((findings) => { if (toLink(findings) !== toLink(state.evidence)) change(known(findings, "Python").findings, {}); });
  window.bbn = { state, picture, ask, settled };  // for a look from the console
  document.body.dataset.ready = "yes";
}

start().catch((error) => say(error.message, true));
