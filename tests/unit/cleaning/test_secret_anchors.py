"""Nothing that a shape describes is missed because the sieve did not let it through."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.cleaning.secret_shapes import ANCHORED, LONGEST_ANCHORED, NAMES, PASSWORD, SHAPES, Shape
from toolcage.cleaning.secrets import find_secrets
from toolcage.facts.sieve import BLOCK

FOLDED = str.maketrans("\u212a\u017f\u0130\u0131", "ksii")


def passes(text: str) -> bool:
    return ANCHORED.may_hold(text.translate(FOLDED).encode("ascii", "replace").decode())


@pytest.mark.parametrize("shape", SHAPES, ids=[f"{place}-{shape.name}" for place, shape in enumerate(SHAPES)])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_a_shape_describes_passes_the_sieve(shape: Shape, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(shape.pattern))
    assert passes(text)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(NAMES), st.from_regex(PASSWORD), st.booleans())
def test_whatever_a_password_s_name_announces_passes_the_sieve(name: bytes, assigned: str, upper: bool) -> None:
    match = PASSWORD.search(assigned)
    assert match is not None
    value = match[str(match.lastgroup)]
    if "[redacted:" not in value:
        text = name.decode() + match[0]
        assert passes(text.upper().replace("ß", "s") if upper else text)


KEYS = {
    "github": "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
    "aws": "AKIAQ7ZX3WPLM4TNB6VD",
    "url": "postgres://app:" + "pa55" * 60 + "@db.example/x",
    "password": 'encryption_key"  :=  "hunter2 of the shop"',
    "folded": "pa\u017fsword=hunter2x",
    "telegram": "1234567890:AAabcdefghijklmnopqrstuvwxyz0123456",
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_a_key_is_found_wherever_a_block_ends(key: str) -> None:
    alone = [(end - start, name) for start, end, name in find_secrets(key)]
    assert alone
    for place in range(BLOCK - len(key) - 2, BLOCK + 2):
        for filler in ("x ", "é "):
            text = (filler * BLOCK)[:place] + " " + key + " " + filler * BLOCK
            assert [(end - start, name) for start, end, name in find_secrets(text)] == alone


def test_keys_far_apart_in_a_long_text_are_all_found() -> None:
    draw = random.Random(7)
    text = "".join(f"{key} " + "word " * draw.randrange(4 * BLOCK // 5) for key in KEYS.values() for _ in range(5))
    assert len(find_secrets(text)) == 5 * sum(len(find_secrets(key)) for key in KEYS.values())


def test_no_anchor_reaches_further_than_the_blocks_overlap() -> None:
    import re._parser as parser  # type: ignore[import-not-found]

    for shape in SHAPES:
        for anchor in shape.anchors:
            assert parser.parse(anchor.pattern.decode().replace("(?=", "(?:")).getwidth()[1] <= LONGEST_ANCHORED
