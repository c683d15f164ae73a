"""Settings of the whole suite: random examples of Hypothesis have no deadline, as machines differ."""

from hypothesis import HealthCheck, settings

settings.register_profile("bbn", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bbn")
