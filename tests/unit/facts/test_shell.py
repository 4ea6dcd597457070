"""A shell text is an argument vector only when it is nothing but words; all else is labels."""

import pytest

from toolcage.facts.shell import environment_name, is_plain_value, read


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("ls -l /tmp", ("ls", "-l", "/tmp")),
        ("grep 'a b' file", ("grep", "a b", "file")),
        ('echo "a b"c', ("echo", "a bc")),
        ("echo ''", ("echo", "")),
    ],
)
def test_one_command_of_literal_words_is_an_argument_vector(text: str, argv: tuple[str, ...]) -> None:
    assert read(text).argv == argv


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a; b", "sequence"),
        ("a && b", "sequence"),
        ("a || b", "sequence"),
        ("a\nb", "sequence"),
        ("a & b", "background"),
        ("a | b", "pipe"),
        ("a > b", "redirect"),
        ("a <<E", "here_document"),
        ("a $(b)", "substitution"),
        ("a `b`", "substitution"),
        ('a "$(b)"', "substitution"),
        ("a $b", "expansion"),
        ('a "$b"', "expansion"),
        ("a ~", "expansion"),
        ("a *", "glob"),
        ("a {b,c}", "brace"),
        ("(a)", "group"),
        ("f() a", "function"),
        ("a #b", "comment"),
        ("a\\ b", "escape"),
        ("A=1 b", "assignment"),
        ("a 'b", "unterminated"),
        ("a\x01b", "control"),
        ("", None),
    ],
)
def test_whatever_a_shell_would_act_upon_is_labelled_and_has_no_argument_vector(text: str, label: str | None) -> None:
    facts = read(text)
    assert facts.argv is None
    assert label is None or label in facts.labels


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "ld_library_path",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "BASH_ENV",
        "GIT_SSH_COMMAND",
        "https_proxy",
        "PATH",
        "npm_config_registry",
        "BROWSER",
        "MAVEN_OPTIONS",
    ],
)
def test_variables_that_load_other_code_are_known_in_either_case(name: str) -> None:
    assert environment_name(name)


@pytest.mark.parametrize("name", ["LANG", "TZ", "REPORT_MONTH", "COLUMNS"])
def test_other_variables_are_not_taken_for_them(name: str) -> None:
    assert not environment_name(name)


def test_everyday_assignments_are_no_loaders_and_preloading_is() -> None:
    assert read("while IFS= read -r x; do PATH=$PATH:/opt CC=gcc make; done").loaders == frozenset()
    assert read("x=1; export LD_PRELOAD=/tmp/a.so; ls").loaders == {"LD_PRELOAD"}
    assert read("env -i BASH_ENV=/tmp/x bash").loaders == {"BASH_ENV"}


def test_a_value_is_plain_unless_it_could_be_an_option() -> None:
    assert is_plain_value("report may.csv")
    assert not is_plain_value("-rf")
    assert not is_plain_value("a\nb")
    assert not is_plain_value("")
