"""The public names, once: `bbn/__init__.py` resolves each when it is first used (SPEC 1)."""

# define
from .model.variable import Variable as Variable, Continuous as Continuous
from .model.binned import Binned as Binned
from .model.factor import Factor as Factor
from .model.cpt import CPT as CPT
from .model.gaussian import Gaussian as Gaussian
from .model.deterministic import Deterministic as Deterministic
from .model.noisy_max import NoisyMax as NoisyMax
from .model.noisy_max import NoisyOr as NoisyOr
from .model.network import BayesianNetwork as BayesianNetwork
from .model.factor_graph import FactorGraph as FactorGraph
from .model.decision import Decision as Decision, Utility as Utility
from .model.decision_network import DecisionNetwork as DecisionNetwork
from .model.previous import Previous as Previous
from .model.dynamic_network import DynamicNetwork as DynamicNetwork

# read, write, exchange
from .io.registry import load as load, save as save
from .io.formats.uai import load_evidence as load_evidence
from .io.bridges import (
    from_pgmpy as from_pgmpy,
    to_pgmpy as to_pgmpy,
    from_pyagrum as from_pyagrum,
    to_pyagrum as to_pyagrum,
    to_networkx as to_networkx,
    from_pandas_joint as from_pandas_joint,
)
from .io.examples import example as example, examples as examples

# ask
from .core.limits import Budget as Budget
from .model.evidence import Virtual as Virtual, Soft as Soft, OneOf as OneOf, Not as Not
from .results.posterior import Posterior as Posterior, Assignment as Assignment
from .results.mixture_posterior import MixturePosterior as MixturePosterior
from .results.policy import Policy as Policy, Solution as Solution
from .results.rule import Rule as Rule
from .inference.exact.enumeration import Enumeration as Enumeration
from .inference.exact.elimination import VariableElimination as VariableElimination
from .inference.exact.junction_tree import JunctionTree as JunctionTree
from .inference.sampling.likelihood_weighting import LikelihoodWeighting as LikelihoodWeighting
from .inference.sampling.rejection import RejectionSampling as RejectionSampling
from .inference.sampling.importance import ImportanceSampling as ImportanceSampling
from .inference.sampling.gibbs import GibbsSampling as GibbsSampling
from .inference.sampling.loopy import LoopyBeliefPropagation as LoopyBeliefPropagation

# learn tables
from .learning.tables.fit import fit as fit
from .learning.tables.fit_update import fit_update as fit_update
from .learning.tables.priors import (
    MEstimate as MEstimate,
    Dirichlet as Dirichlet,
    BDeu as BDeu,
    NormalInverseGamma as NormalInverseGamma,
)
from .learning.incomplete.em import fit_em as fit_em
from .learning.incomplete.gradient import fit_gradient as fit_gradient, gradient as gradient

# learn structures
from .learning.structure.score_cache import score as score, family_scores as family_scores
from .learning.structure.k2 import k2 as k2
from .learning.structure.chow_liu import chow_liu as chow_liu, tan as tan
from .learning.structure.hill_climb import hill_climb as hill_climb
from .learning.structure.ges import ges as ges
from .learning.structure.pc import pc as pc
from .learning.structure.exact.exact_search import exact_search as exact_search
from .learning.structure.exact.local_scores import LocalScores as LocalScores, load_scores as load_scores
from .learning.structure.structural_em import structural_em as structural_em
from .model.equivalence import to_dag as to_dag, cpdag as cpdag
from .learning.evaluation.compare import compare as compare
from .learning.evaluation.strength import arc_strength as arc_strength
from .learning.evaluation.arc_posterior import arc_posterior as arc_posterior
from .learning.evaluation.arc_probabilities import ArcPosterior as ArcPosterior
from .learning.evaluation.cross_validation import cross_validate as cross_validate
from .learning.learn import learn as learn

# data
from .data.describe import describe as describe, Description as Description
from .data.discretize import discretize as discretize, Discretizer as Discretizer
from .data.streams.open import open_data as open_data

# hypotheses and classifiers
from .hypotheses.space import HypothesisSpace as HypothesisSpace
from .classifiers.naive_bayes import NaiveBayes as NaiveBayes
from .classifiers.networks import TAN as TAN, BayesNetClassifier as BayesNetClassifier
from .classifiers.text_naive_bayes import TextNaiveBayes as TextNaiveBayes
from .classifiers.gaussian_mixture import GaussianMixture as GaussianMixture
from .classifiers.hmm import HMM as HMM

# causes
from .causal.graph.causal_graph import CausalGraph as CausalGraph
from .causal.identification.adjustment import (
    adjustment_sets as adjustment_sets,
    check_adjustment as check_adjustment,
)
from .causal.identification.front_door import front_door_sets as front_door_sets
from .causal.identification.instruments import instruments as instruments
from .causal.identification.identify import identify as identify
from .causal.identification.estimand import Estimand as Estimand
from .causal.identification.bounds import effect_bounds as effect_bounds
from .causal.effects.causation import causation_bounds as causation_bounds
from .causal.effects.effect import effect as effect
from .causal.effects.refute import refute as refute
from .causal.effects.independences import check_independences as check_independences

# pictures
from .view.diagrams import (
    plot_compare as plot_compare,
    plot_cpt as plot_cpt,
    plot_junction_tree as plot_junction_tree,
    plot_log_likelihood as plot_log_likelihood,
)
from .view.structures import plot_graph as plot_graph

# errors and warnings
from .core.errors import (
    BBNError as BBNError,
    ModelError as ModelError,
    EvidenceError as EvidenceError,
    ImpossibleEvidenceError as ImpossibleEvidenceError,
    NotIdentifiableError as NotIdentifiableError,
    NoSampleError as NoSampleError,
    DataError as DataError,
    AmbiguousNumbersError as AmbiguousNumbersError,
    ParseError as ParseError,
    BudgetError as BudgetError,
    ClusterError as ClusterError,
    BBNWarning as BBNWarning,
    RenormalisedWarning as RenormalisedWarning,
    LossyFormatWarning as LossyFormatWarning,
    CheckpointWarning as CheckpointWarning,
    NoMemberWarning as NoMemberWarning,
    LeftOutWarning as LeftOutWarning,
    RedundantColumnsWarning as RedundantColumnsWarning,
    TimeLimitError as TimeLimitError,
    UnseenRowsWarning as UnseenRowsWarning,
    UnseenValuesWarning as UnseenValuesWarning,
    TooManyParametersWarning as TooManyParametersWarning,
    OverlapWarning as OverlapWarning,
    CollapsedWarning as CollapsedWarning,
    AccuracyWarning as AccuracyWarning,
    MixingWarning as MixingWarning,
    ConvergenceWarning as ConvergenceWarning,
    WorkerLostWarning as WorkerLostWarning,
)

# the rooms, from the ground up
from . import (
    core as core,
    kernels as kernels,
    model as model,
    results as results,
    io as io,
    data as data,
    inference as inference,
    learning as learning,
    datasets as datasets,
    hypotheses as hypotheses,
    classifiers as classifiers,
    analysis as analysis,
    causal as causal,
    decisions as decisions,
    view as view,
    cli as cli,
)
from .model import graphs as graphs

__version__: str
