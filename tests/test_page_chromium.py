"""The page in a real browser, cut off from every network: charts are drawn, nothing else runs, nothing sticks out.

Chromium comes with ``make browser``. Where there is none, these tests say so and are left out; under CI they fail.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess

import pytest

import mnemokit as mk
from tests.page_reading import Page
from tests.test_page import hostile_turns

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ADVICE = "there is no Chromium to look at the page with; install it with: make browser"

pytestmark = pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason=ADVICE)


def browse(page, folder, *, width: int = 1200, dark: bool = False) -> tuple[str, str]:
    """Open a file in headless Chromium without any network; gives the DOM after all scripts, and the console."""
    if CHROMIUM is None:
        pytest.fail(ADVICE)
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={folder / 'profile'}",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--window-size={width},1200",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return done.stdout, console


@pytest.fixture(scope="module")
def tau2_file(tmp_path_factory):
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2())
        return mk.report(mem, tmp_path_factory.mktemp("browser") / "memory.html")


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_is_drawn_without_a_network(tau2_file, tmp_path, dark):
    dom, console = browse(tau2_file, tmp_path, dark=dark)
    charts = len(Page(tau2_file.read_text(encoding="utf-8")).specs)
    assert dom.count('data-drawn="yes"') == charts
    assert dom.count("<svg") >= charts
    assert 'data-drawn="no"' not in dom
    assert not console


def test_hostile_text_never_runs(tmp_path):
    with mk.open() as mem:
        mem.replay(hostile_turns(), label="attack")
        page = mk.report(mem, tmp_path / "hostile.html", title="still this title")
    dom, console = browse(page, tmp_path)
    assert re.findall(r"<title>(.*?)</title>", dom)[0] == "still this title"
    assert dom.count('data-drawn="yes"') == len(Page(page.read_text(encoding="utf-8")).specs)
    assert not console


def test_nothing_sticks_out_of_a_phone(tau2_file, tmp_path):
    # A window cannot be as narrow as a phone, a frame can; only the frame's own measure is taken.
    frame = tmp_path / "phone.html"
    source = json.dumps(tau2_file.read_text(encoding="utf-8")).replace("</", "<\\/").replace("<!--", "<\\!--")
    frame.write_text(
        f"""<!doctype html><iframe id="phone" width="390" height="800" style="border:0"></iframe><pre id="said"></pre>
        <script>
        const phone = document.getElementById("phone");
        phone.srcdoc = {source};
        setTimeout(() => {{
          const inside = phone.contentDocument;
          document.getElementById("said").textContent = JSON.stringify({{
            wide: inside.documentElement.scrollWidth,
            drawn: inside.querySelectorAll('[data-drawn="yes"]').length,
          }});
        }}, 15000);
        </script>""",
        encoding="utf-8",
    )
    dom, _ = browse(frame, tmp_path)
    said = json.loads(html.unescape(re.findall(r'<pre id="said">(.*?)</pre>', dom)[0]))
    assert said["drawn"] == len(Page(tau2_file.read_text(encoding="utf-8")).specs)
    assert said["wide"] <= 390
