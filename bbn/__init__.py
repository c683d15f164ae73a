"""bbn: Bayesian belief networks. Define a network, ask it for posteriors, learn it from data.

The public names stand in `__init__.pyi` and are resolved when first used (SPEC 1), so that `import bbn` by itself loads
neither numpy nor networkx.

>>> import bbn
>>> net = bbn.example("campfire")
>>> net.parents("Campfire")
('Storm', 'BusTourGroup')
"""

from typing import Any

import lazy_loader

from bbn._version import __version__ as __version__

_found, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """The public name, imported when it is first used."""
    if name in __all__ or name.startswith("_"):
        return _found(name)
    from bbn.core.missing_names import MissingPublicNameError

    raise MissingPublicNameError(__name__, name, __all__)
