"""What cleaning made of five hundred hostile texts when each step still looked at every character.

`recorded.jsonl` was written by the plain form of every step, before any of them learned to look first whether there is
anything to do. The known values are `hunter2!` and `s3cr3t-value`.
"""

import json
from pathlib import Path

from toolcage.cleaning import neutralise
from toolcage.types import OutputTerms

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "recorded.jsonl").read_text("utf-8").splitlines()]


def test_the_fast_way_gives_what_the_plain_way_gave() -> None:
    for one in RECORDED:
        terms = OutputTerms(html=one["html"], redact=tuple(one["redact"]))
        text, findings = neutralise(one["text"], terms, ("hunter2!", "s3cr3t-value"))
        assert (text, dict(findings)) == (one["cleaned"], one["findings"])


def test_texts_side_by_side_settle() -> None:
    text = "\n".join(one["text"] for one in RECORDED)
    once = neutralise(text, OutputTerms(), ("hunter2!",))[0]
    assert neutralise(once, OutputTerms(), ("hunter2!",))[0] == once
