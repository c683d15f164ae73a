"""bbn: Bayesian belief networks. Define a network, ask it for posteriors, learn it from data.

The public names are resolved when first used (PEP 562), so that `import bbn` by itself loads nothing else.

>>> import bbn
>>> net = bbn.example("campfire")
>>> net.parents("Campfire")
('Storm', 'BusTourGroup')
"""

from typing import TYPE_CHECKING, Any

from bbn._version import __version__ as __version__

if TYPE_CHECKING:
    from bbn.bayes.classifiers import TAN as TAN
    from bbn.bayes.classifiers import BayesNetClassifier as BayesNetClassifier
    from bbn.bayes.hypotheses import HypothesisSpace as HypothesisSpace
    from bbn.bayes.mixture import GaussianMixture as GaussianMixture
    from bbn.bayes.naive_bayes import NaiveBayes as NaiveBayes
    from bbn.bayes.text import TextNaiveBayes as TextNaiveBayes
    from bbn.cpt import CPT as CPT
    from bbn.data.discretize import Discretizer as Discretizer
    from bbn.data.discretize import discretize as discretize
    from bbn.data.open import open_data as open_data
    from bbn.equivalence import cpdag as cpdag
    from bbn.equivalence import to_dag as to_dag
    from bbn.errors import AccuracyWarning as AccuracyWarning
    from bbn.errors import BBNError as BBNError
    from bbn.errors import BBNWarning as BBNWarning
    from bbn.errors import BudgetError as BudgetError
    from bbn.errors import CheckpointWarning as CheckpointWarning
    from bbn.errors import ClusterError as ClusterError
    from bbn.errors import CollapsedWarning as CollapsedWarning
    from bbn.errors import ConvergenceWarning as ConvergenceWarning
    from bbn.errors import DataError as DataError
    from bbn.errors import EvidenceError as EvidenceError
    from bbn.errors import ImpossibleEvidenceError as ImpossibleEvidenceError
    from bbn.errors import LossyFormatWarning as LossyFormatWarning
    from bbn.errors import MixingWarning as MixingWarning
    from bbn.errors import ModelError as ModelError
    from bbn.errors import NoMemberWarning as NoMemberWarning
    from bbn.errors import NoSampleError as NoSampleError
    from bbn.errors import ParseError as ParseError
    from bbn.errors import RenormalisedWarning as RenormalisedWarning
    from bbn.errors import TimeLimitError as TimeLimitError
    from bbn.errors import UnseenRowsWarning as UnseenRowsWarning
    from bbn.errors import WorkerLostWarning as WorkerLostWarning
    from bbn.evidence import Not as Not
    from bbn.evidence import OneOf as OneOf
    from bbn.evidence import Soft as Soft
    from bbn.evidence import Virtual as Virtual
    from bbn.factor import Factor as Factor
    from bbn.factor_graph import FactorGraph as FactorGraph
    from bbn.gaussian import Gaussian as Gaussian
    from bbn.inference.elimination import VariableElimination as VariableElimination
    from bbn.inference.enumeration import Enumeration as Enumeration
    from bbn.inference.gibbs import GibbsSampling as GibbsSampling
    from bbn.inference.importance import ImportanceSampling as ImportanceSampling
    from bbn.inference.junction_tree import JunctionTree as JunctionTree
    from bbn.inference.likelihood_weighting import LikelihoodWeighting as LikelihoodWeighting
    from bbn.inference.loopy import LoopyBeliefPropagation as LoopyBeliefPropagation
    from bbn.inference.rejection import RejectionSampling as RejectionSampling
    from bbn.io.bridges import from_pandas_joint as from_pandas_joint
    from bbn.io.bridges import from_pgmpy as from_pgmpy
    from bbn.io.bridges import from_pyagrum as from_pyagrum
    from bbn.io.bridges import to_networkx as to_networkx
    from bbn.io.bridges import to_pgmpy as to_pgmpy
    from bbn.io.bridges import to_pyagrum as to_pyagrum
    from bbn.io.registry import load as load
    from bbn.io.registry import save as save
    from bbn.io.uai import load_evidence as load_evidence
    from bbn.learning.chow_liu import chow_liu as chow_liu
    from bbn.learning.chow_liu import tan as tan
    from bbn.learning.compare import compare as compare
    from bbn.learning.cross_validation import cross_validate as cross_validate
    from bbn.learning.em import fit_em as fit_em
    from bbn.learning.gradient import fit_gradient as fit_gradient
    from bbn.learning.gradient import gradient as gradient
    from bbn.learning.hill_climb import hill_climb as hill_climb
    from bbn.learning.k2 import k2 as k2
    from bbn.learning.learn import learn as learn
    from bbn.learning.parameters import fit as fit
    from bbn.learning.parameters import fit_update as fit_update
    from bbn.learning.pc import pc as pc
    from bbn.learning.priors import BDeu as BDeu
    from bbn.learning.priors import Dirichlet as Dirichlet
    from bbn.learning.priors import MEstimate as MEstimate
    from bbn.learning.priors import NormalInverseGamma as NormalInverseGamma
    from bbn.learning.scores import family_scores as family_scores
    from bbn.learning.scores import score as score
    from bbn.learning.strength import arc_strength as arc_strength
    from bbn.learning.structural_em import structural_em as structural_em
    from bbn.mixture import MixturePosterior as MixturePosterior
    from bbn.models import example as example
    from bbn.models import examples as examples
    from bbn.network import BayesianNetwork as BayesianNetwork
    from bbn.posterior import Assignment as Assignment
    from bbn.posterior import Posterior as Posterior
    from bbn.variable import Continuous as Continuous
    from bbn.variable import Variable as Variable
    from bbn.view.diagrams import plot_compare as plot_compare
    from bbn.view.diagrams import plot_cpt as plot_cpt
    from bbn.view.diagrams import plot_junction_tree as plot_junction_tree
    from bbn.view.diagrams import plot_log_likelihood as plot_log_likelihood

# Each module and the public names that live in it, in reading order; the block above repeats it for type checkers.
_HOMES = {
    "bbn.variable": ("Variable", "Continuous"),
    "bbn.factor": ("Factor",),
    "bbn.cpt": ("CPT",),
    "bbn.gaussian": ("Gaussian",),
    "bbn.network": ("BayesianNetwork",),
    "bbn.factor_graph": ("FactorGraph",),
    "bbn.io.registry": ("load", "save"),
    "bbn.io.uai": ("load_evidence",),
    "bbn.io.bridges": (
        "from_pgmpy",
        "to_pgmpy",
        "from_pyagrum",
        "to_pyagrum",
        "to_networkx",
        "from_pandas_joint",
    ),
    "bbn.models": ("example", "examples"),
    "bbn.evidence": ("Virtual", "Soft", "OneOf", "Not"),
    "bbn.posterior": ("Posterior", "Assignment"),
    "bbn.mixture": ("MixturePosterior",),
    "bbn.inference.enumeration": ("Enumeration",),
    "bbn.inference.elimination": ("VariableElimination",),
    "bbn.inference.junction_tree": ("JunctionTree",),
    "bbn.inference.likelihood_weighting": ("LikelihoodWeighting",),
    "bbn.inference.rejection": ("RejectionSampling",),
    "bbn.inference.importance": ("ImportanceSampling",),
    "bbn.inference.gibbs": ("GibbsSampling",),
    "bbn.inference.loopy": ("LoopyBeliefPropagation",),
    "bbn.bayes.hypotheses": ("HypothesisSpace",),
    "bbn.bayes.naive_bayes": ("NaiveBayes",),
    "bbn.bayes.classifiers": ("TAN", "BayesNetClassifier"),
    "bbn.bayes.text": ("TextNaiveBayes",),
    "bbn.bayes.mixture": ("GaussianMixture",),
    "bbn.data.discretize": ("discretize", "Discretizer"),
    "bbn.data.open": ("open_data",),
    "bbn.learning.parameters": ("fit", "fit_update"),
    "bbn.learning.em": ("fit_em",),
    "bbn.learning.gradient": ("fit_gradient", "gradient"),
    "bbn.learning.priors": ("MEstimate", "Dirichlet", "BDeu", "NormalInverseGamma"),
    "bbn.view.diagrams": ("plot_compare", "plot_cpt", "plot_junction_tree", "plot_log_likelihood"),
    "bbn.learning.scores": ("score", "family_scores"),
    "bbn.learning.k2": ("k2",),
    "bbn.learning.chow_liu": ("chow_liu", "tan"),
    "bbn.learning.hill_climb": ("hill_climb",),
    "bbn.learning.pc": ("pc",),
    "bbn.equivalence": ("to_dag", "cpdag"),
    "bbn.learning.compare": ("compare",),
    "bbn.learning.structural_em": ("structural_em",),
    "bbn.learning.learn": ("learn",),
    "bbn.learning.strength": ("arc_strength",),
    "bbn.learning.cross_validation": ("cross_validate",),
    "bbn.errors": (
        "BBNError",
        "ModelError",
        "EvidenceError",
        "ImpossibleEvidenceError",
        "NoSampleError",
        "DataError",
        "ParseError",
        "BudgetError",
        "ClusterError",
        "BBNWarning",
        "RenormalisedWarning",
        "LossyFormatWarning",
        "CheckpointWarning",
        "NoMemberWarning",
        "TimeLimitError",
        "UnseenRowsWarning",
        "CollapsedWarning",
        "AccuracyWarning",
        "MixingWarning",
        "ConvergenceWarning",
        "WorkerLostWarning",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_PACKAGES = ("bayes", "data", "datasets", "graphs", "inference", "io", "kernels", "learning", "view")

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604  # the names are the table's


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _PACKAGES:
        return import_module(f"bbn.{name}")
    raise AttributeError(f"module 'bbn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
