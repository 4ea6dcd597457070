"""A second reading of a statement's text, by the engine's own lexical rules: where quoting and comments begin and end.

A parser that disagrees with the engine about a single quote sees another statement than the one that will run. So the
text is scanned here with each engine's documented rules, what those rules leave doubtful is refused, and `sql.read`
then demands that the parser's tokens have exactly these quoted spans.

Trusts nothing. Knows no grammar beyond quotes, comments, semicolons and parentheses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from toolcage.errors import Refused
from toolcage.types import Refusal

Dialect = Literal["sqlite", "postgres"]

MAX_BYTES: Final = 20_000
MAX_PARENTHESES: Final = 30
MAX_SEMICOLONS: Final = 16

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_CONTROL_BUT_RETURN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NEVER: Final = r"(?P<odd>['\"`\\#{}]|\$\w*\$|(?<=\w)\$|/\*)"
_SPANS: Final[dict[Dialect, re.Pattern[str]]] = {
    "sqlite": re.compile(
        r"(?P<quoted>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^\]]*\])"
        r"|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<mark>[;()])|" + _NEVER.replace("'", r"'\["),
        re.DOTALL,
    ),
    "postgres": re.compile(
        r"(?P<quoted>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
        r"|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<mark>[;()])|" + _NEVER.replace("#", ""),
        # `#` begins the JSON path operators and is XOR; `{` and `}` stay odd outside of quotes.
        re.DOTALL,
    ),
}
_PREFIXES: Final[dict[Dialect, str]] = {"sqlite": "xX", "postgres": "xXbBeE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Where quoted text stands, as (first, last) character of each, and how many semicolons stand outside of it."""

    quoted: tuple[tuple[int, int], ...]
    semicolons: int


def unreadable(reason: str, *, code: str = "sql.unreadable", hint: str | None = None) -> NoReturn:
    """Raises the refusal of a statement that cannot be read with certainty."""
    raise Refused(
        Refusal(
            status="blocked",
            code=code,
            message=f"The SQL cannot be read: {reason}.",
            hint=hint or "Send one plain SELECT statement; pass literal values as bound parameters.",
        )
    )


def scan(text: str, dialect: Dialect) -> Spans:
    """The quoted spans of `text`. Raises Refused (blocked) for what is too long, too nested, or lexically doubtful."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        unreadable(f"it is longer than {MAX_BYTES} bytes", code="sql.too_long", hint="Ask with a shorter statement.")
    if "\x00" in text:
        unreadable("it holds a NUL character", code="sql.nul")
    if _CONTROL.search(text) and (_CONTROL_BUT_RETURN.search(text) or "\r" in text.replace("\r\n", "\n")):
        unreadable("it holds a control character")
    quoted: list[tuple[int, int]] = []
    semicolons = depth = end = 0
    for match in _SPANS[dialect].finditer(text):
        _check_between(text, end, match.start())
        end = match.end()
        if match.lastgroup == "quoted":
            _check_quoted(text, match.start(), match.group(), dialect)
            quoted.append((match.start(), end - 1))
        elif match.lastgroup == "comment":
            _check_comment(match.group())
        elif match.lastgroup == "odd":
            unreadable(f"`{match.group()}` is not understood at this place")
        elif match.group() == ";":
            semicolons += 1
        else:
            depth += 1 if match.group() == "(" else -1
            if depth > MAX_PARENTHESES:
                unreadable("its parentheses are nested too deeply", code="sql.too_deep")
    _check_between(text, end, len(text))
    if semicolons > MAX_SEMICOLONS:
        unreadable("it holds too many semicolons", code="sql.multiple_statements")
    return Spans(quoted=tuple(quoted), semicolons=semicolons)


def _check_between(text: str, start: int, end: int) -> None:
    """Outside of quotes and comments: ASCII, or letters. Other blanks, digits and signs are read in two ways."""
    plain = text[start:end]
    if not plain.isascii() and not all(character.isascii() or character.isalpha() for character in plain):
        unreadable("it holds an unusual blank or sign outside of quotes")


def _check_quoted(text: str, start: int, span: str, dialect: Dialect) -> None:
    """A letter before a quote changes what the quote means, each engine in its own way."""
    before = text[start - 1] if start else " "
    if span[0] not in "'\"":
        return
    if before == "&" and dialect == "postgres" and text[max(0, start - 2)] in "uU":
        unreadable("it uses Unicode escapes in quotes")
    if not (before.isalnum() or before in "_$"):
        return
    alone = start < 2 or not (text[start - 2].isalnum() or text[start - 2] in "_$")
    if span[0] != "'" or not alone or before not in _PREFIXES[dialect]:
        unreadable("a quote stands directly after a word", hint="Put a blank between a word and a quoted text.")
    if before in "eE" and "\\" in span:
        unreadable("it uses backslash escapes")


def _check_comment(comment: str) -> None:
    if comment.startswith("/*") and (comment[2:3] in ("!", "+") or "/*" in comment[2:]):
        unreadable("it holds a comment that engines read differently", hint="Leave comments out.")
