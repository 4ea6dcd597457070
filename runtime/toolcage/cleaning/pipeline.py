"""The cleaners in their one order.

decode → window → controls → invisible characters → (`html: clean`) → secrets → personal data → frame words → Markdown
→ markup → size. Characters come first because they hide everything else; secrets before structure because structure
rewrites text; size last because a cut must not halve a key.

The steps are repeated until nothing changes (in practice: once more than needed), so what one step uncovers another
still sees, and cleaning cleaned text changes nothing. The exception is `html: escape`, which escapes what it is given.
Nothing here raises, whatever the text is, and every step is linear in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolcage.cleaning import html
from toolcage.cleaning.controls import show_controls
from toolcage.cleaning.decode import decode
from toolcage.cleaning.delimiters import show_delimiters
from toolcage.cleaning.injection import suspect
from toolcage.cleaning.json_bounds import Bounder
from toolcage.cleaning.markdown import part_links
from toolcage.cleaning.personal import redact_emails
from toolcage.cleaning.secrets import named_secret, redact_secrets
from toolcage.cleaning.truncate import cut, join, window, without_broken_end, without_broken_start
from toolcage.cleaning.unicode import show_invisibles
from toolcage.types import JSON, OutputTerms

_MOST_PASSES = 5

# Short plain words and numbers, which most cells of a table are: nothing that any step below looks for fits in them.
_LONGEST_DULL = 14
_DULL = re.compile(r"[A-Za-z0-9 .,_+*/()%$-]{0,13}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Text after cleaning, what cleaning did, and the bytes that were kept and dropped for size."""

    text: str
    findings: Counter[str] = field(default_factory=Counter)
    kept: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedJSON:
    """A JSON value after cleaning, frozen; `kept` and `dropped` are bytes as JSON would take them."""

    value: JSON
    findings: Counter[str]
    kept: int
    dropped: int


def clean_text(text: str, terms: OutputTerms, exact_secrets: Sequence[str] = ()) -> tuple[str, Counter[str]]:
    """The text, neutralised and redacted, and how often each danger was met. Not cut: see `clean_bytes`."""
    findings: Counter[str] = Counter()
    if len(text) <= _LONGEST_DULL and terms.html != "escape" and not exact_secrets and _DULL.match(text):
        return text, findings
    for _ in range(_MOST_PASSES):
        before = text
        text = _pass(text, terms, exact_secrets, findings)
        if text == before:
            break
    if suspect(text).suspected:
        findings["injection_suspected"] += 1
    if terms.html == "escape":
        text, count = html.escape_all(text)
        findings["html_neutralised"] += count
    return text, +findings


def _pass(text: str, terms: OutputTerms, exact: Sequence[str], findings: Counter[str]) -> str:
    text, findings_of_step = show_controls(text)
    findings["control_shown"] += findings_of_step
    text, findings_of_step = show_invisibles(text)
    findings["invisible_shown"] += findings_of_step
    if terms.html == "clean" and ("<" in text or "&" in text):
        text, findings_of_step = html.sanitise(text)
        findings["html_neutralised"] += findings_of_step
    text, findings_of_step = redact_secrets(text, exact, shapes="secrets" in terms.redact)
    findings["secret_redacted"] += findings_of_step
    if "email" in terms.redact:
        text, findings_of_step = redact_emails(text)
        findings["email_redacted"] += findings_of_step
    text, findings_of_step = show_delimiters(text)
    findings["delimiter_neutralised"] += findings_of_step
    text, findings_of_step = part_links(text)
    findings["markdown_neutralised"] += findings_of_step
    if terms.html == "inert":
        text, findings_of_step = html.make_inert(text)
        findings["html_neutralised"] += findings_of_step
    return text


def clean_bytes(
    raw: bytes, terms: OutputTerms, exact_secrets: Sequence[str] = (), *, cut_before: bool = False
) -> Cleaned:
    """Bytes as clean text of at most `terms.max_bytes` (plus the mark where something is missing).

    `cut_before` says that whoever read the bytes already stopped in the middle: the broken word at the end goes too.
    """
    return _clean_window(*window(raw, terms.max_bytes), terms, exact_secrets, cut_before)


def clean_string(text: str, terms: OutputTerms, exact_secrets: Sequence[str], max_bytes: int) -> Cleaned:
    """The same for a text and a cap of its own."""
    if len(text) <= max_bytes:
        cleaned, findings = clean_text(text, terms, exact_secrets)
        sized = cut(cleaned, max_bytes)
        return Cleaned(text=sized.text, findings=findings, kept=sized.kept, dropped=sized.dropped)
    # A lone surrogate becomes a question mark here, and only in a text this long.
    narrowed = OutputTerms(max_bytes=max_bytes, html=terms.html, redact=terms.redact, on_injection=terms.on_injection)
    return clean_bytes(text.encode("utf-8", "replace"), narrowed, exact_secrets)


def _clean_window(
    head: bytes, tail: bytes, missing: int, terms: OutputTerms, exact: Sequence[str], cut_before: bool
) -> Cleaned:
    text, replaced, _ = decode(head)
    if cut_before and not tail:
        text = without_broken_end(text)
    if not tail:
        cleaned, findings = clean_text(text, terms, exact)
        sized = cut(cleaned, terms.max_bytes)
    else:
        end, more, _ = decode(tail)
        replaced += more
        cleaned, findings = clean_text(without_broken_end(text), terms, exact)
        last, found = clean_text(without_broken_start(without_broken_end(end) if cut_before else end), terms, exact)
        findings += found
        sized = join(cleaned, last, missing, terms.max_bytes)
    if sized.dropped:
        findings["truncated"] += 1
        again, found = clean_text(sized.text, terms if terms.html != "escape" else _UNTOUCHED, exact)
        sized = type(sized)(again, sized.kept, sized.dropped)
    findings["encoding_replaced"] += replaced
    return Cleaned(text=sized.text, findings=+findings, kept=sized.kept, dropped=sized.dropped)


_UNTOUCHED = OutputTerms(html="keep")


def clean_json(value: JSON, terms: OutputTerms, exact_secrets: Sequence[str] = ()) -> CleanedJSON:
    """A JSON value with every string and every key cleaned, at most `terms.max_bytes` in all. Never raises."""
    findings: Counter[str] = Counter()

    def clean(text: str, room: int, key: str | None) -> str:
        if key and "secrets" in terms.redact and named_secret(key, text):
            findings["secret_redacted"] += 1
            return "[redacted:password]"
        cleaned = clean_string(text, terms, exact_secrets, room)
        findings.update(cleaned.findings)
        bounder.dropped += cleaned.dropped
        return cleaned.text

    bounder = Bounder(max_bytes=terms.max_bytes, text=clean)
    bounded = bounder.bound(value)
    if bounder.dropped:
        findings["truncated"] += 1
    return CleanedJSON(value=bounded, findings=+findings, kept=bounder.kept, dropped=bounder.dropped)
