"""What a record's fields become: flat, exact, and never unwritable because of what a model sent."""

from __future__ import annotations

import dataclasses
import json

import pytest

from toolcage.audit.record import (
    LARGEST_INTEGER,
    PAYLOAD_FIELDS,
    Closing,
    Event,
    Intent,
    facts_text,
    payload_of,
    type_of,
)
from toolcage.errors import UsageError
from toolcage.types import Facts, Usage


def test_absent_fields_are_left_out() -> None:
    assert payload_of(Intent(call_id="c")) == {"call_id": "c"}


def test_every_field_of_every_record_is_known_to_the_reader() -> None:
    usage = Usage()
    intent = {item.name: "x" for item in dataclasses.fields(Intent)}
    closing = intent | {"intent": 1, "status": "ok", "code": "ok", "usage": usage}
    event = {item.name: "x" for item in dataclasses.fields(Event)} | {"type": "note", "detail": {}}
    for record in (Intent(**intent), Closing(**closing), Event(**event)):
        assert payload_of(record).keys() <= PAYLOAD_FIELDS


def test_a_lone_surrogate_is_spelled_out_and_other_text_is_kept_exactly() -> None:
    payload = payload_of(Intent(call_id="c", note="a\ud800b", arguments="é\x1b[31m\x00\u202e😀"))
    assert payload["note"] == "a\\ud800b"
    assert payload["arguments"] == "é\x1b[31m\x00\u202e😀"


@pytest.mark.parametrize("value", [1.5, b"bytes", ["list"], 7])
def test_a_text_field_refuses_what_is_not_text(value: object) -> None:
    with pytest.raises(UsageError, match="'arguments' must be text"):
        payload_of(Intent(call_id="c", arguments=value))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, LARGEST_INTEGER + 1, True, "1"])
def test_an_intents_number_refuses_what_is_no_seq(value: object) -> None:
    with pytest.raises(UsageError, match="'intent'"):
        payload_of(Closing(call_id="c", intent=value, status="ok", code="ok"))  # type: ignore[arg-type]


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), -4.0, 1e300])
def test_a_strange_counter_is_clamped_so_that_a_finished_call_still_gets_its_closing(strange: float) -> None:
    payload = payload_of(Closing(call_id="c", status="timeout", code="x", usage=Usage(wall_s=strange)))
    value = payload["usage_wall_us"]
    assert isinstance(value, int)
    assert 0 <= value <= LARGEST_INTEGER


def test_seconds_become_whole_microseconds() -> None:
    usage = Usage(queue_s=0.5, wall_s=1.25, cpu_s=0.000001, memory_peak_bytes=7, bytes_out=8, duration_ms=2.5)
    payload = payload_of(Closing(call_id="c", status="ok", code="ok", usage=usage))
    names = ("queue_us", "wall_us", "cpu_us", "memory_peak_bytes", "bytes_out", "duration_us")
    assert [payload[f"usage_{name}"] for name in names] == [500_000, 1_250_000, 1, 7, 8, 2500]


def test_a_detail_is_canonical_text() -> None:
    event = Event(type="pool", detail={"b": [1, 2.50], "a": None})
    assert payload_of(event)["detail"] == '{"a":null,"b":[1,2.5]}'


def test_a_detail_that_is_not_json_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="not I-JSON"):
        payload_of(Event(type="note", detail={"n": float("nan")}))


@pytest.mark.parametrize(
    ("record", "word"),
    [
        (Intent(call_id="c"), "intent"),
        (Closing(call_id="c", status="ok", code="ok"), "closing"),
        (Event(type="attestation"), "attestation"),
    ],
)
def test_the_type_is_the_records_own(record: Intent | Closing | Event, word: str) -> None:
    assert type_of(record) == word


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _OddFacts(Facts):
    names: frozenset[str]
    number: int
    ratio: float
    raw: bytes
    text: str
    thing: object


def test_facts_become_canonical_text_whatever_they_hold() -> None:
    odd = _OddFacts(
        kind="sql", names=frozenset("ba"), number=2**60, ratio=float("inf"), raw=b"\x00", text="\udc80", thing=object()
    )
    assert json.loads(facts_text({"sql": odd})) == {
        "sql": {
            "kind": "sql",
            "names": ["a", "b"],
            "number": str(2**60),
            "ratio": "inf",
            "raw": "00",
            "text": "\\udc80",
            "thing": "<object>",
        }
    }
