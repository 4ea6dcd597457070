# ruff: noqa: N815 - http.server calls its handlers do_GET and the like
"""The shared HTML corpus in headless Chromium: does anything of it come alive, and is its text still there?

Two renderings of every entry: `to_html()` of a result that holds it, and what `output.html: clean` leaves of it (nh3),
as markup. As a control, live samples of our own must come alive, or the measure measures nothing. A page holds some
dozens of entries in sections of their own. What counts: dialogs and scripts (`alert` and its like are replaced by
counters), requests (all go through a proxy that counts and refuses them; the hosts that an empty page asks for are the
browser's own), elements that are not ours, and sections whose text is not the cleaned text.

nh3's output is also given to bleach, with the same allowlist: what it would still take away is counted. Needs Debian's
package `chromium`; nothing leaves this machine, and the browser is started with an empty profile that is then deleted.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from benchmarks.screens import rows
from toolcage.cleaning import html as markup
from toolcage.cleaning.controls import show_controls
from toolcage.cleaning.pipeline import clean_text
from toolcage.cleaning.unicode import show_invisibles
from toolcage.line.result import ToolResult
from toolcage.types import OutputTerms

CHROMIUM: Final = "chromium"
_IN_A_PAGE: Final = 60
_ONE_PAGE_S: Final = 180
_FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--no-pings",
    "--proxy-bypass-list=<-loopback>", "--virtual-time-budget=4000", "--timeout=20000", "--dump-dom",
)  # fmt: skip
# Runs before the entries are parsed: counts what would show, and keeps what an entry can no longer change.
_BEFORE: Final = """<!doctype html><meta charset="utf-8"><script>
(() => { const seen = window.__seen = {dialogs: 0};
const count = () => { seen.dialogs += 1; return null; };
for (const name of ["alert", "confirm", "prompt", "print", "open", "eval"])
  Object.defineProperty(window, name, {value: count, configurable: false, writable: false}); })();
</script><body>"""
_AFTER: Final = """<script id="verdict">
addEventListener("load", () => setTimeout(() => {
  const found = {dialogs: window.__seen.dialogs, sections: {}};
  for (const one of document.querySelectorAll("section[data-entry]"))
    found.sections[one.dataset.entry] = [[...one.querySelectorAll("*")].map(e => e.localName +
      (e.attributes.length ? "!" : "")).join(" "), one.textContent];
  const out = document.createElement("template"); out.id = "found";
  out.content.append(document.createTextNode(encodeURIComponent(JSON.stringify(found)))); document.body.append(out);
}, 1500));
</script>"""
_LIVE: Final = (
    "<script>alert(1)</script>", "<img src=http://a.example/x onerror=alert(1)>", "<svg onload=alert(1)></svg>",
    "<link rel=stylesheet href=http://b.example/x>", "<iframe src=http://c.example/></iframe>",
)  # fmt: skip
_OURS: Final = {"dl!", "dt", "dd", "pre"}


class _Counter(ThreadingHTTPServer):
    """A proxy that refuses everything and remembers what was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Refusing)
        self.asked: list[str] = []


class _Refusing(BaseHTTPRequestHandler):
    def _refuse(self) -> None:
        assert isinstance(self.server, _Counter)
        self.server.asked.append(f"{self.command} {self.path}"[:200])
        with contextlib.suppress(OSError):  # it may have hung up
            self.send_error(403)

    do_GET = do_POST = do_HEAD = do_PUT = do_CONNECT = do_OPTIONS = _refuse

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the requests are the measurement."""


def run(most: int | None = None) -> dict[str, Any]:
    """The figures; `most` limits the entries, for a quick look."""
    if shutil.which(CHROMIUM) is None:
        return {"skipped": f"no {CHROMIUM}: apt-get install chromium"}
    texts = [row["text"] for row in rows("html_injection")][:most]
    return {
        "entries": len(texts),
        "to_html": _measured(texts, [_rendered(text) for text in texts], [_shown_text(text) for text in texts]),
        "output.html: clean": _measured(texts, [_sanitised(text) for text in texts], None),
        "control: live samples": _measured(list(_LIVE), list(_LIVE), None),
        "nh3 and bleach": _second_opinion(texts),
    }


def _rendered(text: str) -> str:
    return ToolResult(True, clean_text(text, OutputTerms(max_bytes=1 << 20))[0]).to_html()


def _shown_text(text: str) -> str:
    return clean_text(text, OutputTerms(max_bytes=1 << 20))[0]


def _sanitised(text: str) -> str:
    return markup.sanitise(show_invisibles(show_controls(text)[0])[0])[0]


def _measured(texts: list[str], rendered: list[str], expected: list[str] | None) -> dict[str, int]:
    own = _hosts(_page(["nothing"])[1])
    total = {"dialogs": 0, "requests": 0, "entries with markup that is not ours": 0, "entries whose text changed": 0}
    for start in range(0, len(texts), _IN_A_PAGE):
        part = rendered[start : start + _IN_A_PAGE]
        found, asked = _page(part)
        total["dialogs"] += found.get("dialogs", 0)
        total["requests"] += len(_hosts(asked) - own)
        sections = found.get("sections", {})
        for place in range(len(part)):
            elements, text = sections.get(str(place), ("missing", ""))
            if expected is None:
                continue
            total["entries with markup that is not ours"] += not set(elements.split()) <= _OURS
            total["entries whose text changed"] += _plain(expected[start + place]) not in _plain(text)
    if expected is None:
        del total["entries with markup that is not ours"], total["entries whose text changed"]
    return total


def _hosts(asked: Iterable[str]) -> set[str]:
    """The hosts that a browser asked its proxy for."""
    targets = (line.split(" ")[1] for line in asked)
    return {target.split("://", 1)[-1].split("/")[0].removesuffix(":443") for target in targets}


def _plain(text: str) -> str:
    return " ".join(text.replace("\\n", "\n").replace("\\t", "\t").split())


def _page(parts: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """One page in one browser: what its own script counted, and what the proxy was asked for."""
    body = "".join(f'<section data-entry="{place}">{part}</section>' for place, part in enumerate(parts))
    counter = _Counter()
    threading.Thread(target=counter.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix="toolcage-browser-") as folder:
            page = Path(folder) / "page.html"
            page.write_text(_BEFORE + body + _AFTER, encoding="utf-8", errors="replace")
            dom = _dom(page, Path(folder) / "profile", counter.server_port)
    finally:
        counter.shutdown()
        counter.server_close()
    return _found(dom), counter.asked


def _dom(page: Path, profile: Path, port: int) -> str:
    ours = (f"--user-data-dir={profile}", f"--proxy-server=http://127.0.0.1:{port}")
    command = [CHROMIUM, *_FLAGS, *ours, page.as_uri()]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True) as browser:
        try:
            return browser.communicate(timeout=_ONE_PAGE_S)[0].decode("utf-8", "replace")
        finally:
            with contextlib.suppress(ProcessLookupError):  # its helpers too
                os.killpg(browser.pid, signal.SIGKILL)


def _found(dom: str) -> dict[str, Any]:
    from urllib.parse import unquote

    _, mark, after = dom.rpartition('<template id="found">')
    if not mark:
        return {}
    found: dict[str, Any] = json.loads(unquote(html.unescape(after.partition("</template>")[0])))
    return found


def _second_opinion(texts: list[str]) -> dict[str, int]:
    import bleach

    differ = 0
    for kept in map(_sanitised, texts):
        again = bleach.clean(
            kept, tags=set(markup.TAGS), attributes={"*": ["title"], "a": ["href", "title", "rel"]},
            protocols=["http", "https", "mailto"], strip=False,
        )  # fmt: skip
        differ += _tags(again) != _tags(kept)
    return {"entries where bleach would take more away": differ}


def _tags(text: str) -> list[tuple[str, tuple[tuple[str, str | None], ...]]]:
    return list(_Tags.of(text))


class _Tags:
    """The tags of a text with their attributes, as the standard library's parser reads them."""

    @staticmethod
    def of(text: str) -> Iterator[tuple[str, tuple[tuple[str, str | None], ...]]]:
        from html.parser import HTMLParser

        found: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []

        class Reader(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
                found.append((tag, tuple(sorted(attrs))))

        reader = Reader()
        reader.feed(text)
        reader.close()
        yield from found
