"""Bayesian learning over finite sets of hypotheses, and the classifiers built on it.

`hypotheses` is Bayes' rule itself; `likelihoods` is what it asks of a hypothesis; `concepts` has the conjunctions of
attribute values that version spaces are made of. The classifiers follow scikit-learn's conventions, and
scikit-learn is imported only when one of them is used.
"""

from __future__ import annotations

from bbn.bayes.concepts import Conjunction, conjunctions, find_s
from bbn.bayes.hypotheses import HypothesisSpace

__all__ = ["Conjunction", "HypothesisSpace", "conjunctions", "find_s"]
