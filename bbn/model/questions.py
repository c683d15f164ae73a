"""The questions a model can be asked: the methods whose answers come from rooms above.

Each line names the class that has the methods, with their text, in the room that answers them. That class is the base
which type checkers and editors see; what runs imports it when one of its methods is first looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bbn.core.errors import EvidenceError
from bbn.core.frozen import Frozen
from bbn.core.upward import answered_by
from bbn.model.interventions import acted

if TYPE_CHECKING:
    from bbn.analysis.questions import AnalysisQuestions
    from bbn.decisions.questions import DecisionQuestions
    from bbn.inference.dynamic_questions import TimeQuestions
    from bbn.inference.questions import ModelQuestions
    from bbn.inference.rows.questions import RowQuestions
    from bbn.io.saving import Saved
    from bbn.model.factor import Factor
    from bbn.model.interventions import Interventions
    from bbn.model.network import BayesianNetwork
    from bbn.model.variable import Variable
    from bbn.view.pictures import DecisionPictures, NetworkPictures, TimePictures
else:
    ModelQuestions = answered_by(
        "bbn.inference.questions:ModelQuestions",
        *("query", "posteriors", "mpe", "map", "explain_plan", "_log_evidence"),
    )
    RowQuestions = answered_by(
        "bbn.inference.rows.questions:RowQuestions", "predict", "predict_proba", "log_likelihood", "sample"
    )
    TimeQuestions = answered_by(
        "bbn.inference.dynamic_questions:TimeQuestions",
        *("filter", "smooth", "forecast", "viterbi", "log_likelihood", "query", "start", "sample"),
    )
    AnalysisQuestions = answered_by(
        "bbn.analysis.questions:AnalysisQuestions", "explain", "counterfactual", "information", "sensitivity"
    )
    DecisionQuestions = answered_by(
        "bbn.decisions.questions:DecisionQuestions",
        *("solve", "expected_utility", "with_policy", "value_of_information", "information_values"),
        *("sensitivity", "risk_profile"),
    )
    NetworkPictures = answered_by(
        "bbn.view.pictures:NetworkPictures", "plot", "explore", "export_html", "_repr_svg_"
    )
    DecisionPictures = answered_by("bbn.view.pictures:DecisionPictures", "plot", "explore", "_repr_svg_")
    TimePictures = answered_by("bbn.view.pictures:TimePictures", "plot", "explore", "_repr_svg_")
    Saved = answered_by("bbn.io.saving:Saved", "save")


class Askable(ModelQuestions, Frozen):
    """What every model answers, from its variables and factors."""

    __slots__ = ()

    memo: dict[str, Any]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in the model's order."""
        raise NotImplementedError

    def variable(self, name: str) -> Variable:
        """The variable of this name."""
        raise NotImplementedError

    def factors(self) -> list[Factor]:
        """The factors whose product is the joint, normalised or not."""
        raise NotImplementedError

    def _acted(self, do: Interventions | None) -> Askable:
        """The model after an intervention; the model itself if there is none."""
        if not do:
            return self
        raise EvidenceError("do needs a network: a factor graph has no arcs that an intervention would cut")


class AskableNetwork(Askable, RowQuestions, AnalysisQuestions, NetworkPictures, Saved):
    """What a Bayesian network answers: the questions of every model, and those about rows of data and about answers."""

    __slots__ = ()

    def _acted(self, do: Interventions | None) -> BayesianNetwork:
        if do is None:
            return cast("BayesianNetwork", self)
        return acted(cast("BayesianNetwork", self), do)


class AskableDecisions(DecisionQuestions, DecisionPictures, Saved, Frozen):
    """What a decision network answers."""

    __slots__ = ()


class AskableInTime(TimeQuestions, TimePictures, Saved, Frozen):
    """What a dynamic network answers."""

    __slots__ = ()
