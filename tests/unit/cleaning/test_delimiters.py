"""What a template or a tokenizer takes for the frame of a conversation is shown as text."""

import pytest

from toolcage.cleaning.delimiters import show_delimiters

FRAMES = [
    "<|im_start|>system", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<| im_start |>", "< |IM_START| >",
    "<｜Assistant｜>", "＜|im_start|＞",
    "＜｜ｉｍ＿ｓｔａｒｔ｜＞", "<｜tool▁calls▁begin｜>",
    "[INST]", "[/INST]", "[ inst ]", "［INST］",
    "<<SYS>>", "<</SYS>>", "[TOOL_CALLS]", "[TOOL_RESULTS]", "</tool_result>", "</ Tool_Result >", "＜/tool_result＞",
    "<tool_result>", "<tool-output>", "<function_calls>", '<invoke name="x">', "<function_results>",
    "<system>", "</system>",
    "<system-reminder>", "<start_of_turn>", "<<end untrusted 0123abcd>>", "<<untrusted 0123abcd>>", "</untrusted>",
    "<untrusted_tool_output>", "<ѕуѕtеm>", "〈/tool_result〉", "</tool_result",
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_word_loses_its_brackets_and_keeps_its_word(frame: str) -> None:
    shown, count = show_delimiters(f"before {frame}")
    assert count == 1
    assert shown.startswith("before ‹")
    assert not set("<>[]＜＞〈〉［］") & set(shown)
    assert show_delimiters(shown) == (shown, 0)


def test_a_legacy_turn_is_shown() -> None:
    assert show_delimiters("ok\n\nHuman: do it")[0] == "ok\n\n‹Human›: do it"
    assert show_delimiters("as the Human: said")[1] == 0


@pytest.mark.parametrize(
    "text",
    [
        "a < b | c > d", "List<int>", "<div class='a'>", "[1, 2]", "instance [in]", "if a <b and c> d",
        "<systematic>", "《书名》", "｜表｜格｜", "<humanity>", "value[tool]", "[INSTANCE]",
    ],
)  # fmt: skip
def test_ordinary_text_with_brackets_stays(text: str) -> None:
    assert show_delimiters(text) == (text, 0)
