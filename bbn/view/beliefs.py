"""One posterior drawn as a card: bars of a discrete variable's states, the density of a continuous one."""

from __future__ import annotations

from bbn.core.errors import EvidenceError
from bbn.results.mixture_posterior import MixturePosterior
from bbn.results.posterior import Posterior
from bbn.view.cards import Card, _Card
from bbn.view.density import DensityCard
from bbn.view.scene import Drawing


def draw_posterior(posterior: Posterior | MixturePosterior) -> Drawing:
    """The posterior of one variable as a card.

    >>> import bbn
    >>> draw_posterior(bbn.example("burglary").query("Alarm")).description
    'The distribution of Alarm: yes 0.00252, no 0.997.'
    """
    name = ", ".join(posterior.names)
    card: Card
    if isinstance(posterior, MixturePosterior):
        card = DensityCard(name, posterior)
        description = f"The density of {name}: {card.summary}."
    elif len(posterior.variables) > 1:
        raise EvidenceError(
            f"a joint of {len(posterior.variables)} variables has no card; plot one marginal of it"
        )
    else:
        card = _Card(name, posterior.variables[0].states, posterior.values.tolist(), True)
        shown = ", ".join(f"{state} {p:.3g}" for state, p in posterior.to_dict().items())
        description = f"The distribution of {name}: {shown}."
    return Drawing(card.width, card.height, tuple(card.shapes(0.0, 0.0, "")), description)
