"""Arithmetic that cannot grow without end: the operators and functions of `calculate_expression`.

One big multiplication or power runs in C and cannot be interrupted, so every operation here is measured by the bit
lengths of its operands before it runs. Values are whole numbers, fractions, floats, decimals, booleans, complex numbers
and lists of these; anything else is a ToolFailure with a `calc.*` code.

Standard library only; sent into the cage beside the tool. Functions are plain callables in one frozen table: no module
and no object with attributes of interest is reachable from an expression.
"""

import ast
import cmath
import decimal
import functools
import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from toolcage.tools.base import ToolFailure

MAX_BITS: Final = 10_000
MAX_EXPONENT: Final = 10_000
MAX_MODULAR_BITS: Final = 2048
MAX_FACTORIAL: Final = 1000
MAX_DECIMAL_EXPONENT: Final = 3000
DECIMAL_DIGITS: Final = 50

# --- bounds --------------------------------------------------------------------------------------------------------


def too_big() -> ToolFailure:
    return ToolFailure("calc.too_big", "A number in the expression grows too large.", "Compute with smaller numbers.")


def bits(value: Any) -> int:
    """An upper bound of the size of a value in bits; zero for what cannot grow."""
    if isinstance(value, Fraction):
        return value.numerator.bit_length() + (value.denominator.bit_length() if value.denominator != 1 else 0)
    return value.bit_length() if isinstance(value, int) else 0


def bounded(value: Any) -> Any:
    if bits(value) > MAX_BITS:
        raise too_big()
    if isinstance(value, Decimal) and value.is_finite() and value and abs(value.adjusted()) > MAX_DECIMAL_EXPONENT:
        raise too_big()
    return value


def whole(value: Any, what: str) -> int:
    """The whole number that `value` is. A fraction or decimal that happens to be whole counts."""
    if isinstance(value, int | Fraction | Decimal) and value == math.trunc(value):
        return math.trunc(value)
    raise ToolFailure("calc.bad_argument", f"A whole number is needed for {what}.")


def _log2_size(value: Fraction) -> float:
    """The bits of a fraction, not rounded up: what a power multiplies."""
    return math.log2(abs(value.numerator) or 1) + math.log2(value.denominator)


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, list) or isinstance(right, list):
        raise ToolFailure("calc.bad_argument", "Lists cannot be multiplied.")
    if bits(left) + bits(right) > MAX_BITS:
        raise too_big()
    return left * right


def _shift_left(left: Any, right: Any) -> Any:
    number, places = whole(left, "<<"), whole(right, "<<")
    if places < 0 or number.bit_length() + places > MAX_BITS:
        raise too_big()
    return number << places


def _shift_right(left: Any, right: Any) -> Any:
    number, places = whole(left, ">>"), whole(right, ">>")
    if not 0 <= places <= MAX_BITS:
        raise too_big()
    return number >> places


def _floor_divide(left: Any, right: Any) -> Any:
    """Towards minus infinity also for decimals, whose own operator cuts towards zero."""
    if isinstance(left, Decimal):
        return Decimal(math.floor(bounded(left / right)))
    return left // right


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, Decimal):
        rest = left % right
        return rest + right if rest and (rest < 0) != (right < 0) else rest
    return left % right


def _power(base: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        numbers = [whole(value, "pow") for value in (base, exponent, modulus)]
        if max(number.bit_length() for number in numbers) > MAX_MODULAR_BITS:
            raise too_big()
        return pow(*numbers)
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        exponent = exponent.numerator
    if isinstance(base, int | Fraction) and isinstance(exponent, int):
        if abs(exponent) > MAX_EXPONENT or _log2_size(Fraction(base)) * abs(exponent) > MAX_BITS:
            raise too_big()
        return Fraction(base) ** exponent
    if isinstance(base, Decimal) or isinstance(exponent, Decimal):
        if not base and exponent < 0:
            raise ZeroDivisionError
        return to_decimal(base) ** to_decimal(exponent)
    return _float(base) ** _float(exponent)


def _factorial(value: Any) -> int:
    number = whole(value, "factorial")
    if not 0 <= number <= MAX_FACTORIAL:
        raise ToolFailure("calc.too_big", f"factorial takes whole numbers from 0 to {MAX_FACTORIAL}.")
    return math.factorial(number)


def _choose(function: Callable[[int, int], int], what: str, total: Any, taken: Any) -> int:
    number, part = whole(total, what), whole(taken, what)
    if number < 0 or part < 0:
        raise ToolFailure("calc.bad_argument", f"{what} takes whole numbers from 0.")
    steps = min(part, number - part) if what == "comb" and part <= number else part
    if part <= number and steps * number.bit_length() > MAX_BITS:
        raise too_big()
    return function(number, part) if part <= number else 0


def _lcm(*values: Any) -> int:
    numbers = [whole(value, "lcm") for value in _items(values)]
    if sum(number.bit_length() for number in numbers) > MAX_BITS:
        raise too_big()
    return math.lcm(*numbers)


# --- functions -----------------------------------------------------------------------------------------------------


def _float(value: Any) -> Any:
    """The value as floating point; exact numbers beyond its range are an error, not infinity."""
    if isinstance(value, complex | float):
        return value
    if isinstance(value, list):
        raise ToolFailure("calc.bad_argument", "A list stands where a number is needed.")
    return float(value)


def to_decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Fraction):
        return Decimal(value.numerator) / Decimal(value.denominator)
    if isinstance(value, int):
        return Decimal(value)
    raise ToolFailure("calc.not_in_decimal", "This has no value in decimal mode.", "Use mode exact.")


def _items(values: tuple[Any, ...]) -> list[Any]:
    """`f([1, 2])` and `f(1, 2)` are the same."""
    found = list(values[0]) if len(values) == 1 and isinstance(values[0], list) else list(values)
    if not found:
        raise ToolFailure("calc.bad_argument", "A list without numbers has no such value.")
    if any(isinstance(item, list) for item in found):
        raise ToolFailure("calc.bad_argument", "Lists cannot be nested here.")
    return found


def _sum(*values: Any) -> Any:
    return functools.reduce(lambda left, right: bounded(left + right), _items(values))


def _mean(*values: Any) -> Any:
    return _divide(_sum(*values), len(_items(values)))


def _median(*values: Any) -> Any:
    ordered = sorted(_items(values))
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else _divide(ordered[middle - 1] + ordered[middle], 2)


def _variance(*values: Any) -> Any:
    numbers = _items(values)
    if len(numbers) < 2:
        raise ToolFailure("calc.bad_argument", "variance and stdev need two numbers or more.")
    mean = _mean(*values)
    return _divide(_sum([_multiply(item - mean, item - mean) for item in numbers]), len(numbers) - 1)


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, int | Fraction) and isinstance(right, int | Fraction):
        return Fraction(left) / Fraction(right)
    return left / right


def _sqrt(value: Any) -> Any:
    """Exact where the root is."""
    if isinstance(value, Decimal):
        return value.sqrt()
    if isinstance(value, int | Fraction) and value >= 0:
        exact = Fraction(value)
        root = Fraction(math.isqrt(exact.numerator), math.isqrt(exact.denominator))
        if root * root == exact:
            return root
    number = _float(value)
    return cmath.sqrt(number) if isinstance(number, complex) else math.sqrt(number)


def _log(value: Any, base: Any = None) -> Any:
    if isinstance(value, Decimal):
        return value.ln() if base is None else value.ln() / to_decimal(base).ln()
    # math.log takes whole numbers of any size.
    number = value if isinstance(value, int) else _float(value)
    return math.log(number) if base is None else math.log(number, _float(base))


def _of_float(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        if any(isinstance(value, Decimal) for value in values):
            raise ToolFailure("calc.not_in_decimal", "This function has no decimal mode.", "Use mode exact.")
        return function(*(_float(value) for value in values))

    return call


def _decimal_or_float(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any) -> Any:
        return getattr(value, name)() if isinstance(value, Decimal) else function(_float(value))

    return call


def _round(value: Any, places: Any = None) -> Any:
    if isinstance(value, complex | list):
        raise ToolFailure("calc.bad_argument", "round takes a number.")
    digits = 0 if places is None else whole(places, "round")
    if abs(digits) > 300:
        raise too_big()
    return round(value) if places is None else round(value, digits)


def _absolute(value: Any) -> Any:
    return abs(value)


NAMES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "pi": math.pi, "e": math.e, "tau": math.tau,
        "abs": _absolute, "round": _round, "pow": _power, "sqrt": _sqrt, "factorial": _factorial,
        "comb": functools.partial(_choose, math.comb, "comb"), "perm": functools.partial(_choose, math.perm, "perm"),
        "gcd": lambda *values: math.gcd(*(whole(value, "gcd") for value in _items(values))), "lcm": _lcm,
        "isqrt": lambda value: math.isqrt(whole(value, "isqrt")),
        "min": lambda *values: min(_items(values)), "max": lambda *values: max(_items(values)),
        "sum": _sum, "mean": _mean, "median": _median, "variance": _variance,
        "stdev": lambda *values: _sqrt(_variance(*values)),
        "floor": lambda value: math.floor(value), "ceil": lambda value: math.ceil(value),
        "trunc": lambda value: math.trunc(value), "int": lambda value: math.trunc(value),
        "float": _of_float(lambda value: value),
        "exp": _decimal_or_float("exp", math.exp), "ln": _log, "log": _log,
        "log10": _decimal_or_float("log10", math.log10), "log2": _of_float(math.log2),
        **{
            name: _of_float(getattr(math, name))
            for name in (
                "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
                "degrees", "radians", "hypot", "cbrt", "fmod",
            )
        },
    }
)  # fmt: skip
CONSTANTS: Final = frozenset({"pi", "e", "tau"})
DECIMAL_CONSTANTS: Final = MappingProxyType(
    {
        "pi": Decimal("3.14159265358979323846264338327950288419716939937510582"),
        "e": Decimal("2.71828182845904523536028747135266249775724709369995957"),
        "tau": Decimal("6.28318530717958647692528676655900576839433879875021164"),
    }
)
DECIMAL_CONTEXT: Final = decimal.Context(
    prec=DECIMAL_DIGITS, Emax=10**6, Emin=-(10**6),
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)  # fmt: skip

OPERATORS: Final[Mapping[type[ast.AST], Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _multiply, ast.Div: _divide,
        ast.FloorDiv: _floor_divide, ast.Mod: _modulo, ast.Pow: _power,
        ast.LShift: _shift_left, ast.RShift: _shift_right,
        ast.BitAnd: lambda left, right: whole(left, "&") & whole(right, "&"),
        ast.BitOr: lambda left, right: whole(left, "|") | whole(right, "|"),
        ast.BitXor: lambda left, right: whole(left, "^") ^ whole(right, "^"),
        ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
        ast.Gt: operator.gt, ast.GtE: operator.ge,
    }
)  # fmt: skip
