"""Reading a log: `verify` names the first bad record of each chain, `read_records` gives its records to show.

Trusts nothing in the files. Each line must be one record in its one form, hash to what it claims, follow the record
before it, and carry the right mac when the key is given; intents and closings must pair up. What the bytes alone cannot
show (a tail cut off, a chain computed anew) is found only with an exported head or the key; the report says which of
them it had. A last line without its newline is a torn write after a crash, a warning and not a sign of tampering.
"""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from toolcage.audit.anchors import read_head
from toolcage.audit.chain import GENESIS, MAX_LINE_BYTES, Head, MalformedLine, Parsed, mac_of, parse_line
from toolcage.audit.files import NAME, chains_in, lines_of
from toolcage.audit.record import Payload

Problem = Literal[
    "record.malformed", "record.changed", "record.missing", "record.misplaced", "record.foreign", "chain.broken",
    "mac.missing", "mac.wrong", "head.truncated", "head.rewritten",
    "closing.twice", "closing.unmatched", "closing.without_intent",
    "line.torn", "intent.open", "runtime.no_end", "chain.starts_late",
]  # fmt: skip

_RAN: Final = ("ok", "tool_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong (an error) or worth knowing (a warning), and where."""

    problem: Problem
    file: str
    line: int | None = None
    seq: int | None = None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What a log proves. `errors` hold the first bad record of each runtime's chain, in the order of the files."""

    files: int
    records: int
    heads: tuple[Head, ...]
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    with_key: bool
    with_head: bool

    @property
    def ok(self) -> bool:
        """True when no error was found."""
        return not self.errors

    def limits(self) -> str:
        """One sentence: what this verification could not have seen."""
        if self.with_key and self.with_head:
            return "Checked with the key and an exported head: records after that head could still be missing."
        if self.with_key:
            return "Checked without an exported head: records missing from the end would not show."
        if self.with_head:
            return "Checked without a key: records after the exported head could have been rewritten."
        return "Checked without a key or an exported head: whoever owns the folder could have rewritten all of it."

    def as_json(self) -> dict[str, object]:
        """The report for a program."""
        return {"ok": self.ok, **dataclasses.asdict(self), "limits": self.limits()}


def verify(path: Path, *, key: bytes | None = None, head: Head | Path | None = None) -> VerifyReport:
    """Checks one file, or every `*.jsonl` of a folder, each runtime's files as one chain.

    Raises:
        AuditError: there is nothing to read at `path`, or the head's file is not one.
    """
    expected = read_head(head) if isinstance(head, Path) else head
    chains = chains_in(path)
    whole = path.is_dir()
    checks = [_check_chain(files, key=key, head=expected, whole=whole) for files in chains.values()]
    errors = [check.error for check in checks if check.error is not None]
    if expected is not None and not any(check.head_seen or check.stopped_at(expected) for check in checks):
        errors.append(_head_missing(path, expected))
    return VerifyReport(
        files=sum(map(len, chains.values())),
        records=sum(check.records for check in checks),
        heads=tuple(check.head() for check in checks if check.records),
        errors=tuple(errors),
        warnings=tuple(warning for check in checks for warning in check.warnings),
        with_key=key is not None,
        with_head=expected is not None,
    )


def read_records(path: Path) -> Iterator[Mapping[str, str | int]]:
    """The records that can be read, in order, `hash` and `mac` included. Verifies nothing and skips what is malformed.

    Raises:
        AuditError: there is nothing to read at `path`.
    """
    for files in chains_in(path).values():
        for file in files:
            for _, line in lines_of(file):
                try:
                    parsed = parse_line(line.removesuffix(b"\n"))
                except MalformedLine:
                    continue
                mac = {} if parsed.mac is None else {"mac": parsed.mac}
                yield {**parsed.fields, "hash": parsed.hash, **mac}


def visible(text: str) -> str:
    """Text of a record for a terminal: what would not be seen as itself (escapes, bidi controls, newlines) is spelled
    out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def one_line(text: str) -> str:
    """The same, in one line and cut: for a log that people read."""
    return visible(" ".join(text.split()))[:1000]


# --- one chain -----------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Check:
    """Where one chain's verification stands."""

    runtime: str = ""
    seq: int = 0
    hash: str = GENESIS
    key: bytes | None
    expected: Head | None
    whole: bool
    records: int = 0
    ended: bool = False
    head_seen: bool = False
    open_intents: dict[int, tuple[str | int | None, str, int]] = field(default_factory=dict)
    closed_intents: set[int] = field(default_factory=set)
    error: Finding | None = None
    warnings: list[Finding] = field(default_factory=list)

    def head(self) -> Head:
        return Head(runtime=self.runtime, seq=self.seq, hash=self.hash)

    def stopped_at(self, head: Head) -> bool:
        """This is the head's own chain, and a bad record ended the check before the head was reached."""
        return self.error is not None and self.runtime == head.runtime


class _Bad(Exception):
    def __init__(self, problem: Problem, message: str, seq: int | None = None) -> None:
        super().__init__(message)
        self.problem: Problem = problem
        self.message = message
        self.seq = seq


def _check_chain(files: list[Path], *, key: bytes | None, head: Head | None, whole: bool) -> _Check:
    check = _Check(key=key, expected=head, whole=whole)
    for position, file in enumerate(files):
        for number, line in lines_of(file):
            last = position == len(files) - 1
            try:
                _check_line(check, line, file=file, number=number, last_file=last)
            except _Bad as bad:
                check.error = Finding(
                    problem=bad.problem, file=str(file), line=number, seq=bad.seq, message=bad.message
                )
                return check
    _look_back(check, files[-1])
    return check


def _check_line(check: _Check, line: bytes, *, file: Path, number: int, last_file: bool) -> None:
    if not line.endswith(b"\n"):
        if len(line) > MAX_LINE_BYTES:
            raise _Bad("record.malformed", "the line is longer than any record")
        if not last_file:
            raise _Bad("record.malformed", "the line is cut off, yet the log goes on in another file")
        message = "the last line is cut off: a crash while it was written, not a record"
        check.warnings.append(Finding(problem="line.torn", file=str(file), line=number, message=message))
        return
    try:
        parsed = parse_line(line[:-1])
    except MalformedLine as error:
        raise _Bad("record.malformed", f"the line is not a record: {error}") from None
    seq = int(parsed.fields["seq"])
    if parsed.digest != parsed.hash:
        raise _Bad("record.changed", "the content was changed: it does not hash to the recorded hash", seq)
    if check.key is not None:
        _check_mac(parsed, seq, check.key)
    _check_link(check, parsed.fields, seq, file)
    _check_pairing(check, parsed.fields, seq, file, number)
    check.seq, check.hash = seq, parsed.hash
    check.records += 1
    if check.expected is not None and check.expected.seq == seq:
        _check_against_head(check, check.expected)


def _check_mac(parsed: Parsed, seq: int, key: bytes) -> None:
    if parsed.mac is None:
        raise _Bad("mac.missing", "the record has no mac, so it was not written with the key", seq)
    if not hmac.compare_digest(parsed.mac, mac_of(parsed.hash, key)):
        raise _Bad("mac.wrong", "the mac is not the key's: written by someone without it, or with another key", seq)


def _check_link(check: _Check, fields: Payload, seq: int, file: Path) -> None:
    if check.records == 0:
        _start(check, fields, seq, file)
    if fields["runtime"] != check.runtime:
        raise _Bad("record.foreign", "the record belongs to another runtime", seq)
    due = check.seq + 1
    if seq > due:
        raise _Bad("record.missing", f"seq {due} was due: {seq - due} record(s) before this one are missing", seq)
    if seq < due:
        raise _Bad("record.misplaced", f"seq {due} was due: this record was inserted, repeated or moved", seq)
    if fields["prev"] != check.hash:
        raise _Bad("chain.broken", f"the link is broken: prev is not the hash of record {due - 1}", seq)


def _start(check: _Check, fields: Payload, seq: int, file: Path) -> None:
    check.runtime = str(fields["runtime"])
    named = NAME.fullmatch(file.name)
    if named is not None and named["runtime"] != check.runtime:
        raise _Bad("record.foreign", "the record belongs to another runtime than the file", seq)
    if seq == 1 or check.whole:
        return
    message = f"the file goes on from an earlier one: what came before record {seq} was not checked"
    check.warnings.append(Finding(problem="chain.starts_late", file=str(file), line=1, seq=seq, message=message))
    check.seq, check.hash = seq - 1, str(fields["prev"])


def _check_pairing(check: _Check, fields: Payload, seq: int, file: Path, number: int) -> None:
    kind = fields["type"]
    check.ended = kind == "runtime_end"
    if kind == "intent":
        check.open_intents[seq] = (fields.get("call_id"), str(file), number)
    elif kind == "closing":
        _check_closing(check, fields, seq)


def _check_closing(check: _Check, fields: Payload, seq: int) -> None:
    intent = fields.get("intent")
    if intent is None:
        if fields.get("status") in _RAN:
            raise _Bad("closing.without_intent", "the call ran, yet no intent was recorded before it", seq)
        return
    if not isinstance(intent, int):
        raise _Bad("record.malformed", "its intent is not the seq of a record", seq)
    if intent in check.closed_intents:
        raise _Bad("closing.twice", f"intent {intent} already has its closing", seq)
    opened = check.open_intents.pop(intent, None)
    if opened is None and not _before_view(check, intent):
        raise _Bad("closing.unmatched", f"record {intent}, which it names as its intent, is none", seq)
    if opened is not None and opened[0] != fields.get("call_id"):
        raise _Bad("closing.unmatched", f"intent {intent} is another call's", seq)
    check.closed_intents.add(intent)


def _before_view(check: _Check, intent: int) -> bool:
    """The intent may stand in an earlier file, which a check of one file alone has not read."""
    return not check.whole and 0 < intent <= check.seq - check.records


def _check_against_head(check: _Check, expected: Head) -> None:
    if check.runtime != expected.runtime:
        return
    if check.hash != expected.hash:
        message = f"record {expected.seq} is not the one of the exported head: the log was rewritten"
        raise _Bad("head.rewritten", message, expected.seq)
    check.head_seen = True


def _look_back(check: _Check, file: Path) -> None:
    for seq, (_, name, number) in check.open_intents.items():
        message = "the intent has no closing: the runtime died during the call, it still runs, or the end was cut off"
        check.warnings.append(Finding(problem="intent.open", file=name, line=number, seq=seq, message=message))
    if not check.ended:
        message = "the log has no end record: the runtime died, it still runs, or the end was cut off"
        seq = check.seq
        check.warnings.append(Finding(problem="runtime.no_end", file=str(file), seq=seq, message=message))


def _head_missing(path: Path, head: Head) -> Finding:
    message = f"record {head.seq} of runtime {head.runtime}, the exported head, is not there: the log was truncated"
    return Finding(problem="head.truncated", file=str(path), seq=head.seq, message=message)
