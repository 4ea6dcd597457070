"""Findings name what a program says that it does, by line, and never fail."""

import pytest

from toolcage.facts.python_findings import findings


@pytest.mark.parametrize(
    ("text", "concern"),
    [
        ("import subprocess", "process"),
        ("import os\nos.system('x')", "process"),
        ("os.execv('a', [])", "process"),
        ("from ctypes import CDLL", "native_code"),
        ("import socket", "network"),
        ("eval(x)", "dynamic_code"),
        ("().__class__", "introspection"),
        ("import pickle", "deserialisation"),
        ("shutil.rmtree('x')", "deletion"),
        ("open('/etc/passwd')", "host_files"),
        ("while True:\n    pass", "endless_loop"),
        ("def", "unreadable"),
        ("(" * 500, "unreadable"),
        ("a\x00", "unreadable"),
    ],
)
def test_what_a_program_says_is_found(text: str, concern: str) -> None:
    assert concern in {one.concern for one in findings(text)}


@pytest.mark.parametrize(
    "text",
    [
        "print(6 * 7)",
        "import math\nprint(math.pi)",
        "while True:\n    break",
        "class A:\n    def __init__(self): self.__len__()",
    ],
)
def test_ordinary_programs_have_no_findings(text: str) -> None:
    assert findings(text) == ()
