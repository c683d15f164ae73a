"""Bayesian learning over finite sets of hypotheses: MAP, ML, MDL, Bayes optimal and Gibbs.

`space` is Bayes' rule itself; `likelihoods` is what it asks of a hypothesis; `concepts` has the conjunctions of
attribute values that version spaces are made of.
"""

from bbn.hypotheses.concepts import Conjunction, conjunctions, find_s
from bbn.hypotheses.space import HypothesisSpace

__all__ = ["Conjunction", "HypothesisSpace", "conjunctions", "find_s"]
