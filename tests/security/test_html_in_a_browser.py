"""The public HTML corpus in a real browser: nothing runs, asks or opens a dialog, and every text is still there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("TOOLCAGE_CORPORA", ROOT.parent / "shared" / "corpora"))


@pytest.mark.long
@pytest.mark.skipif(not FOLDER.is_dir(), reason="no ../shared/corpora; set TOOLCAGE_CORPORA")
def test_nothing_of_the_corpus_comes_alive_in_chromium_and_no_text_is_lost() -> None:
    body = (
        "import json, pathlib, sys\nfrom benchmarks import browser, screens\n"
        "screens.CORPORA = pathlib.Path(sys.argv[1])\nprint(json.dumps(browser.run()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", body, str(FOLDER)], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=True
    )
    figures = json.loads(done.stdout)
    if "skipped" in figures:
        pytest.skip(figures["skipped"])
    control = figures["control: live samples"]
    assert control["dialogs"] >= 3
    assert control["requests"] >= 3
    assert set(figures["to_html"].values()) == {0}
    assert set(figures["output.html: clean"].values()) == {0}
    assert set(figures["nh3 and bleach"].values()) == {0}
