"use strict";
// Continuous variables in a page without a server. Given the discrete variables that they depend on, the numbers are jointly
// Gaussian; so each setting of those has a mean, a covariance and a weight, and a number's posterior is a mixture.

const STRIPS = 64, INSIDE = 0.998;

// The mean and covariance of all numbers for one setting (name to code), conditioned on those observed; and the log density
// of those. `done` numbers are cut from their parents.
export function conditioned(numbers, setting, cards, observed, done) {
  const n = numbers.length, at = new Map(numbers.map((g, i) => [g.name, i]));
  const mean = new Float64Array(n), cov = Array.from({ length: n }, () => new Float64Array(n));
  numbers.forEach((g, i) => {
    if (g.name in done) { mean[i] = done[g.name]; return; }
    const row = g.discrete.reduce((r, name) => r * cards[name] + setting[name], 0), from = g.parents.map((name) => at.get(name));
    mean[i] = g.means[row] + from.reduce((sum, j, k) => sum + g.weights[row][k] * mean[j], 0);
    for (let o = 0; o < i; o++) cov[i][o] = cov[o][i] = from.reduce((sum, j, k) => sum + g.weights[row][k] * cov[j][o], 0);
    cov[i][i] = g.variances[row] + from.reduce((sum, j, k) => sum + g.weights[row][k] * cov[i][j], 0);
  });
  let log = 0;
  for (const [name, x] of Object.entries(observed)) {
    const o = at.get(name), variance = cov[o][o], gap = x - mean[o];
    if (!(variance > 0)) { if (Math.abs(gap) > 1e-9 * (1 + Math.abs(x))) return { log: -Infinity }; continue; }
    log -= 0.5 * (Math.log(2 * Math.PI * variance) + gap * gap / variance);
    const gain = cov.map((row) => row[o] / variance), line = Float64Array.from(cov[o]);
    for (let i = 0; i < n; i++) {
      mean[i] += gain[i] * gap;
      for (let j = 0; j < n; j++) cov[i][j] -= gain[i] * line[j];
    }
  }
  return { log, mean, variance: cov.map((row, i) => Math.max(0, row[i])) };
}

// What the page draws of a mixture of { weight, mean, variance }: its moments, and its density where nearly all of it is.
export function mixtureDensity(parts) {
  const point = parts[0].mean;
  if (parts.every((p) => p.variance === 0 && p.mean === point)) return { mean: point, std: 0, low: point, high: point, density: [] };
  const mean = parts.reduce((sum, p) => sum + p.weight * p.mean, 0);
  const std = Math.sqrt(parts.reduce((sum, p) => sum + p.weight * (p.variance + (p.mean - mean) ** 2), 0));
  const low = quantile(parts, (1 - INSIDE) / 2), high = quantile(parts, (1 + INSIDE) / 2);
  const grid = Array.from({ length: STRIPS + 1 }, (_, i) => low + (i / STRIPS) * (high - low));
  const normal = (x, p) => (p.variance > 0 ? p.weight * Math.exp(-0.5 * (x - p.mean) ** 2 / p.variance) / Math.sqrt(2 * Math.PI * p.variance) : 0);
  return { mean, std, low, high, density: grid.map((x) => parts.reduce((sum, p) => sum + normal(x, p), 0)) };
}

function quantile(parts, share) {
  const below = (x) => parts.reduce((sum, p) => sum + p.weight * (p.variance > 0 ? normalCdf((x - p.mean) / Math.sqrt(p.variance)) : Number(x >= p.mean)), 0);
  let low = Math.min(...parts.map((p) => p.mean - 9 * Math.sqrt(p.variance))), high = Math.max(...parts.map((p) => p.mean + 9 * Math.sqrt(p.variance)));
  for (let i = 0; i < 80 && low < high; i++) { const middle = (low + high) / 2; if (below(middle) < share) low = middle; else high = middle; }
  return (low + high) / 2;
}

// Φ(z): a Taylor series near 0, a continued fraction in the tails.
export function normalCdf(z) {
  const phi = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
  if (Math.abs(z) < 4) {
    let term = z, sum = z;
    for (let i = 3; Math.abs(term) > 1e-17 * Math.abs(sum); i += 2) sum += term *= z * z / i;
    return 0.5 + phi * sum;
  }
  let fraction = 0;
  for (let i = 60; i > 0; i--) fraction = i / (Math.abs(z) + fraction);
  const tail = phi / (Math.abs(z) + fraction);
  return z > 0 ? 1 - tail : tail;
}
