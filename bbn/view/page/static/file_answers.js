"use strict";
// What a page without a server answers from what it holds: beliefs, the most probable explanation, tables.
import { byName } from "./dom.js";
import { Program } from "./tape.js";
import { fitMarginals, jointOf } from "./soft.js";
import { conditioned, mixtureDensity } from "./gaussians.js";

export function fileAnswers(data) {
  const tables = Float64Array.from(data.tables), number = new Map(data.names.map((name, v) => [name, v])), cards = data.cards;
  const sums = new Program(data.sums, cards, false), maxima = new Program(data.maxima, cards, true);
  const cardOf = byName(Object.fromEntries(data.names.map((name, v) => [name, cards[v]]))), parentsIn = byName(data.parents);
  const switches = [...new Set(data.numbers.flatMap((g) => g.discrete))];
  const settings = switches.reduce((n, name) => n * cardOf[name], 1);
  const oneHot = (card, code) => Array.from({ length: card }, (_, i) => Number(i === code));

  // The tables after what is done, a likelihood per discrete finding, soft ones apart, and the numbers. Doing X = x replaces
  // P(X | parents) by 1.
  function asked(evidence) {
    const given = { tables, likelihoods: {}, soft: byName(), observed: byName(), done: byName() };
    for (const [name, finding] of Object.entries(evidence)) {
      if (!number.has(name)) { (("do" in finding) ? given.done : given.observed)[name] = finding.do ?? finding.number; continue; }
      const v = number.get(name), code = finding.do ?? finding.state;
      if ("soft" in finding) { given.soft[name] = finding.soft; continue; }
      given.likelihoods[v] = finding.virtual || oneHot(cards[v], code);
      if (!("do" in finding)) continue;
      if (given.tables === tables) given.tables = tables.slice();
      given.tables.fill(1, data.table_ptr[data.factor[v]], data.table_ptr[data.factor[v] + 1]);
    }
    return given;
  }

  // One run of the tree: the log of the total, and the marginal of each variable.
  function runTree(given, likelihoods) {
    const { out, log } = sums.solve(given.tables, likelihoods), start = data.sums.out;
    return { log, marginal: (v) => (start[v] < 0 ? [1] : out.subarray(start[v], start[v] + cards[v])) };
  }

  // With numbers: a run for each setting of what they depend on; the marginals are the weighted sum.
  function runAll(given, likelihoods) {
    if (!data.numbers.length) return runTree(given, likelihoods);
    const runs = [];
    for (let s = 0; s < settings; s++) {
      const setting = byName(), fixed = { ...likelihoods };
      switches.reduceRight((rest, name) => { setting[name] = rest % cardOf[name]; return Math.floor(rest / cardOf[name]); }, s);
      for (const name of switches) {
        const v = number.get(name), before = fixed[v] || null, hot = oneHot(cards[v], setting[name]);
        fixed[v] = before ? hot.map((x, i) => x * before[i]) : hot;
      }
      if (switches.some((name) => !fixed[number.get(name)].some((x) => x > 0))) continue;
      const numbers = conditioned(data.numbers, setting, cardOf, given.observed, given.done);
      if (numbers.log === -Infinity) continue;
      const told = runTree(given, fixed);
      if (told.log > -Infinity) runs.push({ ...told, log: told.log + numbers.log, numbers });
    }
    const most = Math.max(-Infinity, ...runs.map((run) => run.log)), total = runs.reduce((sum, run) => sum + Math.exp(run.log - most), 0);
    for (const run of runs) run.weight = Math.exp(run.log - most) / total;
    const marginal = (v) => oneHot(cards[v], -1).map((_, i) => runs.reduce((sum, run) => sum + run.weight * run.marginal(v)[i], 0));
    const mixture = (i) => mixtureDensity(runs.map((run) => ({ weight: run.weight, mean: run.numbers.mean[i], variance: run.numbers.variance[i] })));
    return { log: runs.length ? most + Math.log(total) : -Infinity, marginal, mixture };
  }

  const possible = (log) => { if (log === -Infinity) throw new Error("the evidence has probability zero"); return log; };

  // Soft findings become likelihoods; the log stays that of the others.
  function softened(given, run) {
    const names = Object.keys(given.soft);
    if (!names.length) return given.likelihoods;
    const firm = run(given.likelihoods), variables = names.map((name) => number.get(name)), wanted = names.map((name) => given.soft[name]);
    possible(firm.log);
    names.forEach((name, k) => {
      const has = firm.marginal(variables[k]);
      if (wanted[k].some((want, i) => want > 0 && has[i] === 0)) throw new Error(`soft evidence on '${name}' gives weight to a state that the other findings exclude`);
    });
    const sizes = variables.map((v) => cards[v]), joint = jointOf(run, given.likelihoods, variables, sizes, firm.log);
    const fitted = fitMarginals(joint, sizes, wanted), made = { ...given.likelihoods };
    variables.forEach((v, k) => { made[v] = fitted[k]; });
    return made;
  }

  function beliefs({ evidence }) {
    const given = asked(evidence), run = (likelihoods) => runAll(given, likelihoods);
    const told = run(softened(given, run)), made = byName();
    possible(told.log);
    for (const name of Object.keys(cardOf)) made[name] = [...told.marginal(number.get(name))];
    data.numbers.forEach((g, i) => { if (!(g.name in given.observed)) made[g.name] = told.mixture(i); });
    return { beliefs: made, log_evidence: told.log };
  }

  // Cliques come parents first; what is decided of the separator picks a row, and its largest cell decides the rest.
  function mpe({ evidence }) {
    const given = asked(evidence), likelihoods = softened(given, (likely) => runTree(given, likely));
    const { work, base, log } = maxima.solve(given.tables, likelihoods), tree = data.maxima, states = [];
    possible(log);
    for (let c = 0; c + 1 < tree.axes_ptr.length; c++) {
      const axes = tree.axes.slice(tree.axes_ptr[c], tree.axes_ptr[c + 1]), shared = tree.separator[c];
      let row = 0, columns = 1, best = 0;
      for (const v of axes.slice(0, shared)) row = row * cards[v] + states[v];
      for (const v of axes.slice(shared)) columns *= cards[v];
      const cells = (tree.dynamic[c] ? work : base).subarray(tree.clique[c] + row * columns, tree.clique[c] + (row + 1) * columns);
      for (let i = 1; i < columns; i++) if (cells[i] > cells[best]) best = i;
      for (const v of axes.slice(shared).reverse()) { states[v] = best % cards[v]; best = Math.floor(best / cards[v]); }
    }
    const named = byName();
    for (const node of data.model.nodes) {
      if (!("state" in (evidence[node.name] || {}))) named[node.name] = node.states[states[number.get(node.name)] || 0];
    }
    return { states: named, log_probability: log };
  }

  return { beliefs, mpe, table: (request) => tableRows(data, parentsIn, tables, number, request) };
}

const SHOWN_ROWS = 200;

// The rows of a node's table that agree with the evidence, if asked, and hold each word (as `bbn/view/page/tables.py`).
function tableRows(data, parentsIn, tables, number, { target, evidence, agree, words: asked = "" }) {
  const gaussian = data.numbers.find((g) => g.name === target), parents = gaussian ? gaussian.discrete : parentsIn[target];
  if (!parents) throw new Error("this node has no table of its own: its causes act one by one");
  const states = new Map(data.model.nodes.map((node) => [node.name, node.states])), wanted = asked.toLowerCase().split(/\s+/).filter(Boolean);
  const sizes = parents.map((name) => states.get(name).length), total = sizes.reduce((a, b) => a * b, 1), made = { rows: [], codes: [], more: false };
  const fixed = parents.map((name) => (agree && evidence[name] ? evidence[name].state ?? evidence[name].do : undefined));
  const from = gaussian ? 0 : data.table_ptr[data.factor[number.get(target)]], card = gaussian ? 0 : data.cards[number.get(target)];
  for (let row = 0; row < total; row++) {
    const codes = [];
    sizes.reduceRight((rest, size) => { codes.unshift(rest % size); return Math.floor(rest / size); }, row);
    if (codes.some((code, i) => fixed[i] !== undefined && fixed[i] !== code)) continue;
    const labels = parents.map((name, i) => `${name}=${states.get(name)[codes[i]]}`.toLowerCase());
    if (!wanted.every((word) => labels.some((label) => label.includes(word)))) continue;
    if (made.rows.length === SHOWN_ROWS) { made.more = true; break; }
    const cells = gaussian ? [gaussian.means[row], gaussian.variances[row], ...gaussian.weights[row]] : [...tables.subarray(from + row * card, from + (row + 1) * card)];
    made.rows.push([...parents.map((name, i) => states.get(name)[codes[i]]), ...cells]);
    made.codes.push(codes);
  }
  const columns = gaussian ? ["mean", "variance", ...gaussian.parents.map((name) => `× ${name}`)] : states.get(target);
  return { ...made, parents, columns, total };
}
