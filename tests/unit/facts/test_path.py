"""A path is what its components say in every reading of it, never what its text begins with."""

import pytest

from toolcage.facts.path import read, read_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a/b.txt", ("a", "b.txt")),
        ("./a//b/./c", ("a", "b", "c")),
        ("a/../b", ("b",)),
        ("", ()),
        (".", ()),
        ("/workspace/a/b", ("a", "b")),
        ("/workspace", ()),
        ("ä/文件.txt", ("ä", "文件.txt")),
        ("..a/b..", ("..a", "b..")),
        ("100%/x", ("100%", "x")),
    ],
)
def test_paths_beneath_the_root_have_their_components(text: str, names: tuple[str, ...]) -> None:
    path = read_path(text)
    assert path.names == names
    assert not any((path.leaves, path.rooted, path.drive))


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "../a",
        "a/../../b",
        "a/b/../../../c",
        "/workspace/../etc",
        "%2e%2e/a",
        "%2e%2e%2fa",
        "..%2fa",
        "%252e%252e%252fa",
        "%25252e%25252e/a",
        "..\\a",
        "a\\..\\..\\b",
        "..%5ca",
        "%c0%ae%c0%ae/a",
        "..%c0%afa",
        "..%u2215a",
        "%uff0e%uff0e/a",
        "．．/a",
        "..／a",
        "..∕a",
        "‥/a",
        "..\\u002fa",
        "..\\x2fa",
        "..0x2fa",
        "..&#47;a",
        "..&sol;a",
        "&#x2e;&#x2e;/a",
        "%%32%65%%32%65/a",
        "..％2fa",
        "..%ef%bc%8fa",
        "%e2%80%a5/a",
        "..\u200b/a",
        ".\u2060./a",
        "\ufeff../a",
        "..%c2%ad/a",
    ],
)
def test_what_leaves_in_any_reading_leaves(text: str) -> None:
    path = read_path(text)
    assert path.leaves or path.undecodable


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "//host/share", "\\\\host\\share", "%2fetc", "／etc", "&#47;etc", "/workspaces/a"]
)
def test_what_begins_at_another_root_is_rooted(text: str) -> None:
    assert read_path(text).rooted


def test_drives_homes_schemes_and_streams_are_facts() -> None:
    assert read_path("c:\\a").drive
    assert read_path("C:..").drive
    assert not read_path("C:a").drive
    assert read_path("~/a").home
    assert read_path("~root/a").home
    assert not read_path("~$draft.docx").home
    assert read_path("file:///a").scheme
    assert read_path("php://filter/a").scheme
    assert read_path("a::$DATA").stream
    assert not read_path("12:30 notes").scheme


def test_names_that_windows_reads_otherwise_are_facts() -> None:
    assert read_path("nul").device
    assert read_path("a/COM1.txt").device
    assert not read_path("console/nullable.txt").device
    assert read_path("Acme Inc./x").trailing
    assert read_path("a/... /b").dots
    assert read_path("..;/b").dots


def test_case_and_normalisation_are_folded_for_comparing() -> None:
    assert read_path("STRASSE/É").folded == read_path("straße/e\u0301").folded


def test_several_paths_are_read_each_for_itself() -> None:
    facts = read("a", "../b")
    assert [path.leaves for path in facts.paths] == [False, True]


def test_a_text_that_is_wrapped_again_and_again_ends() -> None:
    assert read_path("%" + "25" * 2000 + "2e%2e/a").undecodable
    read_path("../" * 20000)
