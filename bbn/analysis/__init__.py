"""What moved an answer, what would move it, and what to ask next.

A network's methods ask (`net.explain`, `net.information`, `net.sensitivity`); these are what they answer with.
"""

from bbn.analysis.explain import Explanation
from bbn.analysis.information import Information
from bbn.analysis.sensitivity import Sensitivity

__all__ = ["Explanation", "Information", "Sensitivity"]
