"""Words that a model reads as the frame of the conversation, shown as the text that they are.

Danger: output that pretends to end itself and to open a turn of the system, the user or a tool: ChatML and header
tokens, `[INST]`, tool-call and tool-result tags, the markers that `ToolResult.to_text` puts around untrusted text.
Protects: the model.

The brackets become ‹ ›, the words stay. Found in any case, with spaces, with fullwidth and look-alike characters. A
model can still be fooled by prose; this stops only what a tokenizer or a template would take for the frame.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from toolcage.facts.sieve import Sieve

_SPACE = r"[\s\x1c-\x1f]"  # what Python calls white space, in the words of a sieve
_TOOL_WORD = (
    rf"(?:(?:antml:)?(?:tool|function)(?:[_-]|{_SPACE})?(?:calls?|results?|outputs?|use|response|responses|inputs?)"
    r"|(?:antml:)?(?:invoke|function_calls|parameter|thinking)"
    rf"|(?:end(?:[_-]|{_SPACE}){{1,4}}(?:of(?:[_-]|{_SPACE}){{1,4}})?)?untrusted(?:[_-]\w{{1,40}}+)?"
    r"|(?:start|end)_of_turn|system(?:[_-](?:prompt|reminder|message))?|assistant|human|developer)"
)
# Decides most tags of a page at their first two letters.
_TOOL_BEGINS = r"(?=a[ns]|de|en|fu|hu|in|pa|s[ty]|t[ho]|un)"
_TOOL_TAG = rf"<(?!<<)<?[ \t]{{0,8}}/?[ \t]{{0,8}}{_TOOL_BEGINS}{_TOOL_WORD}\b"
_FRAME = re.compile(
    rf"{_TOOL_TAG}[^<>\n]{{0,120}}>>?"
    r"|<(?!<<)(?:[ \t]{0,8}\|[ \t]{0,8}[^\s<>|][^<>|\n]{0,60}\|[ \t]{0,8}>|<[ \t]{0,8}/?[ \t]{0,8}SYS[ \t]{0,8}>>)"
    r"|\[[ \t]{0,8}/?[ \t]{0,8}(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS?|RESULTS?|CONTENT))[ \t]{0,8}\]",
    re.IGNORECASE,
)
# What follows the text may close it.
_UNCLOSED = re.compile(rf"{_TOOL_TAG}(?=[^<>\n]{{0,120}}\Z)", re.IGNORECASE)
_LONGEST_FRAME = 256
# A text is shown below a line of ours, so one line break at its start makes the empty line that a turn begins with.
_LEGACY_TURN = re.compile(r"(?:(?<=\n\n)|(?<=\A\n)|(?<=\A))(Human|Assistant)(?=:)")
_OPENERS = "<\uff1c\ufe64\u02c2\u1438\u276e\u2329\u3008\u300a\u226a"
_CLOSERS = ">\uff1e\ufe65\u02c3\u1433\u276f\u232a\u3009\u300b\u226b"
_BARS = "|\uff5c\u2223\u01c0\u2758\ufe31\u2502"
_LIKE = str.maketrans(
    dict.fromkeys(_OPENERS, "<") | dict.fromkeys(_CLOSERS, ">") | dict.fromkeys(_BARS, "|")
    | {"\uff3b": "[", "\uff3d": "]", "\u2215": "/", "\uff0f": "/", "\u2044": "/"}
    | dict(zip("аеорсухіѕјԁһԛԝмтнкАВЕКМНОРСТУХІЅЈαοιυνρτΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
               "aeopcyxisjdhqwmthkABEKMHOPCTYXISJaoiuvptABEZHIKMNOPTYX", strict=True))
)  # fmt: skip
_CANDIDATE = re.compile(
    rf"[{_OPENERS}\[\uff3b](?:(?<=[{_OPENERS}])[{_OPENERS}]?[^{_OPENERS}{_CLOSERS}\n]{{1,130}}[{_CLOSERS}]{{1,2}}"
    r"|(?<=[\[\uff3b])[^\[\]\uff3b\uff3d\n]{1,30}[\]\uff3d])"
)
_LONGEST_CANDIDATE = 136
_LONGEST_BEGIN = 136
_MARKERS = re.compile(r"[<>\[\]]")

# The beginning of every frame, and everything in brackets that is not all ASCII. Python's case of `i` is wider.
_BEGINS = Sieve(
    rf"(?i)<[ \t]{{0,8}}\|[ \t]{{0,8}}[^\s<>|][^<>|\n]{{0,60}}\||<<?[ \t]{{0,8}}/?[ \t]{{0,8}}(?:{_TOOL_WORD}|SYS)"
    r"|\[[ \t]{0,8}/?[ \t]{0,8}(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALL|RESULT|CONTENT))",
    reach=_LONGEST_BEGIN,
)
# One of these is in every frame: far fewer than there are brackets in a page or in coloured output.
_WORDS = Sieve(
    r"(?i)\|[ \t]{0,8}>|tool|function|invoke|parameter|thinking|untrusted|of_turn|system|assistant|human|developer"
    "|SYS|INST|AVAILABLE_"
)
_OTHER_CASES = ("\u0130", "\u0131")


def _enclosed(opener: str, closer: str, neither: str) -> str:
    """What stands between the two with something in it, or one of them, beyond ASCII."""
    beyond = rf"{neither}*[{neither}&&[^\x00-\x7f]]{neither}*{closer}"
    return (
        rf"{opener}{beyond}|[{opener}&&[^\x00-\x7f]]{opener}?{neither}+{closer}"
        rf"|{opener}{neither}+{closer}?[{closer}&&[^\x00-\x7f]]"
    )


_LOOKALIKES = Sieve(
    _enclosed(f"[{_OPENERS}]", f"[{_CLOSERS}]", rf"[^{_OPENERS}{_CLOSERS}\n]")
    + "|"
    + _enclosed(r"[\[\uff3b]", r"[\]\uff3d]", r"[^\[\]\uff3b\uff3d\n]"),
    reach=_LONGEST_CANDIDATE,
)


def show_delimiters(text: str) -> tuple[str, int]:
    """The text with every frame word in ‹ ›, and how many there were. Linear."""
    count = 0

    def show(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return _shown(match[0])

    def show_lookalike(match: re.Match[str]) -> str:
        nonlocal count
        if match[0].isascii():
            return match[0]
        folded = unicodedata.normalize("NFKC", match[0].translate(_LIKE)).translate(_LIKE)
        if _FRAME.fullmatch(folded) is None:
            return match[0]
        count += 1
        return _shown(folded)

    if "<" in text or "[" in text:
        text = _replaced(_FRAME, text, _frames(text), show)
        unclosed = _UNCLOSED.search(text, max(0, len(text) - _LONGEST_FRAME))
        if unclosed is not None:
            text = f"{text[: unclosed.start()]}{show(unclosed)}{text[unclosed.end() :]}"
    if not text.isascii():
        text = _replaced(_CANDIDATE, text, _LOOKALIKES.regions(text), show_lookalike)
    may_begin = "\n\n" in text or text[:1] in ("H", "A", "\n")
    if may_begin and ("Human:" in text or "Assistant:" in text):
        text, turns = _LEGACY_TURN.subn(r"‹\1›", text)
        count += turns
    return text, count


def _replaced(
    pattern: re.Pattern[str], text: str, regions: Sequence[tuple[int, int]], show: Callable[[re.Match[str]], str]
) -> str:
    """The text with what `show` makes of each match that begins in one of the regions."""
    pieces, position = [], 0
    for start, end in regions:
        for match in pattern.finditer(text, max(start, position), end + _LONGEST_FRAME):
            if match.start() >= end:
                break
            pieces += [text[position : match.start()], show(match)]
            position = match.end()
    return "".join([*pieces, text[position:]]) if pieces else text


def _frames(text: str) -> list[tuple[int, int]]:
    """Where frames may begin."""
    if not text.isascii() and any(letter in text for letter in _OTHER_CASES):
        return [(0, len(text))]
    return _BEGINS.regions(text) if _WORDS.may_hold(text) else []


def _shown(frame: str) -> str:
    return f"‹{_MARKERS.sub('', frame)}›"
