"use strict";
// Answers without a server: an interpreter of the junction tree's tape (see `bbn/kernels/contracts/tape.py` for its words).
// Collect and distribute with division on Float64Arrays, each message normalised and its log counted; 0/0 is 0.

const OPS = { CLEAR: 0, SCALAR: 1, SWEEP: 2, RESCALE: 3, NORM: 4, TOTAL: 5, RATIO: 6, FINISH: 7 };
const [MUL, LIKELY, ADD] = [0, 1, 2], OUT = 3;

class Program {
  constructor(layout, cards, maximise) {
    Object.assign(this, layout);
    this.cards = cards;
    this.maximise = maximise;
  }

  // The answer, the potentials and the log of the total, given a likelihood for some variables and the tables.
  solve(tables, likelihoods) {
    const base = new Float64Array(this.base_size), out = new Float64Array(this.out_size);
    let log = this.execute(this.once, [tables, base, base, out], likelihoods);
    if (!this.run_tape.length || log === -Infinity) return { out, work: base, base, log };
    const work = new Float64Array(this.work_size);
    log += this.execute(this.run_tape, [tables, base, work, out], likelihoods);
    return { out, work, base, log };
  }

  execute(tape, buffers, likelihoods) {
    const work = buffers[2], out = buffers[OUT];
    let log = 0;
    for (let at = 0; at < tape.length; at += tape[at + 1]) {
      const f = at + 2, a = tape[f], n = tape[f + 1];
      let scale = 1;
      switch (tape[at]) {
        case OPS.CLEAR: work.fill(0, a, a + n); break;
        case OPS.SCALAR: scale = buffers[0][a]; break;
        case OPS.SWEEP: this.sweep(tape, f, buffers, likelihoods); break;
        case OPS.RESCALE: scale = this.divide(work, a, n, true); break;
        case OPS.NORM: scale = this.divide(work, a, n, this.maximise); break;
        case OPS.TOTAL: scale = work[a]; break;
        case OPS.RATIO: this.ratio(work, buffers[tape[f + 3]], a, n, tape[f + 2]); break;
        case OPS.FINISH: if (!(this.divide(out, a, n, false) > 0)) throw new Error("a number left the range of a double; ask Python instead"); break;
      }
      if (scale !== 1) log += Math.log(scale);
      if (log === -Infinity) return log;
    }
    return log;
  }

  divide(cells, from, n, byLargest) {
    let total = 0;
    for (let i = from; i < from + n; i++) total = byLargest ? Math.max(total, cells[i]) : total + cells[i];
    if (total > 0) for (let i = from; i < from + n; i++) cells[i] /= total;
    return total;
  }

  ratio(work, old, fresh, message, n) {
    let total = 0;
    for (let i = 0; i < n; i++) total += work[fresh + i];
    const by = total > 0 && (total < 2 ** -200 || total > 2 ** 200) ? 2 ** -Math.round(Math.log2(total)) : 1;
    for (let i = 0; i < n; i++) {
      const now = work[fresh + i] * by, before = old[message + i];
      work[message + i] = now;
      work[fresh + i] = before > 0 ? now / before : 0;
    }
  }

  // A sweep is taken whole: its slabs matter to caches alone.
  sweep(tape, f, buffers, likelihoods) {
    const [region, size, left, keep, , outer, count] = tape.subarray(f, f + 7);
    const cells = new Float64Array(size);
    if (left) cells.set(buffers[left].subarray(region, region + size)); else cells.fill(1);
    let at = f + 7 + outer;
    for (let step = 0; step < count; step++, at += tape[at + 1]) {
      const kind = tape[at], buffer = tape[at + 2], offset = tape[at + 3], moves = tape[at + 4], inner = tape[at + 5];
      const dims = [...tape.subarray(f + 7, f + 7 + outer)], s = at + 6 + 2 * moves;
      dims.push(...tape.subarray(s + outer, s + outer + inner));
      const strides = [...tape.subarray(s, s + outer), ...tape.subarray(s + outer + inner, s + outer + 2 * inner)];
      const other = kind === LIKELY ? likelihoods[offset] : buffers[buffer];
      if (kind === LIKELY && !other) continue;
      this.walk(cells, other, kind === LIKELY ? 0 : offset, dims, strides, kind === ADD);
    }
    if (keep) buffers[2].set(cells, region);
  }

  // Go over the cells in C order while the strides walk the other operand.
  walk(cells, other, offset, dims, strides, add) {
    const d = dims.length, index = new Int32Array(d);
    let at = offset;
    for (let i = 0; i < cells.length; i++) {
      if (!add) cells[i] *= other[at];
      else if (this.maximise) other[at] = Math.max(other[at], cells[i]);
      else other[at] += cells[i];
      for (let k = d - 1; k >= 0; k--) {
        at += strides[k];
        if (++index[k] < dims[k]) break;
        at -= dims[k] * strides[k];
        index[k] = 0;
      }
    }
  }
}

(function () {
  const data = JSON.parse(document.getElementById("network").textContent);
  const tables = Float64Array.from(data.tables), number = new Map(data.names.map((name, v) => [name, v]));
  const program = (layout, maximise) => new Program({ ...layout, once: Int32Array.from(layout.once), run_tape: Int32Array.from(layout.run) }, data.cards, maximise);
  const sums = program(data.sums, false), maxima = program(data.maxima, true);

  // The tables after what is done, and a likelihood for each variable with a finding. Doing X = x replaces P(X | parents) by 1.
  function asked(evidence) {
    const likelihoods = {}, acted = Object.values(evidence).some((finding) => "do" in finding) ? tables.slice() : tables;
    for (const [name, finding] of Object.entries(evidence)) {
      const v = number.get(name), code = "do" in finding ? finding.do : finding.state;
      likelihoods[v] = finding.virtual || Array.from({ length: data.cards[v] }, (_, i) => Number(i === code));
      if ("do" in finding) acted.fill(1, data.table_ptr[data.factor[v]], data.table_ptr[data.factor[v] + 1]);
    }
    return [acted, likelihoods];
  }

  const possible = (log) => { if (log === -Infinity) throw new Error("the evidence has probability zero"); return log; };

  function beliefs({ evidence }) {
    const { out, log } = sums.solve(...asked(evidence));
    possible(log);
    const made = {};
    for (const [name, v] of number) made[name] = data.sums.out[v] < 0 ? [1] : [...out.subarray(data.sums.out[v], data.sums.out[v] + data.cards[v])];
    return { beliefs: made, log_evidence: log };
  }

  // Cliques come parents first; what is decided of the separator picks a row, and its largest cell decides the rest.
  function mpe({ evidence }) {
    const [acted, likelihoods] = asked(evidence), { work, base, log } = maxima.solve(acted, likelihoods), tree = data.maxima, states = {};
    possible(log);
    for (let c = 0; c + 1 < tree.axes_ptr.length; c++) {
      const axes = tree.axes.slice(tree.axes_ptr[c], tree.axes_ptr[c + 1]), shared = tree.separator[c];
      let row = 0, columns = 1, best = 0;
      for (const v of axes.slice(0, shared)) row = row * data.cards[v] + states[v];
      for (const v of axes.slice(shared)) columns *= data.cards[v];
      const cells = (tree.dynamic[c] ? work : base).subarray(tree.clique[c] + row * columns, tree.clique[c] + (row + 1) * columns);
      for (let i = 1; i < columns; i++) if (cells[i] > cells[best]) best = i;
      for (const v of axes.slice(shared).reverse()) { states[v] = best % data.cards[v]; best = Math.floor(best / data.cards[v]); }
    }
    const named = {};
    for (const node of data.model.nodes) {
      const finding = evidence[node.name] || {};
      if (!("state" in finding)) named[node.name] = node.states[states[number.get(node.name)] || 0];
    }
    return { states: named, log_probability: log };
  }

  window.model = data.model;
  window.answer = (path, body) => ({ beliefs, mpe })[path](body);
})();
