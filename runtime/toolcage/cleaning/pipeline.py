"""The cleaners in their one order.

decode → window → controls → invisible characters → (`html: clean`) → secrets → personal data → frame words → Markdown
→ markup → size. Characters come first because they hide everything else; secrets before structure because structure
rewrites text; size last because a cut must not halve a key.

The steps are repeated until nothing changes (in practice: once more than needed, around what was changed), so what one
step uncovers another still sees, and cleaning cleaned text changes nothing. The exception is `html: escape`, which
escapes what it is given.
Nothing here raises, whatever the text is, and every step is linear in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from toolcage.cleaning import html
from toolcage.cleaning.controls import show_controls
from toolcage.cleaning.decode import decode
from toolcage.cleaning.delimiters import show_delimiters
from toolcage.cleaning.injection import suspect
from toolcage.cleaning.markdown import part_links
from toolcage.cleaning.marks import hides
from toolcage.cleaning.personal import PERSONAL, redact_personal
from toolcage.cleaning.secrets import redact_secrets
from toolcage.cleaning.surroundings import around_changes
from toolcage.cleaning.truncate import cut, join, window, without_broken_end, without_broken_start
from toolcage.cleaning.unicode import show_invisibles
from toolcage.types import OutputTerms

REDACTABLE: Final = PERSONAL | {"secrets"}
"""The words that `OutputTerms.redact` may hold."""

_MOST_PASSES = 5

# Short plain words and numbers, which most cells of a table are: nothing that any step below looks for fits in them.
_LONGEST_DULL = 13
_DULL = re.compile(rf"[A-Za-z0-9 .,_+*/()%$-]{{0,{_LONGEST_DULL}}}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Text after cleaning, what cleaning did, and the bytes that were kept and dropped for size."""

    text: str
    findings: Counter[str] = field(default_factory=Counter)
    kept: int
    dropped: int


def require_redactable(terms: OutputTerms) -> None:
    """Returns if every word of `terms.redact` is one that cleaning knows.

    Raises:
        ValueError: it names something that does not exist; to ignore it would leave in what was to be taken out.
    """
    unknown = set(terms.redact) - REDACTABLE
    if unknown:
        raise ValueError(f"redact: {sorted(unknown)} is not one of {sorted(REDACTABLE)}")


def clean_text(text: str, terms: OutputTerms, exact_secrets: Sequence[str] = ()) -> tuple[str, Counter[str]]:
    """The text, neutralised, redacted and judged, and how often each danger was met. Not cut: see `clean_bytes`.

    Raises:
        ValueError: `terms.redact` names something that does not exist.
    """
    text, findings = _settled(text, terms, exact_secrets)
    if suspect(text).suspected:
        findings["injection_suspected"] += 1
    return _finished(text, terms, findings)


def neutralise(text: str, terms: OutputTerms, exact_secrets: Sequence[str] = ()) -> tuple[str, Counter[str]]:
    """The same without the judgement whether the text speaks to the model.

    Raises:
        ValueError: `terms.redact` names something that does not exist.
    """
    text, findings = _settled(text, terms, exact_secrets)
    return _finished(text, terms, findings)


def is_dull(text: str, terms: OutputTerms, exact_secrets: Sequence[str]) -> bool:
    """Whether the text is so short and plain that cleaning surely leaves it as it is."""
    if len(text) > _LONGEST_DULL or exact_secrets or terms.html == "escape":
        return False
    return _DULL.match(text) is not None and not ("phone" in terms.redact or "card" in terms.redact)


def _settled(text: str, terms: OutputTerms, exact: Sequence[str]) -> tuple[str, Counter[str]]:
    require_redactable(terms)
    findings: Counter[str] = Counter()
    if is_dull(text, terms, exact):
        return text, findings
    for _ in range(_MOST_PASSES):
        visible, plain = _characters(text, findings)
        text = _structure(visible, terms, exact, findings, plain=plain)
        # What `_characters` made it would make again: if nothing after it changed anything, nothing will.
        if text == visible or _changes_no_more(visible, text, terms, exact):
            break
    return text, findings


def _changes_no_more(before: str, after: str, terms: OutputTerms, exact: Sequence[str]) -> bool:
    """Whether nothing is left to do around what was done: another look at the whole text would be for nothing."""
    around = None if terms.html == "clean" else around_changes(before, after, exact)
    if around is None:
        return False
    visible, plain = _characters(around, Counter())
    return _structure(visible, terms, exact, Counter(), plain=plain) == around


def _finished(text: str, terms: OutputTerms, findings: Counter[str]) -> tuple[str, Counter[str]]:
    if terms.html == "escape":
        text, count = html.escape_all(text)
        findings["html_neutralised"] += count
    return text, +findings


def _characters(text: str, findings: Counter[str]) -> tuple[str, bool]:
    """The text with what is hidden shown, and whether it surely hides nothing, not even by marks."""
    if not hides(text):
        return text, True
    text, count = show_controls(text)
    findings["control_shown"] += count
    text, count = show_invisibles(text)
    findings["invisible_shown"] += count
    return text, text.isascii() and "[U+" not in text


def _structure(text: str, terms: OutputTerms, exact: Sequence[str], findings: Counter[str], *, plain: bool) -> str:
    """`plain`: the text is known to hide nothing."""
    if terms.html == "clean" and ("<" in text or "&" in text):
        text, count = html.sanitise(text)
        findings["html_neutralised"] += count
        plain = False  # entities may be characters now
    text, count = redact_secrets(text, exact, shapes="secrets" in terms.redact, plain=plain)
    findings["secret_redacted"] += count
    if not PERSONAL.isdisjoint(terms.redact):
        text, counts = redact_personal(text, terms.redact)
        findings.update({f"{kind}_redacted": count for kind, count in counts.items()})
    text, count = show_delimiters(text)
    findings["delimiter_neutralised"] += count
    text, count = part_links(text)
    findings["markdown_neutralised"] += count
    if terms.html == "inert":
        text, count = html.make_inert(text)
        findings["html_neutralised"] += count
    return text


def clean_bytes(
    raw: bytes, terms: OutputTerms, exact_secrets: Sequence[str] = (), *, cut_before: bool = False
) -> Cleaned:
    """Bytes as clean text of at most `terms.max_bytes` (plus the mark where something is missing).

    `cut_before` says that whoever read the bytes already stopped in the middle: the broken word at the end goes too.

    Raises:
        ValueError: `terms.redact` names something that does not exist.
    """
    if not raw and not cut_before:  # as most calls' standard error is
        require_redactable(terms)
        return Cleaned(text="", kept=0, dropped=0)
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
        again, _ = neutralise(sized.text, terms if terms.html != "escape" else _UNTOUCHED, exact)
        sized = type(sized)(again, sized.kept, sized.dropped)
    findings["encoding_replaced"] += replaced
    return Cleaned(text=sized.text, findings=+findings, kept=sized.kept, dropped=sized.dropped)


_UNTOUCHED = OutputTerms(html="keep")
