"""Long text keeps both ends and says what is missing."""

from toolcage.cleaning.truncate import cut, join, window


def test_text_within_the_cap_is_untouched() -> None:
    assert cut("äöü", 6).text == "äöü"
    assert cut("äöü", 5).dropped > 0


def test_both_ends_stay_and_the_mark_counts_the_bytes_between() -> None:
    made = cut("start" + "x" * 1000 + "end", 20)
    assert made.text.startswith("start")
    assert made.text.endswith("end")
    assert f"[… {made.dropped} bytes dropped …]" in made.text
    assert made.kept + made.dropped == 1008


def test_a_character_is_never_split() -> None:
    made = cut("🔑" * 100, 10)
    assert "\ufffd" not in made.text
    assert made.kept + made.dropped == 400


def test_a_window_bounds_the_work_and_knows_what_it_left_out() -> None:
    head, tail, missing = window(b"a" * 10**6, 1000)
    assert len(head) + len(tail) + missing == 10**6
    assert len(head) < 20_000
    assert join("head", "tail", missing, 1000).dropped == missing


def test_a_cap_of_nothing_keeps_nothing() -> None:
    assert cut("secret", 0).kept == 0
