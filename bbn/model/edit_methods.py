"""The edits of a network, as methods: each gives a new network, and delegates to `edits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.model.variable import State

if TYPE_CHECKING:
    from bbn.model.cpt import Conditional
    from bbn.model.interventions import Interventions
    from bbn.model.network import BayesianNetwork


class EditMethods(Frozen):
    """How a network becomes another; the old one is untouched."""

    __slots__ = ()

    @keywords_checked
    def with_cpts(self, cpts: Iterable[Conditional]) -> BayesianNetwork:
        """Return the network with these conditionals in place of (or beside) those of the same variables.

        Parameters
        ----------
        cpts : iterable of CPT or Gaussian
            At most one per variable; a variable that is new joins the network.

        Returns
        -------
        BayesianNetwork
            The new network.

        Raises
        ------
        ModelError
            A parent is missing, its states differ, or the arcs make a cycle.

        See Also
        --------
        do : Set variables from outside.

        Examples
        --------
        >>> import bbn
        >>> net = bbn.example("campfire")
        >>> stormy = net.with_cpts([bbn.CPT(net.variable("Storm"), table=[0.9, 0.1])])
        >>> stormy.query("Storm")["yes"], net.query("Storm")["yes"]
        (0.9, 0.2)
        """
        from bbn.model.edits import with_cpts

        return with_cpts(cast("BayesianNetwork", self), cpts)

    @keywords_checked
    def do(self, interventions: Interventions) -> BayesianNetwork:
        """Return the network in which these variables are set from outside (Pearl 2009, section 3.2).

        Each one's arcs from its parents are cut, and its state is certain; a continuous variable is set to a number,
        with variance 0.

        Parameters
        ----------
        interventions : mapping
            Variable name to what is done to it. A state, or a number. A mapping from state to probability: the state is
            drawn from it. A function: the policy that gives a state, or such a mapping, for the states of the variables
            that its arguments are named after, or else of the variable's parents in their order. A CPT or a Gaussian.

        Returns
        -------
        BayesianNetwork
            The new network, of the same variables.

        Raises
        ------
        EvidenceError
            A variable or a state is unknown, or probabilities do not sum to 1.
        ModelError
            A policy looks at what the variable acts on, so that there is a cycle.

        See Also
        --------
        query : Observing is another thing than doing; `evidence` goes there, and `do` may stand beside it.

        Examples
        --------
        >>> import bbn
        >>> net = bbn.example("campfire").do({"Campfire": "yes"})
        >>> net.parents("Campfire"), net["Campfire"].table
        ((), array([1., 0.]))
        >>> careful = bbn.example("campfire").do({"Campfire": lambda Storm: "no" if Storm == "yes" else "yes"})
        >>> careful.parents("Campfire"), careful.query("Campfire")["yes"]
        (('Storm',), 0.8)
        """
        from bbn.model.interventions import intervened

        return intervened(cast("BayesianNetwork", self), interventions)

    @keywords_checked
    def rename(self, names: Mapping[str, str]) -> BayesianNetwork:
        """Return the network with nodes renamed.

        Parameters
        ----------
        names : mapping
            Old name to new name; swaps are fine, and nodes that are not named keep theirs.

        Returns
        -------
        BayesianNetwork
            The new network.

        Raises
        ------
        EvidenceError
            There is no node of an old name.
        ModelError
            Two nodes would have the same name.

        See Also
        --------
        relabel : Rename the states of one variable.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("cancer_test").rename({"Test": "Biopsy"}).names
        ('Cancer', 'Biopsy')
        """
        from bbn.model.edits import rename

        return rename(cast("BayesianNetwork", self), names)

    @keywords_checked
    def relabel(self, name: str, states: Mapping[State, State]) -> BayesianNetwork:
        """Return the network with states of one variable renamed.

        Parameters
        ----------
        name : str
            The variable, a discrete one.
        states : mapping
            Old state to new state; those that are not named stay.

        Returns
        -------
        BayesianNetwork
            The new network.

        Raises
        ------
        EvidenceError
            There is no such variable or old state, or the variable is continuous.
        ModelError
            Two states would be the same.

        See Also
        --------
        rename : Rename the variables.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("cancer_test").relabel("Test", {"positive": "+", "negative": "-"}).states("Test")
        ('+', '-')
        """
        from bbn.model.edits import relabel

        return relabel(cast("BayesianNetwork", self), name, states)

    @keywords_checked
    def add_arc(self, parent: str, child: str) -> BayesianNetwork:
        """Return the network with one more arc; the joint does not change.

        Parameters
        ----------
        parent, child : str
            The ends of the arc. The child's table is repeated for each state of its new last parent.

        Returns
        -------
        BayesianNetwork
            The new network.

        Raises
        ------
        EvidenceError
            There is no such variable.
        ModelError
            The arc is there already, or would make a cycle, or leads from a continuous to a discrete variable.

        See Also
        --------
        remove_arc : The way back.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("burglary").add_arc("Burglary", "MaryCalls").parents("MaryCalls")
        ('Alarm', 'Burglary')
        """
        from bbn.model.edits import add_arc

        return add_arc(cast("BayesianNetwork", self), parent, child)

    @keywords_checked
    def remove_arc(
        self, parent: str, child: str, weights: Mapping[State, float] | None = None
    ) -> BayesianNetwork:
        """Return the network with one arc less; the child's table is averaged over the parent's states.

        Parameters
        ----------
        parent, child : str
            The ends of the arc.
        weights : mapping, optional
            State of the parent to its weight in the average, such as ``net.query(parent).to_dict()``; by default all
            weigh the same.

        Returns
        -------
        BayesianNetwork
            The new network.

        Raises
        ------
        EvidenceError
            There is no such variable.
        ModelError
            There is no such arc, or the weights do not fit the parent's states.

        See Also
        --------
        add_arc : The way back, as far as the structure goes.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("burglary").remove_arc("Earthquake", "Alarm").parents("Alarm")
        ('Burglary',)
        """
        from bbn.model.edits import remove_arc

        return remove_arc(cast("BayesianNetwork", self), parent, child, weights)

    @keywords_checked
    def discrete_part(self) -> BayesianNetwork:
        """Return the network of the discrete variables: none has a continuous parent, so their joint is unchanged.

        Returns
        -------
        BayesianNetwork
            The network itself if it has no continuous variables.

        See Also
        --------
        subnetwork : The network of some variables and their ancestors.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("burglary").discrete_part() == bbn.example("burglary")
        True
        """
        from bbn.model.edits import discrete_part

        return discrete_part(cast("BayesianNetwork", self))

    @keywords_checked
    def subnetwork(self, names: Iterable[str]) -> BayesianNetwork:
        """Return the network of these variables and their ancestors: the joint over them is unchanged.

        Parameters
        ----------
        names : iterable of str
            The variables to keep.

        Returns
        -------
        BayesianNetwork
            The new network.

        Raises
        ------
        EvidenceError
            There is no such variable.

        See Also
        --------
        ancestral_set : The names that it has.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("burglary").subnetwork(["Alarm"]).names
        ('Burglary', 'Earthquake', 'Alarm')
        """
        from bbn.model.edits import subnetwork

        return subnetwork(cast("BayesianNetwork", self), names)
