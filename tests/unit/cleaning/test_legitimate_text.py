"""Writing of every script, emoji, mathematics, code, diffs and tables come out as they went in."""

import pytest

from toolcage.cleaning import StreamCleaner, clean_json, clean_text
from toolcage.types import OutputTerms, freeze, thaw

TEXTS = {
    "joined emoji": "👩‍💻 👨‍👩‍👧‍👦 🧑🏽‍🚀 ❤️‍🔥 🏳️‍🌈 🏴‍☠️ 👁️‍🗨️ 🐻‍❄️ 🧔🏿‍♂️ 🤽‍♀️",
    "flags": "🇩🇪🇫🇷🇯🇵 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿",
    "keycaps": "1️⃣ 2️⃣ #️⃣ *️⃣",
    "skin tones": "👍🏻 👍🏼 👍🏽 👍🏾 👍🏿 🤝🏽",
    "presentation": "☎️ ☎︎ ✔️ ✔︎ ©️ ™️ ↔️ ▶️ ☀️",
    "arabic": "السلام عليكم، كيف حالك؟ العَرَبِيَّة ١٢٣٤",
    "hebrew": "שָׁלוֹם עוֹלָם, מה שלומך? 123",
    "persian": "می‌خواهم کتاب‌ها را ببینم؛ خانه‌ای بزرگ.",
    "urdu": "یہ ایک جملہ ہے۔ اُردُو",
    "hindi": "नमस्ते दुनिया, क्‍या हाल है? विद्‌या",
    "bengali": "বাংলা ভাষা, র‍্যাব",
    "tamil": "தமிழ் மொழி",
    "malayalam": "മലയാളം, അവന്‍ പറഞ്ഞു",
    "sinhala": "ශ්‍රී ලංකාව",
    "thai": "สวัสดีชาวโลก",
    "tibetan": "བོད་སྐད་",
    "burmese": "မြန်မာဘာသာ",
    "khmer": "ភាសាខ្មែរ",
    "mongolian": "ᠮᠣᠩᠭᠣᠯ",
    "chinese": "《红楼梦》是一部小说（清代）：“你好，世界！”〈章〉",
    "japanese": "こんにちは、世界。「カタカナ」と漢字々ー〜 葛󠄀城市",
    "korean": "안녕하세요, 세계! 한글 (漢字)",
    "vietnamese": "Tiếng Việt: đường, nguyễn",
    "greek and cyrillic": "Ελληνικά — Кириллица ё й Ї ґ",
    "accents, composed and not": "café cafe\u0301 Z̧ ñ ṩ",
    "mathematics": "∀x ∈ ℝ: x² ≥ 0; ∑_{i=1}^{n} i = n(n+1)/2; a < b ≤ c; ∫₀^∞ e^{-x²} dx = √π/2; 𝔸 ⊗ 𝓑 |ψ⟩ ⟨φ|",
    "money": "1.249,90 € £3 ¥100 ₹500 ±5 % 20 °C",
    "python": "def f(xs: list[int]) -> dict[str, int]:\n\treturn {str(x): a[i](x) for x in xs if x < 3 and y[0] > 2}\n",
    "c": "if (a[i] < b && *p->q == 0) { printf(\"%d\\n\", x << 2); }",
    "sql": "SELECT a.\"id\", b[1] FROM t AS a WHERE a.x <= 3 AND b.y <> 'it''s' -- all\n",
    "shell": "for f in *.txt; do echo \"$f\" | sed 's/[a-z]\\{2\\}//' > /tmp/x 2>&1; done\n",
    "diff": "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@\n-    return a[0]\n+    return a[1]  # [ ] later\n context\n",
    "table": "| id | name |\n|---:|:-----|\n| 1 | Zoë |\n\n┌──┬──┐\n│ a│ b│\n└──┴──┘\n",
    "markdown": "# Title\n\n- [x] done\n- [ ] open, see [part 2](part-2.md) and `x[i](y)`\n\n1. *one* **two**\n",
    "csv": "id,name,total\n1,\"O'Brien, Pat\",12.50\n",
    "yaml": "a: [1, 2]\nb: {c: d}\nkey: value\n",
    "address": "see https://example.com/a?b=c&d=e#f and mail list@example.org",
    "private use and boxes": "\ue0b0 \uf8ff ■□▢",
    "math variants": "≨︀ ⊓︀ ∩︀",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_legitimate_text_is_left_as_it_is(text: str) -> None:
    assert clean_text(text, OutputTerms()) == (text, {})


@pytest.mark.parametrize("redact", [("secrets",), ("secrets", "email", "iban", "card", "phone")])
def test_a_table_of_all_of_them_is_left_as_it_is(redact: tuple[str, ...]) -> None:
    texts = [text for name, text in TEXTS.items() if name != "address"]
    made = clean_json(freeze(texts), OutputTerms(redact=redact))
    assert thaw(made.value) == texts
    assert not made.findings


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_stream_of_all_of_them_is_left_as_it_is(size: int) -> None:
    raw = "\n".join(TEXTS.values()).encode()
    pieces: list[str] = []
    cleaner = StreamCleaner(OutputTerms(), pieces.append)
    for start in range(0, len(raw), size):
        cleaner.feed(raw[start : start + size])
    cleaner.close()
    assert "".join(pieces) == raw.decode()
    assert not cleaner.findings
