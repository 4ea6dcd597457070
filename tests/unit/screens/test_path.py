"""Paths stay beneath their root, whatever they are written in."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.path import read
from toolcage.screens.path import screen


def code_of(*texts: str) -> str:
    with pytest.raises(Refused) as caught:
        screen(read(*texts))
    refusal = caught.value.refusal
    assert refusal.status == "blocked"
    assert refusal.message.isascii()
    return refusal.code


@pytest.mark.parametrize(
    "text",
    [
        "reports/May sales.csv",
        "a..b/..c",
        "été/文件.txt",
        "100% sure.txt",
        "a/../b",
        "/workspace/x.py",
        ".env.example",
        "Acme Inc./q1.pdf",
        "notes (1)_[final]!.md",
        "1⁄2 cup.txt",
        "wait….txt",
        "aux.c",
        "~$draft.docx",
        "",
        "R&D/plan.txt",
        "a;b.txt",
        "x%20y.txt",
        "0x1F dump.bin",
        "می\u200cخواهم.txt",
        "👨\u200d👩\u200d👧 family.jpg",
        "a:b.txt",
        "Q: what is it?.md",
        "a::b.txt",
        "data: raw.csv",
        "file:notes.txt",
        "frames/img%04d.png",
        "caf%E9.txt",
        "Gr%FC%DFe.txt",
        "50%de.txt",
        "~draft.txt",
        "~$~.tmp",
        "$RECYCLE.BIN/desktop.ini",
        "src/lib/$lib/x.ts",
        "¥100.csv",
    ],
)
def test_names_of_ordinary_files_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("../x", "path.leaves_root"),
        ("a/%2e%2e/%2e%2e/x", "path.leaves_root"),
        ("/etc/passwd", "path.absolute"),
        ("\\\\host\\share", "path.absolute"),
        ("c:\\x", "path.drive"),
        ("file:///etc/passwd", "path.scheme"),
        ("~/.ssh/id_rsa", "path.home"),
        ("a\nb", "path.control"),
        ("a%00b", "path.control"),
        ("a\u202eb", "path.control"),
        ("a/%ff%fe", "path.encoding"),
        ("a/.../b", "path.dots"),
        ("a/.. /b", "path.dots"),
        ("My\\ Documents", "path.backslash"),
        ("a::$DATA", "path.stream"),
        ("a:$I30:$INDEX_ALLOCATION", "path.stream"),
        ("C:", "path.drive"),
        ("C:/x", "path.drive"),
        ("C:..", "path.drive"),
        ("file:/etc/passwd", "path.scheme"),
        ("file:..", "path.scheme"),
        ("data:,x", "path.scheme"),
        ("zip:a.zip#b", "path.scheme"),
        ("https:/example.com/", "path.scheme"),
        ("view-source:file:///etc", "path.scheme"),
        ("~john.doe/x", "path.home"),
        ("~+/x", "path.home"),
        ("$HOME/x", "path.home"),
        ("${HOME}/x", "path.home"),
        ("%HOME%/x", "path.home"),
        ("img%00d.png", "path.control"),
        ("img%0ad.png", "path.control"),
        ("a%c0%ae.txt", "path.encoding"),
        (".%ff./x", "path.leaves_root"),
        ("..%ff/x", "path.leaves_root"),
        ("..2fetc2fpasswd", "path.leaves_root"),
        ("..252fetc", "path.leaves_root"),
        ("..¥x", "path.leaves_root"),
        ("a" * 300, "path.too_long"),
        ("a/" * 3000, "path.too_long"),
        ("a\x00", "text.nul"),
    ],
)
def test_the_refusal_names_what_stands_against_it(text: str, code: str) -> None:
    assert code_of(text) == code


def test_one_bad_path_among_good_ones_is_refused() -> None:
    assert code_of("a", "b", "../c") == "path.leaves_root"
    assert code_of(*["a"] * 1001) == "path.too_many"
