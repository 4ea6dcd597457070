"""Personal data redacted, where the policy asks for it (`redact: [email, iban, card, phone]`).

Danger: personal data of third parties that a role needs to compute with but not to see. Protects: the model, logs.

An account number must have its country's length and pass mod 97 (ISO 13616); a card number must have an issuer's
prefix and length and pass the Luhn test (ISO/IEC 7812); a telephone number must be international and grouped, or
grouped as in North America, or a word like "phone" must stand before it. So ids, times, versions and amounts stay.
Names and postal addresses are not found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from types import MappingProxyType
from typing import Any, Final

from toolcage.cleaning.marks import views

_NAMES = r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}"
_DOMAIN = re.compile(rf"@{_NAMES}")
# The sign encoded, or written out so that no machine may read it.
_ENCODED_DOMAINS: Final = {
    sign: re.compile(re.escape(sign) + _NAMES) for sign in ("%40", "&#64;", "&#x40;", "&commat;", "\\u0040")
}
_WRITTEN_DOMAIN = re.compile(
    r"[\[({](?:at|ät)[\])}] ?[^\W_][\w-]{0,61}(?:(?:\.| ?[\[({](?:dot|punkt)[\])}] ?)"
    r"[^\W_][\w-]{0,61}){1,4}(?!\w)",
    re.IGNORECASE,
)
_LOCAL_END = re.compile(r"[\w.!#$%&'*+=?^`{|}~-]{1,64}\Z")
_NO_PERSON = re.compile(r"(?:git|svn|hg)\Z")  # who clones, not who writes

# Begins at the first of the two check digits: digits are rare, and the engine scans for them fast.
_IBAN_DIGIT = re.compile(r"[0-9](?<=[A-Za-z]{2}[0-9])(?<![A-Za-z0-9_][A-Za-z]{2}[0-9])[0-9]")
_SCALED_PICTURE = re.compile(r"@[0-9](?:\.[0-9])?x\.(?:png|jpe?g|gif|webp|svg|avif)\Z", re.IGNORECASE)  # `icon@2x.png`
_IBAN_LENGTHS: Final = MappingProxyType({
    pair[:2]: int(pair[2:])
    for pair in re.findall(
        "[A-Z0-9]{4}",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
        "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
        "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
        "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
        "YE30"
    )
})  # fmt: skip
_IBAN_REST: Final = {
    length: re.compile(rf"(?:[ \u00a0-]?[A-Za-z0-9]){{{length - 4}}}(?![A-Za-z0-9])")
    for length in set(_IBAN_LENGTHS.values())
}

# Not behind a letter, a decimal point or the group of a UUID, and not before one.
_CARD = re.compile(
    r"[0-9](?<![\w]\d)(?<!\d[.,]\d)(?<![0-9A-Fa-f]{4}-\d)(?:[0-9]{11,18}"
    r"|[0-9]{3}([ \u00a0-])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?|[0-9]{6}\1[0-9]{4,5}))"
    r"(?![\w]|[.,][0-9]|-[0-9A-Fa-f]{4})"
)
_ISSUERS: Final = (  # first and last prefix of the same length, and the lengths of its numbers
    (4, 4, (13, 16, 19)), (51, 55, (16,)), (2221, 2720, (16,)), (34, 34, (15,)), (37, 37, (15,)), (300, 305, (14,)),
    (36, 36, (14,)), (38, 39, (14,)), (3528, 3589, (16, 17, 18, 19)), (6011, 6011, (16, 17, 18, 19)),
    (644, 659, (16, 17, 18, 19)), (62, 62, (16, 17, 18, 19)), (5018, 5018, (12, 13, 14, 15, 16, 17, 18, 19)),
    (5020, 5020, (12, 13, 14, 15, 16, 17, 18, 19)), (5038, 5038, (12, 13, 14, 15, 16, 17, 18, 19)),
    (6304, 6304, (12, 13, 14, 15, 16, 17, 18, 19)), (6759, 6763, (12, 13, 14, 15, 16, 17, 18, 19)),
)  # fmt: skip

_GAP = r"(?:[ \u00a0./-]|[ \u00a0]?\(0?\)[ \u00a0]?|\)[ \u00a0/-]?|[ \u00a0/-]\()"
_GROUPED = rf"\(?[1-9][0-9]{{0,3}}(?:{_GAP}[0-9]{{1,11}}){{1,6}}(?![\w]|[.,:/-]\d)"
_INTERNATIONAL = re.compile(rf"\+(?<![\w+]\+){_GROUPED}")
_NEXT = re.compile(rf"\+{_GROUPED}")  # directly behind a number
_UNGROUPED = re.compile(r"\+(?:(?<=[ \t\u00a0(:\"'>,;|=]\+)|(?<=\A\+))[1-9][0-9]{9,14}(?![\w]|[.,:/-]\d)")
_BRACKETED = re.compile(r"\((?<![\w)]\()[2-9][0-9]{2}\) ?[0-9]{3}[-. ][0-9]{4}(?![\w]|[.,:/-]\d)")
_WITH_ZEROS = re.compile(  # and not the middle of a number in groups
    r"00(?<![\w.,:/+-]00)(?<![0-9][ \u00a0]00)[1-9][0-9]{0,2}(?:[ \u00a0/-][0-9]{2,11}){2,5}(?![\w]|[.,:/-]\d)"
)
_AMERICAN = re.compile(r"[2-9](?<![\w.,:/+-].)[0-9]{2}-[0-9]{3}-[0-9]{4}(?![\w]|[.,:/-]\d)")
_WITH_ONE = re.compile(r"1-(?<![\w.,:/+-]1-)[2-9][0-9]{2}-[0-9]{3}-[0-9]{4}(?![\w]|[.,:/-]\d)")
_WRITTEN_OUT: Final = (_INTERNATIONAL, _UNGROUPED, _BRACKETED, _AMERICAN, _WITH_ONE, _WITH_ZEROS)
# What a word before it may announce as well: a day, a version; and what a sign may stand before: a coordinate.
_NO_NUMBER = re.compile(
    r"[0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}\Z|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{4}\Z|[1-9](?:\.[0-9]{1,4}){2,}\Z"
    r"|\+[0-9]{1,3}\.[0-9]+\Z"
)
_AMERICAN_DOTS = re.compile(r"1\.[2-9][0-9]{2}\.[0-9]{3}\.[0-9]{4}\Z")
_CALLED = re.compile(
    r"(?<!redacted:)(?:(?<!\w)|(?=[电手電携휴전연☎☏📞📱]))(?:tel(?:e(?:f(?:on[eo]?|oon)|phone))?|(?:tele)?phones?"
    r"(?:[ _-]?(?:number|no))?"
    r"|mobile?|mobiel|m[óo]vil|cell(?:phone|ular)?|celular|gsm|fax|whatsapp|sms|handy|rufnummer"
    r"|t[ée]l(?:[ée]phone)?"
    r"|tel[ée]fono|portable"
    r"|call(?: (?:me|us))?(?: (?:at|on))?|тел(?:ефон)?"
    r"|(?:电话|手机|電話)(?:号码)?|携帯(?:電話)?|휴대(?:폰|전화)|전화(?:번호)?|연락처|[☎☏📞📱]\ufe0f?)"
    r"(?:\.|(?!\w))[\"'’)\]]{0,2}[ \u00a0]?[:=|：]{0,2}\s?[\"'(]?"
    rf"(?P<value>(?:\+|\(|00)?[0-9]{{1,11}}(?:{_GAP}[0-9]{{1,11}}){{0,6}}"
    rf"|\+?\([0-9]{{1,5}}(?:{_GAP}[0-9]{{1,11}}){{1,6}})"
    r"(?![\w]|[.,:]\d)",
    re.IGNORECASE,
)
# What the words of `_CALLED` begin with, found fast in the text as ASCII or, beyond ASCII, in the text itself.
_CALLING_WORDS: Final[tuple[re.Pattern[Any], ...]] = (
    *(re.compile(word) for word in (b"t(?=el|\\?l)", b"phone", b"mobi", b"m(?=\\?vil|ovil)", b"cel(?=l|ular)", b"gsm",
                                    b"fax", b"whatsapp", b"sms", b"handy", b"rufnummer", b"portable", b"call")),
    re.compile("[тТ](?=[еЕ][лЛ])|电话|手机|電話|携帯|휴대|전화|연락처|[☎☏📞📱]"),
)  # fmt: skip
_CALLED_KEY = re.compile(
    r"(?:.*[_\s.-])?(?:tel|phone|telephone|mobile|cell|fax|msisdn|telefon|whatsapp)(?:[_\s-]?(?:number|no|nr|\d))?",
    re.IGNORECASE,
)
_CALLED_VALUE = re.compile(rf"\+?\(?[0-9]{{1,15}}(?:{_GAP}[0-9]{{1,11}}){{0,6}}")

_Span = tuple[int, int]


def redact_personal(text: str, kinds: Collection[str]) -> tuple[str, dict[str, int]]:
    """The text without personal data of these kinds, and how many of each there were."""
    counts: dict[str, int] = {}
    for kind, find in _FINDERS.items():  # account and card numbers first: parts of them look like telephone numbers
        if kind in kinds:
            text, counts[kind] = _redacted(text, kind, find)
    return text, counts


def names_personal(key: str, kinds: Collection[str]) -> bool:
    """Whether a key of an object may say that its value is personal data."""
    return "phone" in kinds and _CALLED_KEY.fullmatch(key) is not None


def named_personal(key: str, value: str, kinds: Collection[str]) -> str | None:
    """The kind of personal data that the key of an object says its value is, where the value looks like it."""
    if names_personal(key, kinds) and _CALLED_VALUE.fullmatch(value.strip()):
        return "phone" if _is_long_enough(value) else None
    return None


def _redacted(text: str, kind: str, find: Callable[[str], Iterator[_Span]]) -> tuple[str, int]:
    spans: list[_Span] = []
    for view in views(text):
        spans += [view.origin(start, end) for start, end in find(view.text)]
    pieces, position, count = [], 0, 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [text[position:start], f"[redacted:{kind}]"]
            count += 1
        position = max(position, end)
    return "".join([*pieces, text[position:]]), count


def _emails(text: str) -> Iterator[_Span]:
    """Anchored at the `@` and looking back at most 64 characters, so a long word costs nothing."""
    position = 0
    for match in _signs(text):
        end = match.start()
        if match[0][0] in "[({" and text[end - 1 : end] == " ":
            end -= 1
        local = _LOCAL_END.search(text[max(position, end - 64) : end]) if end >= position else None
        if local is None or _SCALED_PICTURE.match(match[0]) or _NO_PERSON.match(local[0]):
            continue
        start = end - len(local[0])
        if not text.startswith("//", max(0, start - 2)):  # `https://user@host` logs in and is no address
            position = match.end()
            yield start, position


def _signs(text: str) -> list[re.Match[str]]:
    found = [*_DOMAIN.finditer(text)] if "@" in text else []
    for sign, domain in _ENCODED_DOMAINS.items():
        if sign in text:
            found += domain.finditer(text)
    if "at]" in text or "at)" in text or "at}" in text or "ät" in text:
        found += _WRITTEN_DOMAIN.finditer(text)
    return sorted(found, key=re.Match.start)


def _ibans(text: str) -> Iterator[_Span]:
    last = 0
    for match in _IBAN_DIGIT.finditer(text):
        start = match.start() - 2
        length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
        rest = _IBAN_REST[length].match(text, match.end()) if length and start >= last else None
        if rest is not None and _passes_mod_97(text[start : rest.end()]):
            last = rest.end()
            yield start, last


def _passes_mod_97(written: str) -> bool:
    compact = re.sub(r"[ \u00a0-]", "", written).upper()
    return int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 == 1


def _cards(text: str) -> Iterator[_Span]:
    for match in _CARD.finditer(text):
        digits = "".join(filter(str.isdigit, match[0]))
        if _has_issuer(digits) and _passes_luhn(digits) and len(set(digits)) > 1:
            yield match.span()


def _has_issuer(digits: str) -> bool:
    return any(
        first <= int(digits[: len(str(first))]) <= last and len(digits) in lengths for first, last, lengths in _ISSUERS
    )


def _passes_luhn(digits: str) -> bool:
    odd = sum(map(int, digits[-1::-2]))
    return (odd + sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])) % 10 == 0


def _phones(text: str) -> Iterator[_Span]:
    spans = [match.span() for pattern in _WRITTEN_OUT for match in pattern.finditer(text)]
    lowered = text.encode("ascii", "replace").lower()
    for word in _CALLING_WORDS:
        for hit in word.finditer(lowered if isinstance(word.pattern, bytes) else text):
            called = _CALLED.match(text, hit.start())
            if called is not None:
                spans.append(called.span("value"))
    spans = [(start, end) for start, end in spans if _may_be_number(text[start:end])]
    position = 0
    for start, end in sorted(spans):
        while start >= position and _is_long_enough(text[start:end]):
            position = end
            yield start, end
            if (glued := _NEXT.match(text, end)) is None:
                break
            start, end = glued.span()


def _may_be_number(written: str) -> bool:
    return _NO_NUMBER.match(written) is None or _AMERICAN_DOTS.match(written) is not None


def _is_long_enough(written: str) -> bool:
    """A number of E.164: at most 15 digits; fewer than 7 is an extension or a year."""
    return 7 <= sum(map(str.isdigit, written)) <= 15


_FINDERS: Final = {"email": _emails, "iban": _ibans, "card": _cards, "phone": _phones}
PERSONAL: Final = frozenset(_FINDERS)
"""The kinds of personal data that can be asked for."""
