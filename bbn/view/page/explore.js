"use strict";
// The page: evidence, panels and controls. `ask` puts a question to the server, or in an exported file to `tape.js`.

const $ = (id) => document.getElementById(id);
let evidence = {}, past = [], future = [], beliefs = {}, reference = null, chosen = null, tab = "node", asked = 0;

function html(name, text = null, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function ask(path, body) {
  if (window.answer) return window.answer(path, body);
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function shares(name) {
  const finding = evidence[name], states = cards.get(name).node.states;
  const fixed = finding && ("state" in finding ? finding.state : finding.do);
  return fixed !== undefined ? states.map((_, i) => Number(i === fixed)) : beliefs[name] || [];
}

function say(text, wrong = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", wrong);
}

function release(name) {
  if (name in evidence) { const next = { ...evidence }; delete next[name]; change(next); }
  else { chosen = null; paint(); showPanel(); }
}

// Evidence

function change(next) {
  past.push(JSON.stringify(evidence));
  future = [];
  evidence = next;
  return update();
}

function undo() {
  if (!past.length) return;
  future.push(JSON.stringify(evidence));
  evidence = JSON.parse(past.pop());
  return update();
}

function redo() {
  if (!future.length) return;
  past.push(JSON.stringify(evidence));
  evidence = JSON.parse(future.pop());
  return update();
}

function set(name, finding) {
  const next = { ...evidence };
  if (finding === null) delete next[name]; else next[name] = finding;
  return change(next);
}

function toggle(name, state) {
  const now = evidence[name];
  chosen = name;
  return set(name, now && now.state === state ? null : { state });
}

// What a finding says, in words.
function words(name, finding) {
  const states = cards.get(name).node.states;
  if ("state" in finding) return `${name} = ${states[finding.state]}`;
  if ("do" in finding) return `do ${name} = ${states[finding.do]}`;
  const left = states.filter((_, i) => finding.virtual[i] > 0);
  if (left.length === states.length - 1 && finding.virtual.every((w) => w === 0 || w === 1)) return `${name} is not ${states[finding.virtual.indexOf(0)]}`;
  return `${name} ~ ` + states.map((state, i) => `${state} ${finding.virtual[i]}`).join(", ");
}

async function update() {
  const turn = ++asked, start = performance.now();
  history.replaceState(null, "", fragment() || location.pathname);
  try {
    const told = await ask("beliefs", { evidence });
    if (turn !== asked) return;
    beliefs = told.beliefs;
    if (complaint) { say(complaint, true); complaint = ""; }
    else say(`P(evidence) = ${told.log_evidence > -700 ? Math.exp(told.log_evidence).toPrecision(4) : "exp(" + told.log_evidence.toFixed(1) + ")"}, ${Math.round(performance.now() - start)} ms`);
  } catch (error) {
    if (turn !== asked) return;
    say(error.message, true);
  }
  if (reference === null) reference = beliefs;
  paint();
  $("undo").disabled = past.length === 0;
  $("redo").disabled = future.length === 0;
  $("clear").disabled = Object.keys(evidence).length === 0;
  showPanel();
}

function fragment() {
  if (!Object.keys(evidence).length) return "";
  return "#e=" + encodeURIComponent(JSON.stringify(evidence));
}

function fromFragment() {
  if (!location.hash.startsWith("#e=")) return {};
  let read;
  try { read = JSON.parse(decodeURIComponent(location.hash.slice(3))); } catch { read = null; }
  return checked(read, "the link");
}

// The findings of a link or a file that this network knows; the status says what is wrong with the others.
function checked(read, where) {
  const known = {}, unknown = [];
  if (!read || typeof read !== "object" || Array.isArray(read)) { complaint = `${where} holds no evidence that can be read`; return known; }
  for (const [name, finding] of Object.entries(read)) {
    const node = cards.has(name) && cards.get(name).node, one = finding && typeof finding === "object" && Object.keys(finding).length === 1;
    const code = (i) => Number.isInteger(i) && i >= 0 && i < node.states.length;
    const weights = (w) => Array.isArray(w) && w.length === node.states.length && w.every((x) => Number.isFinite(x) && x >= 0) && w.some((x) => x > 0);
    if (node && one && (code(finding.state) || code(finding.do) || weights(finding.virtual))) known[name] = finding; else unknown.push(name);
  }
  if (unknown.length) complaint = `${where} has evidence that this network does not: ${unknown.slice(0, 5).join(", ")}`;
  return known;
}

let complaint = "";

// Panels

function choose(name) {
  chosen = name;
  paint();
  showPanel();
}

async function showPanel() {
  const panel = $("panel"), turn = asked;
  for (const button of document.querySelectorAll("[role=tab]")) {
    const selected = button.id === "tab-" + tab;
    button.setAttribute("aria-selected", String(selected));
    button.setAttribute("tabindex", selected ? 0 : -1);
  }
  panel.setAttribute("aria-labelledby", "tab-" + tab);
  if (!ANY.has(tab) && !chosen) { panel.replaceChildren(html("p", "Choose a node: click its name.")); return; }
  try {
    const made = await PANELS[tab]();
    if (turn === asked) panel.replaceChildren(...made);
  } catch (error) {
    panel.replaceChildren(html("p", error.message));
  }
}

function table(head, rows) {
  const made = html("table"), line = html("tr");
  for (const cell of head) line.append(cell ? html("th", cell, { scope: "col" }) : html("td"));
  made.append(line);
  for (const cells of rows) {
    const row = html("tr");
    for (const cell of cells) {
      if (cell instanceof Node) { const td = html("td"); td.append(cell); row.append(td); }
      else row.append(html("td", String(cell), typeof cell === "number" || /^[-<>0-9.]+(e-?\d+)?%?$/.test(cell) ? { class: "number" } : {}));
    }
    made.append(row);
  }
  return made;
}

function bar(share) {
  const made = html("div", null, { class: "bar" });
  made.style.width = `${Math.max(0, Math.min(1, share)) * 90}px`;
  return made;
}

function button(text, act, attributes = {}) {
  const made = html("button", text, { type: "button", ...attributes });
  made.addEventListener("click", act);
  return made;
}

function links(title, names) {
  const made = html("p", `${title}: `);
  if (!names.length) made.append("none");
  for (const name of names) made.append(button(name, () => find(name), { class: "link" }), " ");
  return made;
}

function saveText(text, name, kind) {
  const link = html("a", null, { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

const ANY = new Set(["mpe", "evidence", "changes"]);  // panels that need no chosen node
const PANELS = {
  node() {
    const node = cards.get(chosen).node, finding = evidence[chosen] || {};
    const weights = finding.virtual || node.states.map(() => 1), now = shares(chosen);
    const sliders = node.states.map((state, i) => {
      const slider = html("input", null, { type: "range", min: 0, max: 1, step: 0.01, value: weights[i], "aria-label": `Likelihood of ${state}` });
      slider.addEventListener("change", () => {
        const virtual = sliders.map((s) => Number(s.value));
        set(chosen, virtual.every((w) => w === virtual[0]) ? null : { virtual });
      });
      return slider;
    });
    const not = (i) => ({ virtual: node.states.map((_, j) => Number(j !== i)) });
    const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
    const choice = (text, label, wanted) => button(text, () => set(chosen, same(finding, wanted) ? null : wanted),
      { "aria-label": label, "aria-pressed": String(same(finding, wanted)) });
    const rows = node.states.map((state, i) => {
      const acts = html("span", null, { class: "acts" });
      acts.append(choice("see", `Observe ${state}`, { state: i }), choice("not", `Rule out ${state}`, not(i)), choice("do", `Do ${state}`, { do: i }));
      if (node.states.length === 1) acts.replaceChildren();
      return [state, percent(now[i] || 0), acts, sliders[i]];
    });
    const parents = model.arcs.filter((arc) => arc.child === chosen).map((arc) => arc.parent);
    const children = model.arcs.filter((arc) => arc.parent === chosen).map((arc) => arc.child);
    const copy = button("Copy numbers", () => navigator.clipboard.writeText(node.states.map((state, i) => `${state}\t${now[i]}`).join("\n"))
      .then(() => say("numbers copied"), () => say("the browser does not allow copying", true)));
    const made = [html("h2", chosen)];
    if (node.description) made.push(html("p", node.description));
    made.push(table(["state", "belief", "evidence", "likelihood"], rows), links("Parents", parents), links("Children", children), copy,
      html("p", "See observes a state, not rules it out, do sets it from outside and cuts the arcs from its parents. The sliders give " +
        "virtual evidence: how probable your observation is in each state."));
    return made;
  },
  async mpe() {
    const told = await ask("mpe", { evidence });
    return [html("h2", "Most probable explanation"), html("p", `ln P = ${told.log_probability.toPrecision(6)}`),
            table(["node", "state"], Object.entries(told.states))];
  },
  evidence() {
    const names = Object.keys(evidence), made = [html("h2", "Evidence")];
    if (names.length) made.push(table(["finding", ""], names.map((name) =>
      [button(words(name, evidence[name]), () => find(name), { class: "link" }), button("Remove", () => set(name, null), { "aria-label": `Remove ${words(name, evidence[name])}` })])));
    else made.push(html("p", "Nothing is observed yet."));
    const file = html("input", null, { type: "file", accept: ".json,application/json", "aria-label": "Open a case" });
    file.addEventListener("change", async () => {
      let read = null;
      try { read = JSON.parse(await file.files[0].text()).evidence; } catch { /* said below */ }
      change(checked(read, "the file"));
    });
    const acts = html("p", null, { class: "acts" });
    acts.append(button("Save case", () => saveText(JSON.stringify({ network: model.name, evidence }, null, 1), `${model.name || "network"}-case.json`, "application/json")));
    const open = html("p", "Open a case: ");
    open.append(file);
    made.push(acts, open);
    return made;
  },
  changes() {
    const moved = model.nodes.map((node) => {
      const now = shares(node.name), then = (reference || {})[node.name] || [];
      const gaps = now.map((p, i) => p - (then[i] ?? p)), i = gaps.reduce((best, gap, j) => (Math.abs(gap) > Math.abs(gaps[best]) ? j : best), 0);
      return { name: node.name, state: node.states[i], then: then[i], now: now[i], gap: gaps[i] || 0 };
    }).filter((row) => Math.abs(row.gap) > 1e-9).sort((a, b) => Math.abs(b.gap) - Math.abs(a.gap)).slice(0, 40);
    const pin = button("Compare with now", () => { reference = Object.fromEntries(model.nodes.map((node) => [node.name, shares(node.name)])); paint(); showPanel(); });
    return [html("h2", "What moved most"), pin, html("p", "The thin line below each bar is the reference: at first the beliefs when the page opened."),
      moved.length ? table(["node", "before", "now", ""], moved.map((row) =>
        [button(`${row.name} = ${row.state}`, () => find(row.name), { class: "link" }), percent(row.then), percent(row.now), bar(Math.abs(row.gap))])) : html("p", "Nothing has moved.")];
  },
  async explain() {
    const told = await ask("explain", { target: chosen, evidence });
    const most = Math.max(1e-12, ...told.steps.map((step) => step.alone));
    return [html("h2", `What moved ${chosen}`), told.steps.length ? table(["finding", "bits", ""],
      told.steps.map((step) => [step.finding, step.alone.toPrecision(3), bar(step.alone / most)])) : html("p", "There is no evidence on other nodes yet.")];
  },
  async information() {
    const told = await ask("information", { target: chosen, evidence });
    const rows = told.bits.slice(0, 25), most = Math.max(1e-12, ...rows.map((row) => row[1]));
    return [html("h2", `What would tell most about ${chosen}`), table(["node", "bits", ""], rows.map(([name, bits]) => [name, bits.toPrecision(3), bar(bits / most)]))];
  },
  async sensitivity() {
    const finding = evidence[chosen];
    if (finding && !("virtual" in finding)) return [html("p", `${chosen} is observed; choose a node that is not.`)];
    const shares = beliefs[chosen] || [], state = shares.indexOf(Math.max(...shares));
    const told = await ask("sensitivity", { target: chosen, state, evidence });
    const most = Math.max(1e-12, ...told.entries.map((entry) => Math.abs(entry.derivative)));
    return [html("h2", `P(${chosen} = ${cards.get(chosen).node.states[state]}) by table entry`),
            table(["entry", "derivative", ""], told.entries.map((entry) => [entry.name, entry.derivative.toPrecision(3), bar(Math.abs(entry.derivative) / most)]))];
  },
};

// Controls

function find(name) {
  if (!cards.has(name)) return;
  reveal(name, true);
  cards.get(name).stops[0].focus({ preventScroll: true });
  choose(name);
}

// The nodes whose name, state or description holds every word that is looked for: names that start so first.
function matches(text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  const rank = (node) => {
    const name = node.name.toLowerCase(), all = [name, node.description || "", ...node.states].join(" ").toLowerCase();
    if (!wanted.every((word) => all.includes(word))) return -1;
    return name === wanted.join(" ") ? 0 : name.startsWith(wanted[0]) ? 1 : wanted.every((word) => name.includes(word)) ? 2 : 3;
  };
  return model.nodes.map((node) => ({ node, rank: rank(node) })).filter((one) => one.rank >= 0)
    .sort((a, b) => a.rank - b.rank).slice(0, 12).map((one) => one.node);
}

function finder() {
  const input = $("search"), list = $("found");
  let at = -1;
  const close = () => { list.hidden = true; list.replaceChildren(); at = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const pick = (name) => { close(); input.value = ""; find(name); };
  const show = () => {
    const nodes = matches(input.value);
    close();
    if (!input.value.trim()) return;
    list.replaceChildren(...nodes.map((node, i) => {
      const hit = node.states.find((state) => state.toLowerCase().includes(input.value.trim().toLowerCase()));
      const option = html("li", node.name + (hit && !node.name.toLowerCase().includes(input.value.trim().toLowerCase()) ? ` (${hit})` : ""), { role: "option", id: `found-${i}`, "aria-selected": "false", "data-name": node.name });
      option.addEventListener("pointerdown", (event) => { event.preventDefault(); pick(node.name); });
      return option;
    }));
    if (!nodes.length) list.append(html("li", "nothing found", { role: "option", "aria-disabled": "true", "aria-selected": "false" }));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };
  const step = (by) => {
    const options = [...list.querySelectorAll("[data-name]")];
    if (!options.length) return;
    at = (at + by + options.length) % options.length;
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    options[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[at].id);
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); if (list.hidden) show(); step(event.key === "ArrowDown" ? 1 : -1); }
    if (event.key === "Escape") { input.value = ""; close(); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    const options = [...list.querySelectorAll("[data-name]")], best = options[Math.max(0, at)];
    if (best) pick(best.dataset.name); else if (input.value.trim()) say(`no node is like ${input.value.trim()}`, true);
  });
}

function exportSvg() {
  saveText(pictureText(), `${model.name || "network"}.svg`, "image/svg+xml");
}

async function share() {
  try { await navigator.clipboard.writeText(location.href); say("link copied"); }
  catch { say(location.href); }
}

async function start() {
  model = window.answer ? window.model : await (await fetch("model")).json();
  document.title = `${model.name || "network"} · bbn`;
  $("title").textContent = model.name || "network";
  draw();
  finder();
  $("undo").addEventListener("click", undo);
  $("redo").addEventListener("click", redo);
  $("clear").addEventListener("click", () => change({}));
  $("smaller").addEventListener("click", () => zoomBy(1 / 1.25));
  $("larger").addEventListener("click", () => zoomBy(1.25));
  $("fit").addEventListener("click", fit);
  $("share").addEventListener("click", share);
  $("export").addEventListener("click", exportSvg);
  const tabs = Object.keys(PANELS).filter((name) => !(model.hidden || []).includes(name));
  for (const [i, name] of tabs.entries()) {
    const button = $("tab-" + name), open = (j) => { tab = tabs.at(j % tabs.length); showPanel(); $("tab-" + tab).focus(); };
    button.addEventListener("click", () => { tab = name; showPanel(); });
    button.addEventListener("keydown", (event) => {
      const turn = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
      if (turn !== undefined) { event.preventDefault(); open(turn); }
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing) { event.preventDefault(); $("search").focus(); }
    if (!(event.ctrlKey || event.metaKey) || typing) return;
    if (event.key === "z" && !event.shiftKey) { event.preventDefault(); undo(); }
    if (event.key === "y" || event.key === "Z") { event.preventDefault(); redo(); }
  });
  for (const name of (model.hidden || [])) $("tab-" + name).hidden = true;
  evidence = fromFragment();
  await update();
}

start().catch((error) => say(error.message, true));
