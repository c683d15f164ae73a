"""Decisions: policies, what information is worth, how far an answer can be trusted, and risk.

A decision network's methods ask (`dn.solve`, `dn.information_values`, …); these are what they answer with, beside
`bbn.Solution` and `bbn.Policy`.
"""

from bbn.decisions.information_value import InformationValues
from bbn.decisions.risk import RiskProfile
from bbn.decisions.sensitivity import DecisionSensitivity

__all__ = ["DecisionSensitivity", "InformationValues", "RiskProfile"]
