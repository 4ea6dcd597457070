"""Arithmetic is exact, everything else is refused, and nothing grows without end."""

import json
import math
import sys
from typing import Any

import pytest

from toolcage.tools import bounded_arithmetic, calculate_expression
from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.bounded_arithmetic import MAX_BITS, NAMES
from toolcage.tools.calculate_expression import CalculateExpression


def calculate(expression: str, mode: str = "exact") -> dict[str, Any]:
    answer: dict[str, Any] = body_of(CalculateExpression())(expression=expression, mode=mode)
    json.dumps(answer, allow_nan=False)
    return answer


def code_of(expression: str, mode: str = "exact") -> str:
    with pytest.raises(ToolFailure) as caught:
        calculate(expression, mode)
    return caught.value.code


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 1", 2), ("0.1 + 0.2", 0.3), ("0.1 + 0.2 == 0.3", True), ("7 / 2", 3.5), ("6 / 3", 2), ("1 / 3 * 3", 1),
        ("-7 % 3", 2), ("5 // 2", 2), ("2 ** -3", 0.125), ("2 ** 0.5", math.sqrt(2)),
        ("~5 & 6 | 1 ^ 2 << 3 >> 1", 3 | 8),
        ("1 if 2 > 1 else 0", 1), ("not 1", False), ("1 < 2 < 3 and 4", 4), ("0 or 5", 5), ("1_000 + 1", 1001),
        ("(1250 - 990) / 990 * 100 > 26.2", True), ("[1, 2.5, 1 / 4]", [1, 2.5, 0.25]),
        ("sqrt(16)", 4), ("sqrt(2)", math.sqrt(2)), ("log(100, 10)", 2.0), ("log10(1000)", 3.0), ("sin(pi / 2)", 1.0),
        ("mean([1, 2, 4.5])", 2.5), ("median(3, 1, 2)", 2), ("stdev([1, 2, 3])", 1),
        ("max(1, 2.5)", 2.5), ("sum([1, 2])", 3),
        ("factorial(20) / factorial(18)", 380), ("comb(5, 2)", 10), ("perm(5, 2)", 20),
        ("gcd(12, 18)", 6), ("lcm(4, 6)", 12),
        ("round(2.675, 2)", 2.68), ("floor(-2.5)", -3), ("int(3.9)", 3), ("pow(3, 1000, 7)", pow(3, 1000, 7)),
        ("abs(-3)", 3), ("1e-400 > 0", True), ("2j * 2j", {"real": -4.0, "imaginary": 0.0}), ("\n 1 + 1 \t", 2),
    ],
)  # fmt: skip
def test_exact_mode_gives_the_exact_value(expression: str, value: object) -> None:
    assert calculate(expression)["value"] == value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("0.1 + 0.2", "0.3"), ("1 / 3", "0." + "3" * 50), ("-7 % 3", "2"), ("-7 // 2", "-4"), ("sqrt(2)", None),
        ("2 ** 100", str(2**100)), ("12.50 * 3", "37.5"), ("round(2.675, 2)", "2.68"), ("ln(e)", "1"),
        ("mean([0.1, 0.2])", "0.15"), ("1 if 0.1 * 3 == 0.3 else 0", "1"),
    ],
)  # fmt: skip
def test_decimal_mode_computes_with_fifty_digits(expression: str, text: str | None) -> None:
    answer = calculate(expression, "decimal")
    assert answer["type"] == "decimal"
    assert answer["text"] == (text or "1.4142135623730950488016887242096980785696718753769")


def test_whole_numbers_beyond_2_to_the_53_come_as_text_with_a_note() -> None:
    assert calculate("2 ** 53")["value"] == 2**53
    answer = calculate("2 ** 53 + 1")
    assert (answer["value"], answer["type"]) == ("9007199254740993", "int")
    assert "2^53" in answer["note"]


def test_fractions_and_infinities_are_told() -> None:
    assert calculate("1 / 3")["fraction"] == "1/3"
    answer = calculate("float(1e300) * float(1e300)")
    assert (answer["value"], answer["finite"]) == (None, False)
    assert calculate("1e-400")["text"] == "1E-400"


@pytest.mark.threat("R1")
@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("().__class__", "calc.not_allowed"), ("[1][0]", "calc.not_allowed"), ("'a' * 3", "calc.not_allowed"),
        ("b'a'", "calc.not_allowed"), ("f'{1}'", "calc.not_allowed"), ("lambda: 1", "calc.not_allowed"),
        ("[i for i in [1]]", "calc.not_allowed"), ("(x := 1)", "calc.not_allowed"), ("{1}", "calc.not_allowed"),
        ("{1: 2}", "calc.not_allowed"), ("abs(*[1])", "calc.not_allowed"), ("round(1, ndigits=2)", "calc.not_allowed"),
        ("(abs)(1)(2)", "calc.not_allowed"), ("...", "calc.not_allowed"), ("None", "calc.not_allowed"),
        ("1 is 1", "calc.not_allowed"), ("1 in [1]", "calc.not_allowed"), ("[1] @ [2]", "calc.not_allowed"),
        ("abs.__self__", "calc.not_allowed"), ("pi.real", "calc.not_allowed"), ("await 1", "calc.not_allowed"),
        ("__import__(1)", "calc.unknown_name"), ("open(1)", "calc.unknown_name"), ("__builtins__", "calc.unknown_name"),
        ("x + 1", "calc.unknown_name"), ("print(1)", "calc.unknown_name"), ("exit()", "calc.unknown_name"),
        ("import os", "calc.syntax"), ("1; 2", "calc.syntax"), ("a = 1", "calc.syntax"), ("1 +", "calc.syntax"),
        ("", "calc.syntax"), ("12.5%", "calc.syntax"),
        ("\U0001d4eabs(1)", "calc.not_ascii"), ("\uff11 + 1", "calc.not_ascii"), ("2 × 3", "calc.not_ascii"),
        ("1\x00", "calc.not_ascii"), ("1 + \x1b1", "calc.not_ascii"),
        ("sqrt", "calc.bad_argument"), ("pi()", "calc.not_allowed"), ("sum([])", "calc.bad_argument"),
        ("[1] * 3", "calc.bad_argument"), ("sqrt(1, 2, 3)", "calc.bad_argument"), ("gcd(1.5, 2)", "calc.bad_argument"),
        ("sqrt(-1)", "calc.undefined"), ("1 / 0", "calc.division_by_zero"), ("0 ** -1", "calc.division_by_zero"),
        ("1 < 2j", "calc.undefined"),
    ],
)  # fmt: skip
def test_what_is_not_arithmetic_is_refused_with_a_repairable_error(expression: str, code: str) -> None:
    assert code_of(expression) == code


@pytest.mark.threat("R14")
@pytest.mark.parametrize("mode", ["exact", "decimal"])
@pytest.mark.parametrize(
    "expression",
    [
        "10 ** 10 ** 6", "9 ** 9 ** 9", "2 ** 10001", "1 << 10 ** 8", "pow(10, 10 ** 6)", "factorial(10 ** 9)",
        "factorial(1001)", "comb(10 ** 9, 10 ** 8)", "perm(10 ** 6, 10 ** 5)", "1e999", "10 ** 3000 * 10 ** 3000",
        "(2 ** 5000) * (2 ** 5001)", "(1 / 3) ** 100000", "10 ** -10001", "pow(2 ** 3000, 2 ** 3000, 2 ** 3001)",
        "lcm(2 ** 6000, 3 ** 3000)", "round(1, 10 ** 9)", "exp(10 ** 6)",
    ],
)  # fmt: skip
def test_numbers_that_would_grow_without_end_are_refused_before_they_do(expression: str, mode: str) -> None:
    assert code_of(expression, mode) in ("calc.too_big", "calc.undefined")


@pytest.mark.threat("R14")
def test_products_and_powers_are_measured_before_they_are_computed() -> None:
    big = 2**6000
    for grows in (
        lambda: bounded_arithmetic._multiply(big, big),
        lambda: bounded_arithmetic._power(3, 9999),
        lambda: bounded_arithmetic._shift_left(1, 10_001),
    ):
        with pytest.raises(ToolFailure):
            grows()
    assert bounded_arithmetic._multiply(big, 3) == big * 3


@pytest.mark.parametrize(
    "expression", ["factorial(1000)", "2 ** 9999", "comb(10 ** 6, 3)", "pow(3, 10 ** 9, 10 ** 9 + 7)"]
)
def test_large_but_bounded_numbers_are_computed(expression: str) -> None:
    text = calculate(expression)["text"]
    assert int(text).bit_length() <= MAX_BITS


@pytest.mark.threat("R14")
@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("1" + " + 1" * 300, "calc.too_long"), ("+".join("1" * 150), "calc.too_complex"),
        ("-" * 50 + "1", "calc.too_complex"),
        ("sum([" + "1," * 101 + "])", "calc.too_complex"), ("(" * 400 + "1" + ")" * 400, "calc.syntax"),
    ],
)  # fmt: skip
def test_expressions_are_bounded_in_length_and_depth(expression: str, code: str) -> None:
    assert code_of(expression) == code


def test_a_literal_of_a_thousand_digits_is_read_exactly() -> None:
    assert calculate("9" * 1000)["text"] == "9" * 1000


@pytest.mark.threat("R21")
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError(), RecursionError()])
def test_nothing_raised_inside_ends_the_tool(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(calculate_expression, "NAMES", {**NAMES, "abs": fails})
    assert code_of("abs(1)") == "calc.undefined"


@pytest.mark.threat("R2")
def test_without_the_second_reader_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "RestrictedPython", None)
    assert code_of("1 + 1") == "calc.unavailable"


@pytest.mark.threat("R1")
def test_the_second_reader_is_asked_about_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    import RestrictedPython

    def objects(source: str, **_: object) -> object:
        return RestrictedPython.CompileResult(None, (f"no: {source}",), [], {})

    monkeypatch.setattr(RestrictedPython, "compile_restricted_eval", objects)
    assert code_of("1 + 1") == "calc.not_allowed"


def test_the_table_of_names_is_frozen_and_holds_no_module() -> None:
    assert not any(type(value) is type(sys) for value in NAMES.values())
    with pytest.raises(TypeError):
        NAMES["abs"] = print  # type: ignore[index]
