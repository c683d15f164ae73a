"use strict";
// Soft evidence: likelihoods under which some marginals are the ones asked for, by iterative proportional fitting on the
// joint of the variables concerned (the same steps as `bbn/inference/exact/soft.py`).

const TOLERANCE = 1e-11, FIRST_SWEEPS = 50, FINE = 1e-14, SWEEPS = 20000, MOST_RUNS = 2000;

// `joint` gives the joint of the names, in C order. The answer is one likelihood per name.
export function fitMarginals(joint, cards, wanted) {
  const likelihoods = wanted.map((want) => want.map(() => 1)), current = Float64Array.from(joint);
  for (let sweep = 0, off; sweep < SWEEPS; sweep++) {
    off = 0;
    for (let axis = 0; axis < cards.length; axis++) {
      const inner = cards.slice(axis + 1).reduce((a, b) => a * b, 1), card = cards[axis], has = new Float64Array(card);
      const code = (i) => Math.floor(i / inner) % card;
      for (let i = 0; i < current.length; i++) has[code(i)] += current[i];
      const ratio = wanted[axis].map((want, j) => { off = Math.max(off, Math.abs(has[j] - want)); return has[j] > 0 ? want / has[j] : 0; });
      likelihoods[axis] = likelihoods[axis].map((x, j) => x * ratio[j]);
      for (let i = 0; i < current.length; i++) current[i] *= ratio[code(i)];
    }
    if (off <= (sweep < FIRST_SWEEPS ? TOLERANCE : FINE)) return likelihoods;
  }
  throw new Error("the soft findings cannot hold together");
}

// The joint of some variables, by a run for each setting of all but the last. `run(likelihoods)` gives a log and marginals.
export function jointOf(run, likelihoods, variables, cards, log) {
  const runs = cards.slice(0, -1).reduce((a, b) => a * b, 1), last = cards.length - 1, made = [];
  if (runs > MOST_RUNS) throw new Error("too many soft findings at once for a page without a server");
  for (let setting = 0; setting < runs; setting++) {
    const given = { ...likelihoods };
    for (let axis = last - 1, rest = setting; axis >= 0; rest = Math.floor(rest / cards[axis]), axis--) {
      given[variables[axis]] = Array.from({ length: cards[axis] }, (_, i) => Number(i === rest % cards[axis]));
    }
    const told = run(given);
    for (let i = 0; i < cards[last]; i++) made.push(told.log === -Infinity ? 0 : Math.exp(told.log - log) * told.marginal(variables[last])[i]);
  }
  return made;
}
