"""bbn: Bayesian belief networks. Define a network, ask it for posteriors, learn it from data.

The public names stand in `__init__.pyi` and are resolved when first used (SPEC 1), so that `import bbn` by itself loads
neither numpy nor networkx.

>>> import bbn
>>> net = bbn.example("campfire")
>>> net.parents("Campfire")
('Storm', 'BusTourGroup')
"""

import lazy_loader

from bbn._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
