"""Genetic linkage networks: people of a random pedigree, several loci on a chromosome, some phenotypes seen.

The model of Fishelson and Geiger (2002), as in the UAI competitions' Pedigree and linkage instances. Each person has at
each locus a paternal and a maternal allele. A founder's alleles follow the population's frequencies. A child's paternal
allele is one of its father's two, and a selector says which; selectors of neighbouring loci differ with the
recombination rate. A phenotype is the unordered pair of alleles, or a disease that is seen with a chance given how many
alleles of the second kind there are. Two thirds of the tables' entries are zeros.
"""

from __future__ import annotations

import numpy as np

import bbn


def pedigree(
    n: int, loci: int, seed: int, alleles: int = 2, founders: int = 4, rate: float = 0.1, near: int = 8
) -> bbn.BayesianNetwork:
    """A network of n people and some loci.

    Parameters
    ----------
    n, loci, alleles
        The people, the loci of each, and the alleles that a locus may have.
    seed
        Of the matings, the frequencies and the penetrances.
    founders
        The first so many people have no parents.
    rate
        The chance that neighbouring loci come from different grandparents.
    near
        Parents are two of the last so many people, so larger numbers make larger cliques.
    """
    rng = np.random.default_rng(seed)
    parents = [
        None
        if i < founders
        else sorted(max(0, i - near) + k for k in rng.permutation(min(i, near))[:2].tolist())
        for i in range(n)
    ]
    states = [f"a{k}" for k in range(alleles)]
    parts: list[bbn.CPT] = []
    passed = _passed(alleles)
    before: dict[str, bbn.Variable] = {}
    for locus in range(loci):
        frequencies = rng.dirichlet(np.full(alleles, 2.0))
        own: dict[str, bbn.Variable] = {}
        for i, pair in enumerate(parents):
            for side in "pm":
                allele = own[f"{i}{side}"] = bbn.Variable(f"G{i}{side}.{locus}", states)
                if pair is None:
                    parts.append(bbn.CPT(allele, [], frequencies))
                    continue
                source = pair["pm".index(side)]
                selector = bbn.Variable(f"S{i}{side}.{locus}", ["p", "m"])
                known = before.get(f"{i}{side}")
                table = [[1 - rate, rate], [rate, 1 - rate]] if known else [0.5, 0.5]
                parts.append(bbn.CPT(selector, [known] if known else [], table))
                before[f"{i}{side}"] = selector
                parts.append(bbn.CPT(allele, [own[f"{source}p"], own[f"{source}m"], selector], passed))
            both = [own[f"{i}p"], own[f"{i}m"]]
            parts.append(_phenotype(f"Y{i}.{locus}", both, alleles, rng if locus == 0 else None))
    return bbn.BayesianNetwork(parts, name=f"pedigree of {n}, {loci} loci")


def _passed(alleles: int) -> np.ndarray:
    """P(allele | the parent's paternal one, its maternal one, the selector): certain."""
    table = np.zeros((alleles, alleles, 2, alleles))
    for p, m in np.ndindex(alleles, alleles):
        table[p, m, 0, p] = table[p, m, 1, m] = 1.0
    return table


def _phenotype(name: str, both: list[bbn.Variable], alleles: int, rng: np.random.Generator | None) -> bbn.CPT:
    """The unordered pair of alleles, or, with a generator, a disease of random penetrances."""
    if rng is not None:
        chances = [0.0, rng.uniform(0.2, 0.8), 1.0]
        table = np.zeros((alleles, alleles, 2))
        for p, m in np.ndindex(alleles, alleles):
            ill = chances[(p > 0) + (m > 0)]
            table[p, m] = 1 - ill, ill
        return bbn.CPT(bbn.Variable(name, ["well", "ill"]), both, table)
    pairs = [(p, m) for p in range(alleles) for m in range(p, alleles)]
    table = np.zeros((alleles, alleles, len(pairs)))
    for p, m in np.ndindex(alleles, alleles):
        table[p, m, pairs.index((min(p, m), max(p, m)))] = 1.0
    return bbn.CPT(bbn.Variable(name, [f"{p}|{m}" for p, m in pairs]), both, table)


def phenotypes(net: bbn.BayesianNetwork, share: float, seed: int, n: int = 1) -> list[dict[str, str]]:
    """Cases of evidence: the same phenotypes seen each time, with values drawn from the network.

    Parameters
    ----------
    net
        A network of `pedigree`.
    share
        How many of the phenotypes are seen.
    seed
        Of the choice and the draws.
    n
        The number of cases.
    """
    rng = np.random.default_rng(seed)
    names = [name for name in net.names if name.startswith("Y")]
    seen = sorted(rng.choice(len(names), round(share * len(names)), replace=False).tolist())
    drawn = net.sample(n, seed=seed)[[names[i] for i in seen]]
    return [{name: str(value) for name, value in row.items()} for row in drawn.to_dict("records")]
