"""How fast the interactive page is, in headless Chromium: click to frame, opening, frames while moving.

    python -m tests.benchmarks.page_speed

Prints the 50th and 90th percentile of the time from a click to the next frame with the new beliefs (alarm, served and
as a file), the time until munin is drawn, and its frames per second while it is panned and zoomed.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import bbn
from tests.view.clicking import BROWSER_OPTIONS, CHROMIUM

CLICKS = """async (count) => {
  const rows = [...document.querySelectorAll(".state")], times = [];
  for (let i = 0; i < count; i++) {
    const row = rows[(i * 37) % rows.length];
    await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
    const start = performance.now();
    row.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    await bbn.settled();
    const answered = performance.now();
    const { port1, port2 } = new MessageChannel();  // its message comes when the frame is drawn
    const frame = await new Promise((done) => {
      port1.onmessage = () => done(performance.now());
      requestAnimationFrame(() => port2.postMessage(0));
    });
    times.push([answered - start, frame - start]);
    if (i % 4 === 3) { document.getElementById("clear").click(); await bbn.settled(); }
  }
  return times;
}"""
MOVES = """async (seconds) => {
  const { zoomer, svg } = bbn.picture, start = performance.now();
  let frames = 0;
  while (performance.now() - start < 1000 * seconds) {
    await new Promise(requestAnimationFrame);
    d3.select(svg).call(zoomer.translateBy, frames % 40 < 20 ? 40 : -40, 10 * (frames % 3 - 1));
    if (frames % 10 === 0) d3.select(svg).call(zoomer.scaleBy, frames % 20 ? 1.1 : 1 / 1.1);
    frames++;
  }
  return frames / seconds;
}"""


def opened(browser: Any, address: str) -> tuple[Any, float]:
    """A page, and the seconds until it was ready."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    start = time.perf_counter()
    page.goto(address)
    page.locator("body[data-ready]").wait_for()
    return page, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_OPTIONS)
        alarm = bbn.example("alarm")
        served, file = alarm.explore(), Path(folder) / "alarm.html"
        alarm.export_html(file)
        for way, address in (("served", served.url), ("as a file", file.as_uri())):
            page, seconds = opened(browser, address)
            times = page.evaluate(CLICKS, 100)
            for what, part in (("answer shown", 0), ("frame", 1)):
                ordered = sorted(pair[part] for pair in times)
                print(
                    f"alarm {way}: click to {what} {ordered[49]:.1f} ms, 90th percentile {ordered[89]:.1f} ms"
                )
            page.close()
        served.close()
        start = time.perf_counter()
        munin = bbn.example("munin").explore()
        made = time.perf_counter() - start
        page, seconds = opened(browser, munin.url)
        drawn = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        fps = page.evaluate(MOVES, 3)
        print(
            f"munin: laid out in {made:.2f} s, painted after {drawn:.0f} ms, beliefs after {seconds:.2f} s, "
            f"{fps:.0f} frames/s"
        )
        munin.close()
        browser.close()


if __name__ == "__main__":
    main()
