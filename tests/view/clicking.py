"""Random clicks on a page, each answer compared with Python's. As a command: 1,000 on each of four networks, both ways.

python -m tests.view.clicking [clicks]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bbn
from bbn.model.interventions import acted
from bbn.view.page.findings import asked

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
BROWSER_OPTIONS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NETWORKS = ("asia", "alarm", "hailfinder", "win95pts")
CLICK = """async ({ name, kind, state, share }) => {
  const press = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  if (kind === "clear") press(document.getElementById("clear"));
  else {
    const cards = [...document.querySelectorAll(".title")];
    press(cards.find((title) => title.getAttribute("aria-label") === `Choose ${name}`));
    await new Promise((done) => { setTimeout(done); });  // the panel is there
    const row = document.querySelectorAll("#panel .states li")[state];
    if (kind === "soft") {
      const slider = row.querySelector("input");
      slider.value = share;
      slider.dispatchEvent(new Event("input"));
      slider.dispatchEvent(new Event("change"));
    } else press(row.querySelectorAll("button")[{ see: 0, not: 1, do: 2 }[kind]]);
  }
  await bbn.settled();
  const status = document.getElementById("status"), wrong = status.classList.contains("error");
  return JSON.stringify([bbn.state.evidence, bbn.state.beliefs, wrong ? status.textContent : ""]);
}"""


def click_and_compare(page: Any, net: bbn.BayesianNetwork, clicks: int, seed: int) -> tuple[int, float]:
    """Click at random: observe, rule out, do, pull a bar. How many answers were possible; the largest difference."""
    rng = np.random.default_rng(seed)
    possible, largest, given = 0, 0.0, 0
    for _ in range(clicks):
        name = str(rng.choice(net.names))
        kind = "clear" if given >= 5 else str(rng.choice(["see", "see", "do", "soft", "not"]))
        what = {"name": name, "kind": kind, "state": int(rng.integers(net.variable(name).card))}
        told = page.evaluate(CLICK, {**what, "share": float(rng.uniform(0.05, 0.95))})
        evidence, beliefs, wrong = json.loads(told)  # as text, in which every name is a key
        given = len(evidence)
        seen = asked(net, {"evidence": evidence})
        try:
            expected = acted(net, seen.do).posteriors(seen.evidence)
        except bbn.ImpossibleEvidenceError:
            assert wrong, (evidence, "is impossible, and the page says nothing")
            given = 5
            continue
        assert not wrong, (evidence, wrong)
        possible += 1
        for variable, posterior in expected.items():
            largest = max(largest, float(np.abs(np.array(beliefs[variable]) - posterior.values).max()))
    return possible, largest


def main(clicks: int) -> None:
    """Click on each network, served and as a file, and print the largest difference."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_OPTIONS)
        for name in NETWORKS:
            net = bbn.example(name)
            served = net.explore()
            file = Path(folder) / f"{name}.html"
            net.export_html(file)
            for way, address in (("served", served.url), ("file", file.as_uri())):
                page = browser.new_page()
                page.goto(address)
                page.locator("body[data-ready]").wait_for()
                possible, largest = click_and_compare(page, net, clicks, seed=1)
                print(
                    f"{name:11} {way:7} {clicks} clicks, {possible} possible, largest difference {largest:.1e}",
                    flush=True,
                )
                page.close()
            served.close()
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
