"""Test outcomes as JUnit XML, which every CI system shows. One suite per policy file, one test per case.

Text of policy files goes in as attributes and text nodes only; characters that XML cannot hold are spelled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One test: its name, and what is wrong; None = it passed."""

    name: str
    failure: str | None = None


def junit(suites: Iterable[tuple[str, list[Outcome]]]) -> str:
    """The XML document for `(suite, outcomes)` pairs."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for name, outcomes in suites:
        failed = sum(1 for item in outcomes if item.failure is not None)
        parts.append(f'  <testsuite name={_attribute(name)} tests="{len(outcomes)}" failures="{failed}">')
        for item in outcomes:
            opened = f"    <testcase classname={_attribute(name)} name={_attribute(item.name)}"
            if item.failure is None:
                parts.append(f"{opened}/>")
            else:
                failure = f"<failure message={_attribute(item.failure)}>{escape(_plain(item.failure))}</failure>"
                parts.append(f"{opened}>{failure}</testcase>")
        parts.append("  </testsuite>")
    parts.append("</testsuites>")
    return "\n".join(parts) + "\n"


def _attribute(text: str) -> str:
    return quoteattr(_plain(text))


def _plain(text: str) -> str:
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
