"""Facts of programs are advice: they never refuse, and a hostile text never takes the host's parser down."""

import pytest

from toolcage.facts.python import MAX_PARSED_CHARACTERS, read


def test_imports_are_named_wherever_they_stand() -> None:
    facts = read("import os.path as p, sys\ndef f():\n    from json import loads\n    from . import x\n")
    assert facts.parses
    assert facts.imports == {"os", "sys", "json"}
    assert facts.lines == 5


def test_a_syntax_error_is_a_fact_and_not_a_refusal() -> None:
    assert read("def f(").parses is False
    assert read("x = '\x00'").has_nul


def test_a_programs_own_warnings_stay_its_own() -> None:
    assert read("x = '\\d'").parses  # warnings are errors here


@pytest.mark.threat("R12")
@pytest.mark.parametrize(
    "text",
    ["(" * 5000, "-" * 50_000 + "1", "not " * 15_000 + "1", "x = 1\n" * MAX_PARSED_CHARACTERS, "[{(" * 3000],
)
def test_what_could_overflow_the_parser_is_not_parsed(text: str) -> None:
    assert read(text).parses is None


def test_ordinary_nesting_is_parsed() -> None:
    assert read("x = " + "[" * 40 + "]" * 40).parses
