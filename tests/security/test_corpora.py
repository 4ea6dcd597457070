"""The public corpora against the screens and cleaners: kinds of attack, never single strings.

Skipped where `../shared/corpora` (or TOOLCAGE_CORPORA) is not there. `make bench-screens` prints the figures.
Here stand the promises. What is refused here never reaches a cage; what passes is harmless by its own reading, which is
checked against a second opinion (the operating system's path rules, Python's ipaddress, a sanitiser).
"""

from __future__ import annotations

import json
import os
import posixpath
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nh3
import pytest

from toolcage.cleaning.injection import suspect
from toolcage.cleaning.pipeline import clean_text
from toolcage.cli.scan import judge_of
from toolcage.facts.ip import address_is_public
from toolcage.facts.path import read_path
from toolcage.facts.url import read_url
from toolcage.types import OutputTerms

FOLDER = Path(os.environ.get("TOOLCAGE_CORPORA", Path(__file__).resolve().parents[3] / "shared" / "corpora"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no ../shared/corpora; set TOOLCAGE_CORPORA")


def corpus(name: str) -> list[str]:
    content = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["text"] for line in content.split("\n") if line.strip()]


def passed(name: str, kind: str) -> list[str]:
    judge = judge_of(kind)  # type: ignore[arg-type]
    return [text for text in corpus(name) if not judge(text).refused]


def test_no_path_of_the_corpus_that_passes_leaves_the_workspace_in_any_reading(tmp_path: Path) -> None:
    through = passed("path_traversal", "path")
    assert len(through) < 0.05 * len(corpus("path_traversal"))
    for text in through:
        for spelled in (
            text,
            unquote(text),
            unquote(unquote(text)),
            text.replace("\\", "/"),
            unquote(text).replace("\\", "/"),
        ):
            inside = posixpath.normpath(posixpath.join("/workspace", spelled))
            assert inside == "/workspace" or inside.startswith("/workspace/")
        assert tmp_path.joinpath(*read_path(text).names).is_relative_to(tmp_path)


def test_no_url_of_the_corpus_that_passes_names_a_private_address() -> None:
    for text in passed("ssrf_urls", "url"):
        url = read_url(text)
        assert url.host is not None
        assert url.scheme in ("http", "https")
        assert url.host.ip is None or address_is_public(url.host.ip)
        # Python's own parser sees the same host, or one that is no address either.
        other = (urlsplit(text).hostname or "").strip("[]")
        if other.replace(".", "").isdigit():
            assert ip_address(other).is_global


def test_every_url_of_the_corpus_with_an_address_of_ours_is_refused() -> None:
    through = set(passed("ssrf_urls", "url"))
    for mark in (
        "//127.",
        "//169.254",
        "//localhost",
        "//[::",
        "//0",
        "metadata.google",
        "//192.168",
        "gopher:",
        "file:",
        "dict:",
    ):
        assert not [text for text in through if mark in text.partition("?")[0]]


def test_what_the_html_screen_lets_pass_a_sanitiser_lets_pass_too() -> None:
    for text in passed("html_injection", "html"):
        kept = nh3.clean(text)
        assert "script" not in kept.lower() or "<script" not in text.lower()


def test_no_html_of_the_corpus_opens_a_tag_after_cleaning() -> None:
    for text in corpus("html_injection"):
        cleaned, _ = clean_text(text, OutputTerms())
        assert not any(cleaned[i] == "<" and cleaned[i + 1 : i + 2].isalpha() for i in range(len(cleaned)))


def test_shell_payloads_are_never_an_argument_vector_with_an_operator_in_it() -> None:
    from toolcage.facts.shell import read

    for text in corpus("shell_injection"):
        facts = read(text)
        if facts.argv is not None:
            assert not set("".join(facts.argv)) & set(";|&`$<>\n") or "'" in text or '"' in text


def test_ordinary_texts_are_neither_refused_nor_flagged() -> None:
    judge = judge_of("text")
    for name in ("sql_lookalike_benign", "tool_output_benign", "sql_select_benign_sqlite"):
        texts = corpus(name)
        assert not [text for text in texts if judge(text).refused]
        assert sum(suspect(text).suspected for text in texts) <= 0.01 * len(texts)


def test_attacks_on_the_model_are_flagged_inside_ordinary_output() -> None:
    carriers = corpus("tool_output_benign")
    for name, least in (  # no training reads any of these
        ("prompt_injection_indirect", 0.88),
        ("prompt_injection_direct", 0.86),
        ("jailbreak_prompts", 0.75),
    ):
        texts = corpus(name)
        wrapped = [
            f"{carriers[i % len(carriers)]}\n\n{text}\n\n{carriers[-i % len(carriers)]}" for i, text in enumerate(texts)
        ]
        assert sum(suspect(text).suspected for text in wrapped) >= least * len(texts), name
