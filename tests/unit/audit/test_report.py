"""Attacks on a written log, each named by what `verify` says about it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcage.audit import AuditLog, Closing, Event, Intent
from toolcage.audit.chain import GENESIS, Head, extend, parse_line
from toolcage.audit.record import ENVELOPE_FIELDS, INTEGER_FIELDS, USAGE_FIELDS, Payload
from toolcage.audit.report import Finding, VerifyReport, read_records, verify, visible
from toolcage.errors import AuditError
from toolcage.types import Usage

MakeLog = Callable[..., Path]
TIME = "2026-01-02T03:04:05.000006Z"


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def put(file: Path, lines: list[bytes]) -> None:
    file.write_bytes(b"".join(lines))


def first_error(report: VerifyReport) -> Finding:
    assert not report.ok
    return report.errors[0]


def rechained(lines: list[bytes], key: bytes | None) -> list[bytes]:
    """The forger's tool: these records under fresh numbers, hashes, links and macs, so that all fits again."""
    head, out, moved = Head(runtime="run"), [], {}
    for line in lines:
        fields = dict(parse_line(line.rstrip(b"\n")).fields)
        kind, time = fields.pop("type"), str(fields.pop("time"))
        payload: Payload = {name: fields[name] for name in fields.keys() - {"v", "runtime", "seq", "prev"}}
        if "intent" in payload:
            payload["intent"] = moved[payload["intent"]]
        head, made = extend(head, kind, time, payload, key)  # type: ignore[arg-type]
        moved[fields["seq"]] = head.seq
        out.append(made)
    return out


def test_an_untouched_log_verifies(log_file: Path) -> None:
    report = verify(log_file)
    assert report.ok
    assert report.warnings == ()
    assert (report.files, report.records, report.heads[0].seq) == (1, 8, 8)


# --- changed records -----------------------------------------------------------------------------------------------


def _fields_of_a_full_log() -> list[str]:
    closing = dataclasses.fields(Closing)
    names = {item.name for cls in (Intent, Event) for item in dataclasses.fields(cls)} | {item.name for item in closing}
    return sorted((names - {"usage"}) | {*USAGE_FIELDS, *ENVELOPE_FIELDS} - {"hash", "mac"})


def full_log(directory: Path) -> Path:
    """A log in which every field of every record has a value."""
    words = {item.name: f"word of {item.name}" for item in dataclasses.fields(Intent)}
    usage = Usage(queue_s=1, wall_s=2, cpu_s=3, memory_peak_bytes=4, bytes_out=5, duration_ms=6)
    with AuditLog.open(directory, runtime_id="run") as log:
        log.append(Event(type="note", session="s", role="r", policy_digest="p", detail={"a": 1}, note="n"))
        intent = log.append(Intent(**words))
        log.append(Closing(**words, intent=intent.seq, status="ok", code="c", usage=usage, released_by="Ada")).wait()
        return log.path


@pytest.mark.parametrize("name", _fields_of_a_full_log())
def test_a_change_of_any_field_of_any_record_is_found(tmp_path: Path, name: str) -> None:
    file = full_log(tmp_path / "audit")
    whole, tried = lines_of(file), 0
    for number, line in enumerate(whole):
        value = parse_line(line[:-1]).fields.get(name)
        if value is None:
            continue
        # Another legal value of the same type, so that only the hash can tell.
        other = {"type": "pool", "v": 1}.get(name, int(value) + 1 if name in INTEGER_FIELDS else f"{value}!")
        old, new = (json.dumps({name: item})[1:-1].replace('": ', '":').encode() for item in (value, other))
        changed = line.replace(old, new)
        if name == "v":
            changed = line.replace(b'"v":1', b'"v":2')
        assert changed != line
        put(file, [*whole[:number], changed, *whole[number + 1 :]])
        error = first_error(verify(file))
        assert (error.problem, error.line) == ("record.malformed" if name == "v" else "record.changed", number + 1)
        tried += 1
    assert tried


def test_a_change_that_updates_its_own_hash_breaks_the_next_link(log_file: Path) -> None:
    lines = lines_of(log_file)
    head = Head(runtime="run", seq=2, hash=str(parse_line(lines[2][:-1]).fields["prev"]))
    fields = parse_line(lines[2][:-1]).fields
    payload = {"call_id": "call0", "intent": 2, "status": "denied", "code": "x"}
    _, lines[2] = extend(head, "closing", str(fields["time"]), payload, None)
    put(log_file, lines)
    error = first_error(verify(log_file))
    assert (error.problem, error.line, error.seq) == ("chain.broken", 4, 4)


def test_a_deleted_line_is_missed(log_file: Path) -> None:
    lines = lines_of(log_file)
    put(log_file, lines[:3] + lines[4:])
    error = first_error(verify(log_file))
    assert (error.problem, error.line, error.seq) == ("record.missing", 4, 5)
    assert "1 record(s) before this one are missing" in error.message


def test_deleted_first_lines_are_missed_in_a_folder_and_noted_for_a_file_alone(log_file: Path) -> None:
    put(log_file, lines_of(log_file)[3:])
    assert first_error(verify(log_file.parent)).problem == "record.missing"
    alone = verify(log_file)
    assert alone.ok
    assert alone.warnings[0].problem == "chain.starts_late"


def test_swapped_lines_are_found(log_file: Path) -> None:
    lines = lines_of(log_file)
    lines[3], lines[4] = lines[4], lines[3]
    put(log_file, lines)
    assert (first_error(verify(log_file)).problem, first_error(verify(log_file)).line) == ("record.missing", 4)


def test_a_repeated_line_is_found(log_file: Path) -> None:
    lines = lines_of(log_file)
    put(log_file, [*lines[:4], lines[3], *lines[4:]])
    error = first_error(verify(log_file))
    assert (error.problem, error.line, error.seq) == ("record.misplaced", 5, 4)


def test_an_inserted_record_is_found(log_file: Path) -> None:
    lines = lines_of(log_file)
    head = Head(runtime="run", seq=3, hash=parse_line(lines[2][:-1]).hash)
    _, extra = extend(head, "note", TIME, {"note": "forged"}, None)
    put(log_file, [*lines[:3], extra, *lines[3:]])
    error = first_error(verify(log_file))
    assert (error.problem, error.line) == ("record.misplaced", 5)


def test_a_record_of_another_runtime_is_found(make_log: MakeLog) -> None:
    one, other = make_log(runtime_id="run"), make_log(runtime_id="other")
    put(one, [*lines_of(one)[:3], lines_of(other)[3], *lines_of(one)[4:]])
    assert first_error(verify(one)).problem == "record.foreign"


def test_a_file_under_another_runtimes_name_is_found(log_file: Path) -> None:
    renamed = log_file.rename(log_file.with_name("other.000001.jsonl"))
    assert first_error(verify(renamed)).problem == "record.foreign"


@pytest.mark.parametrize("garbage", [b"\n", b"not json\n", b"\x00\xff\x1b[2J\n", b"[1,2]\n"])
def test_a_line_that_is_no_record_is_found(log_file: Path, garbage: bytes) -> None:
    lines = lines_of(log_file)
    put(log_file, [*lines[:2], garbage, *lines[2:]])
    error = first_error(verify(log_file))
    assert (error.problem, error.line) == ("record.malformed", 3)
    assert error.message.isprintable()


# --- the end of the log --------------------------------------------------------------------------------------------


def test_a_truncated_log_verifies_without_its_head_and_not_with_it(log_file: Path) -> None:
    head = verify(log_file).heads[0]
    put(log_file, lines_of(log_file)[:5])
    without = verify(log_file)
    assert without.ok
    assert "whoever owns the folder could have rewritten all of it" in without.limits()
    error = first_error(verify(log_file, head=head))
    assert (error.problem, error.seq) == ("head.truncated", 8)
    assert first_error(verify(log_file.parent, head=head)).problem == "head.truncated"


def test_a_deleted_log_is_missed_where_its_head_is_known(make_log: MakeLog) -> None:
    gone = make_log(runtime_id="gone")
    head = verify(gone).heads[0]
    make_log(runtime_id="other")
    gone.unlink()
    assert verify(gone.parent).ok
    assert first_error(verify(gone.parent, head=head)).problem == "head.truncated"


def test_a_log_that_grew_since_the_head_was_exported_verifies(log_file: Path) -> None:
    whole = lines_of(log_file)
    put(log_file, whole[:5])
    head = verify(log_file).heads[0]
    put(log_file, whole)
    assert verify(log_file, head=head).ok


def test_a_log_computed_anew_without_key_verifies_unless_its_head_is_known(log_file: Path) -> None:
    head = verify(log_file).heads[0]
    put(log_file, rechained([line for line in lines_of(log_file) if b'"call1"' not in line], None))
    assert verify(log_file).ok
    assert first_error(verify(log_file, head=head)).problem == "head.truncated"


def test_a_log_rewritten_at_the_same_length_is_found_with_its_head(log_file: Path) -> None:
    head = verify(log_file).heads[0]
    changed = [line.replace(b'"role":"analyst"', b'"role":"another"') for line in lines_of(log_file)]
    put(log_file, rechained(changed, None))
    assert verify(log_file).ok
    error = first_error(verify(log_file, head=head))
    assert (error.problem, error.seq) == ("head.rewritten", 8)


def test_a_bad_record_of_one_runtime_does_not_hide_another_runtimes_truncation(make_log: MakeLog) -> None:
    one, other = make_log(runtime_id="one"), make_log(runtime_id="other")
    head = verify(other).heads[0]
    put(one, lines_of(one)[:2] + lines_of(one)[3:])
    put(other, lines_of(other)[:4])
    problems = [error.problem for error in verify(one.parent, head=head).errors]
    assert problems == ["record.missing", "head.truncated"]


@pytest.mark.parametrize("kept", [1, 100, -1])
def test_a_torn_last_line_is_called_torn_and_not_tampered(log_file: Path, kept: int) -> None:
    lines = lines_of(log_file)
    put(log_file, [*lines[:-1], lines[-1][:kept]])
    report = verify(log_file)
    assert report.ok
    assert report.records == 7
    assert report.warnings[0].problem == "line.torn"
    assert report.warnings[0].line == 8


def test_a_torn_line_anywhere_else_is_an_error(make_log: MakeLog) -> None:
    first = make_log(max_file_bytes=900)
    put(first, [*lines_of(first)[:-1], lines_of(first)[-1][:-1]])
    assert first_error(verify(first.parent)).problem == "record.malformed"


def test_a_missing_file_in_the_middle_is_missed(make_log: MakeLog) -> None:
    first = make_log(max_file_bytes=900)
    assert verify(first.parent).ok
    first.with_name("run.000002.jsonl").unlink()
    assert first_error(verify(first.parent)).problem == "record.missing"


# --- the key -------------------------------------------------------------------------------------------------------


def test_with_the_key_a_genuine_log_verifies(keyed_file: Path, key: bytes) -> None:
    assert verify(keyed_file, key=key).ok
    assert verify(keyed_file).ok


def test_a_log_computed_anew_without_the_key_has_no_macs(keyed_file: Path, key: bytes) -> None:
    put(keyed_file, rechained(lines_of(keyed_file), None))
    assert verify(keyed_file).ok
    assert first_error(verify(keyed_file, key=key)).problem == "mac.missing"


def test_a_log_computed_anew_with_another_key_is_found(keyed_file: Path, key: bytes) -> None:
    put(keyed_file, rechained(lines_of(keyed_file), b"the forger's own key, long enough"))
    error = first_error(verify(keyed_file, key=key))
    assert (error.problem, error.line) == ("mac.wrong", 1)


def test_a_mac_moved_from_another_record_is_found(keyed_file: Path, key: bytes) -> None:
    lines = lines_of(keyed_file)
    lines[3] = lines[3][:82] + lines[2][82:146] + lines[3][146:]
    put(keyed_file, lines)
    error = first_error(verify(keyed_file, key=key))
    assert (error.problem, error.line) == ("mac.wrong", 4)


# --- intents and closings ------------------------------------------------------------------------------------------


def made_of(directory: Path, *records: Intent | Closing | Event) -> Path:
    with AuditLog.open(directory, runtime_id="run") as log:
        for record in records:
            log.append(record)
        return log.path


def test_an_intent_without_closing_is_a_warning(tmp_path: Path) -> None:
    report = verify(made_of(tmp_path / "a", Event(type="note"), Intent(call_id="c"), Event(type="runtime_end")))
    assert report.ok
    assert [(warning.problem, warning.seq) for warning in report.warnings] == [("intent.open", 2)]


def test_two_closings_for_one_intent_are_an_error(tmp_path: Path) -> None:
    closing = Closing(call_id="c", intent=1, status="ok", code="ok")
    error = first_error(verify(made_of(tmp_path / "a", Intent(call_id="c"), closing, closing)))
    assert (error.problem, error.seq) == ("closing.twice", 3)


@pytest.mark.parametrize(("intent", "call_id"), [(1, "another"), (2, "c"), (9, "c")])
def test_a_closing_of_an_intent_that_is_not_its_own_is_an_error(tmp_path: Path, intent: int, call_id: str) -> None:
    closing = Closing(call_id=call_id, intent=intent, status="denied", code="x")
    file = made_of(tmp_path / "a", Intent(call_id="c"), Event(type="note"), closing)
    assert first_error(verify(file)).problem == "closing.unmatched"


def test_a_call_that_ran_without_an_intent_is_an_error_and_a_refused_one_is_not(tmp_path: Path) -> None:
    ran = made_of(tmp_path / "a", Closing(call_id="c", status="ok", code="ok"))
    assert first_error(verify(ran)).problem == "closing.without_intent"
    assert verify(made_of(tmp_path / "b", Closing(call_id="c", status="denied", code="tool.unknown"))).ok


def test_a_closing_in_the_next_file_finds_its_intent_and_a_file_alone_does_not_call_it_wrong(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path / "a", runtime_id="run", max_file_bytes=300) as log:
        intent = log.append(Intent(call_id="c"))
        intent.wait()
        log.append(Closing(call_id="c", intent=intent.seq, status="ok", code="ok")).wait()
        second = log.path
    assert second.name == "run.000002.jsonl"
    assert verify(tmp_path / "a").ok
    assert verify(second).ok


def test_a_log_without_its_end_record_says_so(tmp_path: Path) -> None:
    report = verify(made_of(tmp_path / "a", Event(type="runtime_start")))
    assert [warning.problem for warning in report.warnings] == ["runtime.no_end"]


# --- reading -------------------------------------------------------------------------------------------------------


def test_each_runtime_of_a_folder_is_a_chain_of_its_own(make_log: MakeLog) -> None:
    make_log(runtime_id="one", max_file_bytes=900)
    make_log(runtime_id="two")
    report = verify(make_log(runtime_id="three").parent)
    assert report.ok
    assert (report.records, len(report.heads)) == (24, 3)


def test_nothing_to_verify_is_an_error_and_not_a_success(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="no audit log"):
        verify(tmp_path)
    with pytest.raises(AuditError, match="cannot be read"):
        verify(tmp_path / "missing.jsonl")


def test_links_and_pipes_in_the_folder_are_refused_without_waiting(log_file: Path, tmp_path: Path) -> None:
    os.mkfifo(log_file.parent / "pipe.000001.jsonl")
    with pytest.raises(AuditError, match="not a regular file"):
        verify(log_file.parent)
    (log_file.parent / "pipe.000001.jsonl").unlink()
    log_file.rename(tmp_path / "elsewhere")
    log_file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AuditError, match="cannot be read"):
        verify(log_file)


def test_records_read_back_with_their_hashes(keyed_file: Path) -> None:
    records = list(read_records(keyed_file))
    assert [record["seq"] for record in records] == list(range(1, 9))
    assert records[0]["prev"] == GENESIS
    assert records[1]["prev"] == records[0]["hash"]
    assert len(str(records[0]["mac"])) == 64


@pytest.mark.parametrize(
    "text", ["\x1b[31m", "a\nb", "\u202edrowssap", "\u200b", "\U000e0041", "\x9b2J", "\x7f", "\ud800"]
)
def test_what_would_not_be_seen_as_itself_is_spelled_out(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(text) != text


@pytest.mark.parametrize("text", ["", "plain", "naïve café", "注文", "😀"])
def test_ordinary_text_of_any_script_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_the_report_is_json_for_a_program(log_file: Path) -> None:
    assert json.loads(json.dumps(verify(log_file).as_json()))["ok"] is True
