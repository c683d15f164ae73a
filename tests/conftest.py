"""Settings of the whole suite, and the order of its tests.

Random examples of Hypothesis have no deadline, as machines differ. Files that hold slow tests come first, so that no
worker is left alone with one of them at the end; the tests of a file stay together and share what is set up for it.
"""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("bbn", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bbn")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that hold slow tests first."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
