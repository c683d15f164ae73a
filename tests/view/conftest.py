"""The browser that the tests of the page share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.view.clicking import BROWSER_OPTIONS, CHROMIUM


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for each file of tests: while Playwright runs, other tests could not use asyncio."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_OPTIONS)
        yield opened
        opened.close()
