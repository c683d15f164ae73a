"use strict";
// The page of `bbn explore`: the server lays the network out and answers questions; this draws and asks.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = { belief: "#4878a8", observed: "#b5541c", likely: "#8a6d1f", track: "#eef1f4", edge: "#78828f",
                  head: "#e8eef5", headObserved: "#f7e3d6", ink: "#1b1f24", arc: "#57606a" };
let model, cards = new Map(), evidence = {}, past = [], beliefs = {}, chosen = null, tab = "node", scale = 1, asked = 0;

function element(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function html(name, text = null, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function ask(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function say(text, wrong = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", wrong);
}

const clipped = (text) => ([...text].length > 40 ? [...text].slice(0, 39).join("") + "…" : text);
const percent = (p) => (p > 0 && p < 0.0005 ? "<0.1%" : p < 1 && p > 0.9995 ? ">99.9%" : (100 * p).toFixed(p > 0 && p < 1 ? 1 : 0) + "%");

// Drawing

function draw() {
  const svg = element("svg", { xmlns: SVG, viewBox: `-12 -12 ${model.width + 24} ${model.height + 24}`, role: "group",
    "aria-label": `Bayesian network ${model.name}, ${model.nodes.length} nodes`, "font-family": "Helvetica, Arial, 'DejaVu Sans', sans-serif" });
  element("rect", { x: -12, y: -12, width: model.width + 24, height: model.height + 24, class: "paper", fill: "#ffffff" }, svg);
  for (const arc of model.arcs) {
    const line = element("path", { class: "arc", d: arc.path, fill: "none", stroke: COLOURS.arc, "stroke-width": 1.2 }, svg);
    element("title", {}, line, `${arc.parent} → ${arc.child}`);
    element("polygon", { class: "arrow", points: arc.head, fill: COLOURS.arc }, svg);
  }
  for (const node of model.nodes) cards.set(node.name, drawCard(svg, node));
  $("canvas").replaceChildren(svg);
  rove(cards.values().next().value.stops[0]);
  fit();
}

function drawCard(svg, node) {
  const group = element("g", { transform: `translate(${node.x} ${node.y})` }, svg);
  const card = element("rect", { class: "card", width: node.width, height: node.height, rx: 4, fill: "#ffffff", stroke: COLOURS.edge }, group);
  const title = element("g", { class: "title", tabindex: -1, role: "button", "aria-label": `Choose ${node.name}` }, group);
  const head = element("rect", { class: "hit head", x: 0.8, y: 0.8, width: node.width - 1.6, height: model.title - 1.6, rx: 3.5, fill: COLOURS.head }, title);
  element("text", { x: node.width / 2, y: 14, "font-size": 11, "font-weight": 600, "text-anchor": "middle", fill: COLOURS.ink }, title, clipped(node.name));
  title.addEventListener("click", () => choose(node.name));
  title.addEventListener("keydown", (event) => move(event, title, node.name, () => choose(node.name)));
  title.addEventListener("focus", () => rove(title));
  const rows = node.states.map((state, i) => {
    const top = model.title + 3 + model.row * i;
    const row = element("g", { class: "state", tabindex: -1, role: "button", "aria-pressed": "false" }, group);
    element("rect", { class: "hit", x: 2, y: top, width: node.width - 4, height: model.row, fill: "transparent" }, row);
    element("text", { x: 7, y: top + 11, "font-size": 10.5, fill: COLOURS.ink }, row, clipped(state));
    const left = 7 + node.label + 8, width = node.width - left - 7 - model.percent;
    element("rect", { class: "track", x: left, y: top + 3, width, height: 9, fill: COLOURS.track }, row);
    const bar = element("rect", { class: "share", x: left, y: top + 3, width: 0, height: 9, fill: COLOURS.belief }, row);
    const share = element("text", { x: node.width - 7, y: top + 11, "font-size": 9.5, "text-anchor": "end", fill: COLOURS.ink }, row);
    const act = () => toggle(node.name, i);
    row.addEventListener("click", act);
    row.addEventListener("keydown", (event) => move(event, row, node.name, act));
    row.addEventListener("focus", () => rove(row));
    return { row, bar, share, width };
  });
  return { node, group, card, head, rows, stops: [title, ...rows.map((row) => row.row)] };
}

// The keyboard: the picture is one stop of Tab; arrows move within a card and from card to card.

function rove(stop) {
  for (const other of document.querySelectorAll('svg [tabindex="0"]')) other.setAttribute("tabindex", -1);
  stop.setAttribute("tabindex", 0);
}

function go(stop) {
  if (!stop) return;
  stop.focus();
  stop.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function move(event, stop, name, act) {
  const all = [...cards.values()], here = all.indexOf(cards.get(name)), stops = all.flatMap((card) => card.stops);
  const across = (step) => { const card = all[here + step]; return card && card.stops[0]; };
  const along = (step) => stops[stops.indexOf(stop) + step];
  const acts = {
    "Enter": act, " ": act,
    ArrowDown: () => go(along(1)), ArrowUp: () => go(along(-1)),
    ArrowRight: () => go(across(1)), ArrowLeft: () => go(across(-1)),
    Home: () => go(stops[0]), End: () => go(all.at(-1).stops[0]),
    Escape: () => release(name), Delete: () => release(name),
  };
  if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  acts[event.key]();
}

function release(name) {
  if (name in evidence) { const next = { ...evidence }; delete next[name]; change(next); }
  else { chosen = null; paint(); showPanel(); }
}

function paint() {
  for (const [name, card] of cards) {
    const finding = evidence[name], observed = finding && "state" in finding;
    const colour = observed ? COLOURS.observed : finding ? COLOURS.likely : COLOURS.belief;
    card.card.setAttribute("stroke", finding ? colour : COLOURS.edge);
    card.head.setAttribute("fill", finding ? COLOURS.headObserved : COLOURS.head);
    card.group.setAttribute("data-kind", observed ? "observed" : finding ? "likely" : "");
    card.group.classList.toggle("chosen", name === chosen);
    card.rows.forEach((row, i) => {
      const p = observed ? Number(finding.state === i) : (beliefs[name] || [])[i] || 0;
      row.bar.setAttribute("width", row.width * p);
      row.bar.setAttribute("fill", colour);
      row.share.textContent = percent(p);
      row.row.setAttribute("aria-pressed", String(Boolean(observed && finding.state === i)));
      row.row.setAttribute("aria-label", `${name} = ${card.node.states[i]}, ${percent(p)}`);
    });
  }
  const any = Object.keys(evidence).length > 0;
  $("undo").disabled = past.length === 0;
  $("clear").disabled = !any;
}

// Evidence

function change(next) {
  past.push(JSON.stringify(evidence));
  evidence = next;
  return update();
}

function undo() {
  evidence = JSON.parse(past.pop());
  return update();
}

function toggle(name, state) {
  const next = { ...evidence }, now = next[name];
  if (now && now.state === state) delete next[name]; else next[name] = { state };
  chosen = name;
  return change(next);
}

async function update() {
  const turn = ++asked, start = performance.now();
  history.replaceState(null, "", fragment() || location.pathname);
  try {
    const told = await ask("beliefs", { evidence });
    if (turn !== asked) return;
    beliefs = told.beliefs;
    say(`P(evidence) = ${told.log_evidence > -700 ? Math.exp(told.log_evidence).toPrecision(4) : "exp(" + told.log_evidence.toFixed(1) + ")"}, ${Math.round(performance.now() - start)} ms`);
  } catch (error) {
    if (turn !== asked) return;
    say(error.message, true);
  }
  paint();
  showPanel();
}

function fragment() {
  if (!Object.keys(evidence).length) return "";
  return "#e=" + encodeURIComponent(JSON.stringify(evidence));
}

function fromFragment() {
  if (!location.hash.startsWith("#e=")) return {};
  try {
    const read = JSON.parse(decodeURIComponent(location.hash.slice(3)));
    const known = {};
    for (const [name, finding] of Object.entries(read)) if (cards.has(name)) known[name] = finding;
    return known;
  } catch { say("the link's evidence could not be read", true); return {}; }
}

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
  if (tab !== "mpe" && !chosen) { panel.replaceChildren(html("p", "Choose a node: click its name.")); return; }
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

const PANELS = {
  node() {
    const card = cards.get(chosen), finding = evidence[chosen];
    const weights = finding && finding.virtual ? finding.virtual : card.node.states.map(() => 1);
    const sliders = card.node.states.map((state, i) => {
      const slider = html("input", null, { type: "range", min: 0, max: 1, step: 0.01, value: weights[i], "aria-label": `Likelihood of ${state}` });
      slider.addEventListener("change", () => {
        const virtual = sliders.map((s) => Number(s.value));
        const next = { ...evidence };
        if (virtual.every((w) => w === virtual[0])) delete next[chosen]; else next[chosen] = { virtual };
        change(next);
      });
      return slider;
    });
    const shares = finding && "state" in finding ? card.node.states.map((_, i) => Number(i === finding.state)) : beliefs[chosen] || [];
    return [html("h2", chosen), table(["state", "belief", "likelihood"], card.node.states.map((state, i) => [state, percent(shares[i] || 0), sliders[i]])),
            html("p", "The sliders give virtual evidence: how probable your observation is in each state.")];
  },
  async mpe() {
    const told = await ask("mpe", { evidence });
    return [html("h2", "Most probable explanation"), html("p", `ln P = ${told.log_probability.toPrecision(6)}`),
            table(["node", "state"], Object.entries(told.states))];
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
    if (finding && "state" in finding) return [html("p", `${chosen} is observed; choose a node that is not.`)];
    const shares = beliefs[chosen] || [], state = shares.indexOf(Math.max(...shares));
    const told = await ask("sensitivity", { target: chosen, state, evidence });
    const most = Math.max(1e-12, ...told.entries.map((entry) => Math.abs(entry.derivative)));
    return [html("h2", `P(${chosen} = ${cards.get(chosen).node.states[state]}) by table entry`),
            table(["entry", "derivative", ""], told.entries.map((entry) => [entry.name, entry.derivative.toPrecision(3), bar(Math.abs(entry.derivative) / most)]))];
  },
};

// Controls

function zoom(to) {
  scale = Math.max(0.1, Math.min(4, to));
  const svg = $("canvas").querySelector("svg");
  svg.setAttribute("width", (model.width + 24) * scale);
  svg.setAttribute("height", (model.height + 24) * scale);
}

function fit() {
  const room = $("canvas");
  zoom(Math.max(0.6, Math.min(1.4, (room.clientWidth - 30) / (model.width + 24), (room.clientHeight - 30) / (model.height + 24))));
}

function find(name) {
  const card = cards.get(name);
  if (!card) return;
  card.group.scrollIntoView({ block: "center", inline: "center" });
  card.stops[0].focus();
  choose(name);
}

function exportSvg() {
  const text = new XMLSerializer().serializeToString($("canvas").querySelector("svg"));
  const link = html("a", null, { href: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })), download: `${model.name || "network"}.svg` });
  link.click();
  URL.revokeObjectURL(link.href);
}

async function share() {
  try { await navigator.clipboard.writeText(location.href); say("link copied"); }
  catch { say(location.href); }
}

async function start() {
  model = await (await fetch("model")).json();
  document.title = `${model.name || "network"} · bbn`;
  $("title").textContent = model.name || "network";
  for (const node of model.nodes) $("names").append(html("option", null, { value: node.name }));
  draw();
  $("search").addEventListener("change", () => find($("search").value));
  $("undo").addEventListener("click", undo);
  $("clear").addEventListener("click", () => change({}));
  $("smaller").addEventListener("click", () => zoom(scale / 1.2));
  $("larger").addEventListener("click", () => zoom(scale * 1.2));
  $("fit").addEventListener("click", fit);
  $("share").addEventListener("click", share);
  $("export").addEventListener("click", exportSvg);
  const tabs = Object.keys(PANELS);
  for (const [i, name] of tabs.entries()) {
    const button = $("tab-" + name), open = (j) => { tab = tabs.at(j % tabs.length); showPanel(); $("tab-" + tab).focus(); };
    button.addEventListener("click", () => { tab = name; showPanel(); });
    button.addEventListener("keydown", (event) => {
      const turn = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
      if (turn !== undefined) { event.preventDefault(); open(turn); }
    });
  }
  $("search").addEventListener("keydown", (event) => { if (event.key === "Escape") $("search").value = ""; });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing) { event.preventDefault(); $("search").focus(); }
    if (event.key === "z" && (event.ctrlKey || event.metaKey) && !typing && past.length) { event.preventDefault(); undo(); }
  });
  evidence = fromFragment();
  await update();
}

start().catch((error) => say(error.message, true));
