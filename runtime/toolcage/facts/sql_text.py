"""A second reading of a statement's text, by the engine's own lexical rules: where quoting and comments begin and end.

A parser that disagrees with the engine about a single quote sees another statement than the one that will run. So the
text is scanned here with each engine's documented rules, what those rules leave doubtful is refused, and `sql.read`
then demands that the parser's tokens have exactly these quoted spans.

PostgreSQL's texts with escapes (`E'it\'s'`) and in dollars (`$$it's$$`) are read by its rules, and plain ones of the
same length are put in their place for the parser: what such a text says is in no fact.

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
        r"(?P<escaped>(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*')|(?P<dollars>(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)"
        r"|(?P<quoted>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
        r"|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<mark>[;()])|" + _NEVER.replace("#", ""),
        # `#` begins the JSON path operators and is XOR; `{` and `}` stay odd outside of quotes.
        re.DOTALL,
    ),
}
_PREFIXES: Final[dict[Dialect, str]] = {"sqlite": "xX", "postgres": "xXbBeE"}
_WORD: Final = re.compile(r"[\w$]+")
_PARAMETER: Final = frozenset(":@$")
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Where quoted text stands, as (first, last) character of each, and how many semicolons stand outside of it.
    `plain` is the text for the parser, `bare` the same with a blank for each character of a comment."""

    quoted: tuple[tuple[int, int], ...]
    semicolons: int
    plain: str
    bare: str


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
    after_literal = False
    plain, comments = list(text), []
    for match in _SPANS[dialect].finditer(text):
        start, kind, found = match.start(), match.lastgroup, match.group()
        _check_between(text, end, start)
        after_literal = after_literal and not text[end:start].strip()
        end = match.end()
        if kind == "comment":
            _check_comment(found)
            comments.append((start, end))
            continue
        literal = kind in ("escaped", "dollars") or found[0] == "'"
        if after_literal and literal and dialect == "postgres":
            # On a new line it goes on with what the first began, escapes included.
            unreadable("two quoted texts stand side by side", hint="Join texts with ||.")
        after_literal = literal
        if kind == "escaped":
            plain[start:end] = _ESCAPE.sub("xx", found)
            quoted.append((start + 1, end - 1))
        elif kind == "dollars":
            plain[start:end] = "'" + "x" * (len(found) - 2) + "'"
            quoted.append((start, end - 1))
        elif kind == "quoted":
            _check_quoted(text, start, found, dialect)
            quoted.append((start, end - 1))
        elif kind == "odd":
            unreadable(f"`{found[:40]}` is not understood at this place")
        elif found == ";":
            semicolons += 1
        else:
            if found == "(" and dialect == "sqlite":
                _check_parameter(text, start)
            depth += 1 if found == "(" else -1
            if depth > MAX_PARENTHESES:
                unreadable("its parentheses are nested too deeply", code="sql.too_deep")
    _check_between(text, end, len(text))
    if semicolons > MAX_SEMICOLONS:
        unreadable("it holds too many semicolons", code="sql.multiple_statements")
    bare = plain.copy()
    for start, end in comments:
        bare[start:end] = " " * (end - start)
    return Spans(quoted=tuple(quoted), semicolons=semicolons, plain="".join(plain), bare="".join(bare))


def _check_between(text: str, start: int, end: int) -> None:
    """Outside of quotes and comments: ASCII, or letters. Other blanks, digits and signs are read in two ways, and so
    are letters whose other case is ASCII: to a parser that folds them `ﬁlter` is FILTER, to the engine a name."""
    plain = text[start:end]
    if plain.isascii():
        return
    if not all(character.isascii() or character.isalpha() for character in plain):
        unreadable("it holds an unusual blank or sign outside of quotes")
    for word in _WORD.findall(plain):
        if not word.isascii() and (word.replace("ß", "·").upper().isascii() or word.lower().isascii()):
            unreadable(
                f"`{word[:40]}` may be read as another word", hint="Put a name with such letters in double quotes."
            )


def _check_parameter(text: str, end: int) -> None:
    """SQLite takes `:x(…)` for the name of one parameter, up to the parenthesis or a blank, quotes included."""
    start = end
    while start and (text[start - 1].isalnum() or text[start - 1] in "_:@$"):
        start -= 1
    if not _PARAMETER.isdisjoint(text[start:end]):
        unreadable("a parenthesis stands directly after a parameter", hint="Put a blank between them.")


def _check_quoted(text: str, start: int, span: str, dialect: Dialect) -> None:
    """A letter before a quote changes what the quote means, each engine in its own way; a longer word does not."""
    if span[0] not in "'\"":
        return
    before = _word_before(text, start)
    if before == "&" and dialect == "postgres" and text[max(0, start - 2)] in "uU":
        unreadable("it uses Unicode escapes in quotes")
    if before in ("", "&"):
        return
    plain = before.isascii() and before.isalpha()
    if span[0] != "'" or not plain or (len(before) == 1 and before not in _PREFIXES[dialect]):
        unreadable("a quote stands directly after a word", hint="Put a blank between a word and a quoted text.")


def _word_before(text: str, end: int) -> str:
    """The letters, digits, `_` and `$` that end at `end`, or the `&` there; no more than a word may have."""
    start = end
    while start and end - start < 64 and (text[start - 1].isalnum() or text[start - 1] in "_$"):
        start -= 1
    return text[start:end] or ("&" if text[end - 1 : end] == "&" else "")


def _check_comment(comment: str) -> None:
    if comment.startswith("/*") and (comment[2:3] in ("!", "+") or "/*" in comment[2:]):
        unreadable("it holds a comment that engines read differently", hint="Leave comments out.")
