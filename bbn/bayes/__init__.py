"""Bayesian learning over finite sets of hypotheses, and the classifiers built on it.

`hypotheses` is Bayes' rule itself; `likelihoods` is what it asks of a hypothesis; `concepts` has the conjunctions of
attribute values that version spaces are made of. The classifiers follow scikit-learn's conventions, and
scikit-learn is imported only when one of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bbn.bayes.concepts import Conjunction, conjunctions, find_s
from bbn.bayes.hypotheses import HypothesisSpace

if TYPE_CHECKING:
    from bbn.bayes.classifiers import TAN, BayesNetClassifier
    from bbn.bayes.mixture import GaussianMixture
    from bbn.bayes.naive_bayes import NaiveBayes
    from bbn.bayes.text import TextNaiveBayes

__all__ = [
    "BayesNetClassifier",
    "Conjunction",
    "GaussianMixture",
    "HypothesisSpace",
    "NaiveBayes",
    "TAN",
    "TextNaiveBayes",
    "conjunctions",
    "find_s",
]

_CLASSIFIERS = {
    "BayesNetClassifier": "bbn.bayes.classifiers",
    "GaussianMixture": "bbn.bayes.mixture",
    "NaiveBayes": "bbn.bayes.naive_bayes",
    "TAN": "bbn.bayes.classifiers",
    "TextNaiveBayes": "bbn.bayes.text",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _CLASSIFIERS:
        return getattr(import_module(_CLASSIFIERS[name]), name)
    raise AttributeError(f"module 'bbn.bayes' has no attribute {name!r}")
