"use strict";
// Who answers: the file itself, the notebook that holds the page in a frame, or the server that sent it.
import { $ } from "./dom.js";
import { fileAnswers } from "./file_answers.js";

const waiting = new Map();
const page = Math.random().toString(36).slice(2);  // several views of one widget share its messages
let answers = null, port = null, first = null, sent = 0, follow = () => {};

// Find out who answers; what there is to draw.
export async function connect() {
  if (!$("network")) return (await fetch("model")).json();
  const data = JSON.parse($("network").textContent);
  if (data.sums) answers = fileAnswers(data);
  else await new Promise((ready) => { listen(ready); });
  return data.model;
}

export const isServed = () => answers === null && port === null;

// In a notebook: the frame's parent sends a port, and through it answers, and evidence that was set in Python.
function listen(ready) {
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || event.data !== "bbn-page" || !event.ports[0]) return;
    port = event.ports[0];
    port.onmessage = ({ data }) => {
      if ("findings" in data) {
        if (first) follow(data.findings); else { first = data.findings; ready(); }
        return;
      }
      const { done, failed } = waiting.get(data.id) || {};
      waiting.delete(data.id);
      if (done) { if ("error" in data) failed(new Error(data.error)); else done(data.told); }
    };
    port.postMessage({ ready: true });
  });
}

// In a notebook, what is set in Python when the page starts: the page begins with it, as it would tell Python its own.
export const given = () => first;

export function onFindings(act) {
  follow = act;
  if (port) port.postMessage({ ready: true });
}

export function tellFindings(findings) {
  if (port) port.postMessage({ findings });
}

export async function ask(path, body) {
  if (answers) return answers[path](body);
  if (port) {
    const id = `${page}-${++sent}`;
    return new Promise((done, failed) => { waiting.set(id, { done, failed }); port.postMessage({ id, path, body }); });
  }
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}
