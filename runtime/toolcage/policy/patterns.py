"""Whether a regular expression may stand in a policy: anchored at both ends and matched in linear time.

An unanchored pattern permits more than it says (`example.com` matches `example.com.evil.net`), and a backtracking one
lets the caller choose how long a decision takes. Both are load errors. The linear engine (Rust's `regex`, reached
through jsonschema-rs) has neither look-around nor backreferences and bounds the size of the compiled program.
Constructs that change what an anchor means, or that two dialects read differently, are refused, not interpreted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import jsonschema_rs

LINEAR_REGEX: Final = jsonschema_rs.RegexOptions(size_limit=1024 * 1024)
"""Every policy schema is compiled with this engine, so that what was checked here is what runs."""

MAX_PATTERN_CHARACTERS: Final = 1000


def check_pattern(pattern: str) -> None:
    """Raises ValueError, with what to write instead, unless `pattern` is anchored, linear-time and unambiguous."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ValueError(f"a pattern longer than {MAX_PATTERN_CHARACTERS} characters; write a shorter one or an enum")
    parts = list(_parts(pattern))
    if len(parts) < 2 or parts[0] not in ("^", r"\A") or parts[-1] not in ("$", r"\z") or parts[1] in "*+?{":
        raise ValueError(f"the pattern `{pattern}` is not anchored; write ^…$ around the whole of it")
    if _has_top_level_choice(parts):
        raise ValueError(f"the pattern `{pattern}` is anchored on one side of `|` only; write ^(?:…|…)$")
    if not _is_linear(pattern):
        raise ValueError(
            f"the pattern `{pattern}` cannot be matched in linear time (look-around, backreferences and huge"
            " repetitions cannot) or is not a regular expression; write it without them"
        )


def _is_linear(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=LINEAR_REGEX, offline=True)
    except ValueError:
        return False
    return True


def _has_top_level_choice(parts: list[str]) -> bool:
    depth = 0
    for part in parts:
        depth += part.startswith("(") - (part == ")")
        if part == "|" and depth == 0:
            return True
    return False


def _parts(pattern: str) -> Iterator[str]:
    position = 0
    while position < len(pattern):
        end = _part_end(pattern, position)
        yield pattern[position:end]
        position = end


def _part_end(pattern: str, start: int) -> int:
    if pattern[start] == "\\":
        return start + 2
    if pattern[start] == "[":
        return _class_end(pattern, start)
    if pattern.startswith("(?", start):
        return _group_start_end(pattern, start)
    return start + 1


def _class_end(pattern: str, start: int) -> int:
    position = start + (2 if pattern.startswith("[^", start) else 1)
    if pattern.startswith("]", position):
        raise ValueError(f"the pattern `{pattern}` has a class that starts with `]`; write it as \\]")
    while position < len(pattern) and pattern[position] != "]":
        if pattern[position] == "[" or pattern.startswith(("&&", "--", "~~"), position):
            raise ValueError(f"the pattern `{pattern}` has `[`, `&&`, `--` or `~~` inside a class; escape it")
        position += 2 if pattern[position] == "\\" else 1
    return position + 1


def _group_start_end(pattern: str, start: int) -> int:
    if pattern.startswith("(?:", start):
        return start + 3
    raise ValueError(f"the pattern `{pattern}` has a group that starts with `(?`; write plain (…) or (?:…)")
