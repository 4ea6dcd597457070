"""The frame codec: what fits is carried whole, what does not is refused before anything is allocated."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.cage import wire


def frames_of(encoded: bytes, piece: int) -> list[wire.Frame]:
    decoder = wire.Decoder()
    return [frame for start in range(0, len(encoded), piece) for frame in decoder.feed(encoded[start : start + piece])]


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_content_cut_in_pieces_of_any_size_arrives_whole(content: bytes, piece: int) -> None:
    frames = frames_of(wire.encode_stream(7, content), piece)
    assert b"".join(frame.payload for frame in frames if frame.type == wire.DATA) == content
    assert frames[-1].type == wire.END
    assert {frame.stream for frame in frames} == {7}


def test_content_above_one_frame_is_split_at_the_cap() -> None:
    frames = frames_of(wire.encode_stream(7, b"x" * (wire.MAX_DATA_BYTES + 1)), 1 << 20)
    assert [len(frame.payload) for frame in frames] == [wire.MAX_DATA_BYTES, 1, 0]


@pytest.mark.parametrize(
    "header",
    [
        wire.HEADER.pack(wire.MAX_DATA_BYTES + 1, wire.DATA, 1),
        wire.HEADER.pack(2**32 - 1, wire.DATA, 1),
        wire.HEADER.pack(wire.MAX_CONTROL_BYTES + 1, wire.CONTROL, 0),
        wire.HEADER.pack(1, wire.END, 1),
        wire.HEADER.pack(1, wire.PING, 0),
        wire.HEADER.pack(0, 0, 0),
        wire.HEADER.pack(0, 9, 0),
        wire.HEADER.pack(0, wire.DATA, wire.MAX_STREAM_ID + 1),
    ],
)
def test_a_header_above_a_cap_is_refused_before_its_payload_arrives(header: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.Decoder().feed(header)


def test_a_decoder_that_refused_once_stays_broken() -> None:
    decoder = wire.Decoder()
    with pytest.raises(wire.WireError):
        decoder.feed(wire.HEADER.pack(0, 9, 0))
    with pytest.raises(wire.WireError):
        decoder.feed(wire.encode(wire.PING))


@pytest.mark.parametrize("payload", [b"", b"[]", b'"op"', b"{}", b'{"op":1}', b"{", b"\xff", b"[" * 60_000])
def test_a_control_frame_that_is_not_an_object_with_an_op_is_refused(payload: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.Frame(wire.CONTROL, 0, payload).control()


def test_a_control_frame_with_an_op_is_read() -> None:
    (frame,) = wire.Decoder().feed(wire.encode_control(op="done", n=3))
    assert frame.control() == {"op": "done", "n": 3}
    assert json.loads(frame.payload) == {"op": "done", "n": 3}


@pytest.mark.parametrize(
    ("frame_type", "payload"), [(wire.DATA, b"x" * (wire.MAX_DATA_BYTES + 1)), (wire.PING, b"x"), (9, b"")]
)
def test_what_the_other_side_would_refuse_cannot_be_encoded(frame_type: int, payload: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.encode(frame_type, 1, payload)


@given(st.lists(st.binary(max_size=64), max_size=20))
def test_hostile_bytes_either_decode_or_are_refused_and_never_buffer_more_than_a_frame(pieces: list[bytes]) -> None:
    decoder = wire.Decoder()
    try:
        for piece in pieces:
            decoder.feed(piece)
            assert decoder.pending <= wire.HEADER.size + wire.MAX_DATA_BYTES + 64
    except wire.WireError:
        return
