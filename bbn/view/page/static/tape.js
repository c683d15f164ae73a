"use strict";
// Answers without a server: an interpreter of the junction tree's tape (see `bbn/kernels/contracts/tape.py` for its words).
// Collect and distribute with division on Float64Arrays, each message normalised and its log counted; 0/0 is 0.

const OPS = { CLEAR: 0, SCALAR: 1, SWEEP: 2, RESCALE: 3, NORM: 4, TOTAL: 5, RATIO: 6, FINISH: 7 };
const LIKELY = 1, ADD = 2, OUT = 3, LARGEST_TOTAL = 2 ** 200;

export class Program {
  constructor(layout, cards, maximise) {
    this.layout = layout;
    this.cards = cards;
    this.maximise = maximise;
    this.once = decode(Int32Array.from(layout.once));
    this.run = decode(Int32Array.from(layout.run));
    this.scratch = new Float64Array(Math.max(1, ...this.once.concat(this.run).map((step) => step.size || 0)));
  }

  // The answer, the potentials and the log of the total, given a likelihood for some variables and the tables.
  solve(tables, likelihoods) {
    const base = new Float64Array(this.layout.base_size), out = new Float64Array(this.layout.out_size);
    let log = this.execute(this.once, [tables, base, base, out], likelihoods);
    if (!this.run.length || log === -Infinity) return { out, work: base, base, log };
    const work = new Float64Array(this.layout.work_size);
    log += this.execute(this.run, [tables, base, work, out], likelihoods);
    return { out, work, base, log };
  }

  execute(steps, buffers, likelihoods) {
    const work = buffers[2], out = buffers[OUT];
    let log = 0;
    for (const step of steps) {
      const { op, a, n } = step;
      let scale = 1;
      switch (op) {
        case OPS.CLEAR: work.fill(0, a, a + n); break;
        case OPS.SCALAR: scale = buffers[0][a]; break;
        case OPS.SWEEP: this.sweep(step, buffers, likelihoods); break;
        case OPS.RESCALE: scale = this.divide(work, a, n, true); break;
        case OPS.NORM: scale = this.divide(work, a, n, this.maximise); break;
        case OPS.TOTAL: scale = work[a]; break;
        case OPS.RATIO: this.ratio(work, buffers[step.old], a, n, step.count); break;
        case OPS.FINISH:
          if (!(this.divide(out, a, n, false) > 0)) throw new Error("a number left the range of a double; ask Python instead");
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
    const far = total > 0 && (total < 1 / LARGEST_TOTAL || total > LARGEST_TOTAL), by = far ? 2 ** -Math.round(Math.log2(total)) : 1;
    for (let i = 0; i < n; i++) {
      const now = work[fresh + i] * by, before = old[message + i];
      work[message + i] = now;
      work[fresh + i] = before > 0 ? now / before : 0;
    }
  }

  // A sweep is taken whole: its slabs matter to caches alone.
  sweep({ region, size, left, keep, parts }, buffers, likelihoods) {
    const cells = this.scratch;
    if (left) cells.set(buffers[left].subarray(region, region + size)); else cells.fill(1, 0, size);
    for (const { kind, buffer, offset, dims, strides } of parts) {
      const other = kind === LIKELY ? likelihoods[offset] : buffers[buffer];
      if (other) this.walk(cells, other, kind === LIKELY ? 0 : offset, dims, strides, kind === ADD);
    }
    if (keep) buffers[2].set(cells.subarray(0, size), region);
  }

  // Go over the cells in C order while the strides walk the other operand; the last axis is the inner loop.
  walk(cells, other, offset, dims, strides, add) {
    const last = dims.length - 1, n = last < 0 ? 1 : dims[last], stride = last < 0 ? 0 : strides[last], index = new Int32Array(Math.max(0, last));
    for (let i = 0, at = offset, k = 0; k >= 0;) {
      if (!add) for (let j = 0, from = at; j < n; j++, i++, from += stride) cells[i] *= other[from];
      else if (this.maximise) for (let j = 0, to = at; j < n; j++, i++, to += stride) other[to] = Math.max(other[to], cells[i]);
      else for (let j = 0, to = at; j < n; j++, i++, to += stride) other[to] += cells[i];
      for (k = last - 1; k >= 0; k--) {
        at += strides[k];
        if (++index[k] < dims[k]) break;
        at -= dims[k] * strides[k];
        index[k] = 0;
      }
    }
  }
}

// The tape's instructions as objects, so that each is read once.
function decode(tape) {
  const steps = [];
  for (let at = 0; at < tape.length; at += tape[at + 1]) {
    const f = at + 2, step = { op: tape[at], a: tape[f], n: tape[f + 1], count: tape[f + 2], old: tape[f + 3] };
    steps.push(step.op === OPS.SWEEP ? { ...step, ...decodeSweep(tape, f) } : step);
  }
  return steps;
}

function decodeSweep(tape, f) {
  const [region, size, left, keep, , outer, count] = tape.subarray(f, f + 7), parts = [];
  for (let step = 0, at = f + 7 + outer; step < count; step++, at += tape[at + 1]) {
    const moves = tape[at + 4], inner = tape[at + 5], s = at + 6 + 2 * moves;
    parts.push({ kind: tape[at], buffer: tape[at + 2], offset: tape[at + 3],
      dims: [...tape.subarray(f + 7, f + 7 + outer), ...tape.subarray(s + outer, s + outer + inner)],
      strides: [...tape.subarray(s, s + outer), ...tape.subarray(s + outer + inner, s + outer + 2 * inner)] });
  }
  return { region, size, left, keep, parts };
}
