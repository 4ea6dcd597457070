"""The memory of what a mailbox has sent."""

from __future__ import annotations

from toolcage.broker import sent
from toolcage.broker.sent import Sent


def test_a_key_is_sent_once_while_it_is_remembered() -> None:
    now = 0.0
    memory = Sent(window_s=100, clock=lambda: now)
    assert memory.begin("k", "call-1") == "send"
    assert memory.begin("k", "call-1") == "again"
    assert memory.begin("k", "call-2") == "unknown"
    memory.done("k")
    assert memory.begin("k", "call-2") == "already"
    assert memory.begin("other", "call-3") == "send"
    now = 101.0
    assert memory.begin("k", "call-4") == "send"


def test_what_certainly_failed_may_be_sent_again_even_by_the_same_call() -> None:
    memory = Sent()
    assert memory.begin("k", "call-1") == "send"
    memory.failed("k")
    assert memory.begin("k", "call-1") == "send"


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory = Sent()
    for number in range(sent.MOST + 5):
        assert memory.begin(f"k{number}", "call") == "send"
        memory.done(f"k{number}")
    assert len(memory._entries) <= sent.MOST
    assert memory.begin("k0", "later") == "send"
    assert memory.begin(f"k{sent.MOST + 4}", "later") == "already"
