"""The text as it flows: without what only lays it out.

A sentence goes on behind the end of a line that was full, behind `<b>`, a link or a footnote, between two subtitles and
behind the soft line end of an encoded mail. Whoever judges it piece by piece judges no sentence: an attack would be
missed because a mail program had wrapped it. Decides nothing else, and leaves every word.

A line was full if it does not end a sentence and had no room for the word that the next one begins with, at the width
of its paragraph. Every pattern is bounded, and every step linear in the text.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

_NARROWEST, _WIDEST = 30, 130
_LONGEST_FIRST_WORD: Final = 20
_LONGEST_BLANK: Final = 2
_GOES_ON: Final = re.compile(r"[ \t]*+(?:[>#*+;%]{1,3}+|//++)?[ \t]*+(?=([^\W\d_][^\s]*))")
_UNFINISHED: Final = re.compile(r"[\w,'\"\u2019\u201d)-][ \t]*+\Z")

# Elements within a line. What an attribute says in words is no layout: such a tag stays.
_INLINE: Final = re.compile(
    r"</?(?:a|abbr|b|big|bdi|bdo|cite|code|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strong|sub|sup|time|tt|u"
    r"|var|wbr)(?:\s{1,9}(?:(?:class|style|rel)=(?:\"[^\"<>]{0,200}\"|'[^'<>]{0,200}')"
    r"|[\w:.-]{1,40}(?:=(?:\"[^\s\"<>]{0,300}\"|'[^\s'<>]{0,300}'|[^\s\"'<>=]{1,300}))?)){0,6}\s{0,9}/?>",
    re.IGNORECASE,
)
_BREAK: Final = re.compile(r"<br\s{0,3}/?>\n?", re.IGNORECASE)
# `[here](https://…)`, `[3]`, and one word in brackets in the middle of a sentence.
_LINKED: Final = re.compile(r"\[([^\[\]\n]{1,80})\]\(([^()\s]{0,300})\)")
_NUMBER: Final = re.compile(r"(?<=[\w.,)\"'])\[[0-9]{1,3}\]")
_BRACKETED: Final = re.compile(r"(?<=[\w,:;] )[\[{]([^\W_]{1,20})[\]}](?=[ ,.;:!?])")
_STRESS: Final = re.compile(r"\*(?:(?<=[\w*.,!?\"')]\*)|(?=[\w*\"'(]))")
_NEXT_SUBTITLE: Final = re.compile(r"(?:\A|(?<!\n)\n++)(?:[0-9]{1,5}\n)?[0-9:.,]{5,12} --> [0-9:.,]{5,12}[^\n]{0,80}\n")
_SOFT_END: Final = re.compile(r"(?<=[\w,;.!? ])=\n")


def flowing(text: str) -> str:
    """The text without its layout. Its words stay, in their order."""
    if "<" in text:
        text = _BREAK.sub("\n", _INLINE.sub(_parting, text))
    if "](" in text:
        text = _LINKED.sub(r" \1 \2 ", text)
    if "[" in text or "{" in text:
        text = _BRACKETED.sub(r"\1", _NUMBER.sub("", text))
    if "*" in text:
        text = _STRESS.sub("", text)
    if " --> " in text:
        text = _NEXT_SUBTITLE.sub(" ", text)
    if "=\n" in text:
        text = _SOFT_END.sub("", text)
    return _unwrapped(text)


def _parting(tag: re.Match[str]) -> str:
    """What stands for a tag: nothing beside a blank, else one, for it may part words."""
    around = tag.string[tag.start() - 1 : tag.start()] + tag.string[tag.end() : tag.end() + 1]
    return "" if len(around) < 2 or any(map(str.isspace, around)) else " "


def _unwrapped(text: str) -> str:
    lines = text.split("\n")
    lengths = [*map(len, lines), 0]
    ends = ["\n"] * len(lines)
    width = start = 0
    for place, length in enumerate(lengths):
        if length > _LONGEST_BLANK:
            width = max(width, length)
            continue
        if _NARROWEST <= width <= _WIDEST:
            for number in range(start, place - 1):
                if lengths[number] >= width - _LONGEST_FIRST_WORD:
                    _join(lines, ends, number, width - lengths[number])
        width, start = 0, place + 1
    return "".join([*chain.from_iterable(zip(lines, ends, strict=True))])[:-1] if " " in ends else text


def _join(lines: list[str], ends: list[str], number: int, room: int) -> None:
    """Joins a line with the next if the next goes on with what had no room in it."""
    more = _GOES_ON.match(lines[number + 1])
    if more and len(more[1]) >= room and _UNFINISHED.search(lines[number]):
        ends[number] = " "
        lines[number + 1] = lines[number + 1][more.end() :]
