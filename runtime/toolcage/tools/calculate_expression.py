"""`calculate_expression`: arithmetic on one expression, exact or decimal. Runs in a cage.

The text is read by our own allowlist of syntax nodes, RestrictedPython must agree as a second opinion, and then the
tree is walked here: nothing is ever evaluated as Python, no attribute, subscript, text or keyword argument exists.
Every operation that can grow is bounded by the bit lengths of its operands before it runs, because one big
multiplication cannot be interrupted.

Exact mode keeps whole numbers and fractions exact (0.1 + 0.2 is 3/10) and turns to floating point only where a
function has no exact value. Decimal mode computes with 50 digits. Neither is the boundary: the cage is.
"""

import ast
import cmath
import decimal
import math
import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.bounded_arithmetic import (
    CONSTANTS,
    DECIMAL_CONSTANTS,
    DECIMAL_CONTEXT,
    DECIMAL_DIGITS,
    NAMES,
    OPERATORS,
    bits,
    bounded,
    to_decimal,
    too_big,
    whole,
)

MAX_SOURCE_BYTES: Final = 1024
MAX_NODES: Final = 200
MAX_DEPTH: Final = 32
MAX_ITEMS: Final = 100
EXACT_INTEGER: Final = 2**53

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "expression": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_SOURCE_BYTES,
            "description": "One arithmetic expression, such as (1250 - 990) / 990 * 100 or mean([3, 4, 8]).",
        },
        "mode": {
            "type": "string",
            "enum": ["exact", "decimal"],
            "default": "exact",
            "description": "exact: whole numbers and fractions stay exact. decimal: 50 digits, for money.",
        },
    },
    "required": ["expression"],
    "additionalProperties": False,
}
_KINDS: Final = {"expression": "text"}


class CalculateExpression(Tool):
    """Computes the value of an arithmetic expression."""

    name = "calculate_expression"
    description = (
        "Computes one arithmetic expression exactly. Use it for sums, percentages and unit conversions, for "
        "statistics of a few numbers (mean, median, stdev), or for large whole numbers (factorial, comb, gcd, "
        "powers). Do not use it for text, dates, equations or programs with variables (use execute_python), or "
        "for numbers that are still in a database (use query_database). Input: `expression` with + - * / // % **, "
        "comparisons, and/or/not, `a if c else b`, lists in [ ], the constants pi, e, tau and the usual functions "
        "(sqrt, log, sin, round, min, max, sum …); `mode` exact or decimal. Output: value (whole numbers beyond "
        "2^53 as text), text, type, finite, and fraction where the exact value is one."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset[str]()
    isolation = "namespace"
    wall_s = 5.0
    idempotent = True
    ships = ("toolcage.tools.bounded_arithmetic",)

    def execute(self, expression: str, mode: str = "exact") -> dict[str, Any]:
        """The value of `expression`. Raises ToolFailure with a `calc.*` code."""
        tree = _read(expression)
        _second_opinion(expression)
        try:
            with decimal.localcontext(DECIMAL_CONTEXT):
                return _answer(_Evaluation(expression, mode).value(tree), mode)
        except ToolFailure:
            raise
        except ZeroDivisionError:
            raise ToolFailure("calc.division_by_zero", "The expression divides by zero.") from None
        except (OverflowError, decimal.Overflow):
            raise too_big() from None
        except BaseException as error:  # noqa: BLE001 - nothing that a value does may end the cage's own code
            raise ToolFailure(
                "calc.undefined",
                f"The expression has no value here: {type(error).__name__}.",
                "Check the arguments of each function.",
            ) from None


# --- reading -------------------------------------------------------------------------------------------------------

_BINARY: Final = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
    ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor,
)  # fmt: skip
_ALLOWED: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Constant, ast.Name,
    ast.Load, ast.Tuple, ast.List, ast.And, ast.Or, ast.Not, ast.UAdd, ast.USub, ast.Invert,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, *_BINARY,
)  # fmt: skip
_SAID: Final[dict[type[ast.AST], str]] = {
    ast.Attribute: "attributes", ast.Subscript: "indexing", ast.Lambda: "functions of your own",
    ast.JoinedStr: "text", ast.NamedExpr: "assignment", ast.Starred: "* in arguments", ast.Dict: "dictionaries",
    ast.ListComp: "comprehensions", ast.GeneratorExp: "comprehensions", ast.Set: "sets", ast.Await: "await",
}  # fmt: skip


def _read(source: str) -> ast.expr:
    """The tree of `source`, every node of it allowed. Raises ToolFailure."""
    if len(source) > MAX_SOURCE_BYTES:
        raise ToolFailure("calc.too_long", f"The expression is longer than {MAX_SOURCE_BYTES} characters.", "Split it.")
    if not source.isascii() or unicodedata.normalize("NFKC", source) != source:
        raise ToolFailure(
            "calc.not_ascii",
            "The expression holds a character outside of ASCII.",
            "Write * for times, / for divided by, - for minus, and digits 0-9.",
        )
    if any((character < " " and character not in "\t\n\r") or character == "\x7f" for character in source):
        raise ToolFailure("calc.not_ascii", "The expression holds a control character.")
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        hint = "Write one expression, such as 2 * (3 + 4); write ** for powers and == to compare."
        where = f" near character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        raise ToolFailure("calc.syntax", f"The expression cannot be read{where}.", hint) from None
    _check(tree)
    return tree.body


def _check(tree: ast.Expression) -> None:
    count = 0
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise ToolFailure("calc.too_complex", "The expression has too many parts.", "Compute it in steps.")
        _check_node(node)
        waiting += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _check_node(node: ast.AST) -> None:
    if type(node) not in _ALLOWED:
        what = _SAID.get(type(node), type(node).__name__)
        raise ToolFailure(
            "calc.not_allowed", f"Not possible in an expression: {what}.", "Use numbers and functions only."
        )
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float, complex, bool):
        raise ToolFailure("calc.not_allowed", "Not possible in an expression: text.", "Use numbers and functions only.")
    if isinstance(node, ast.Constant) and not _finite(bounded(node.value)):
        raise too_big()
    if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
        raise ToolFailure("calc.not_allowed", "Functions are called by name, with arguments in order.")
    if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > MAX_ITEMS:
        raise ToolFailure("calc.too_complex", f"A list holds more than {MAX_ITEMS} items.", "Use execute_python.")
    if isinstance(node, ast.Name) and node.id not in NAMES:
        raise ToolFailure(
            "calc.unknown_name",
            f"There is no `{node.id[:40]}` here.",
            f"Put numbers in for variables. Functions: {', '.join(sorted(NAMES))}.",
        )


def _second_opinion(source: str) -> None:
    """RestrictedPython compiles the same text and must find nothing against it. Its result is not used."""
    try:
        from RestrictedPython import compile_restricted_eval  # type: ignore[attr-defined]
    except ImportError:
        raise ToolFailure("calc.unavailable", "The calculator's second reader is missing from the image.") from None
    try:
        result = compile_restricted_eval(source.strip(), filename="<expression>")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolFailure("calc.syntax", "The expression cannot be read.") from None
    if result.errors or result.code is None:
        raise ToolFailure("calc.not_allowed", "The expression holds something that is not arithmetic.")


# --- evaluation ----------------------------------------------------------------------------------------------------


class _Evaluation:
    """Walks one checked tree. Nothing but numbers, booleans and lists of them ever exists here."""

    def __init__(self, source: str, mode: str) -> None:
        self.lines = source.strip()
        self.decimal = mode == "decimal"

    def value(self, node: ast.expr) -> Any:
        return bounded(self._value(node))

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.Name(id=name):
                return self._constant(name)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item) for item in items]
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(type(op), self.value(left), self.value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.value(operand))
            case ast.BoolOp(op=op, values=values):
                return self._boolean(op, values)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name not in CONSTANTS:
                return self._call(name, [self.value(argument) for argument in arguments])
        raise ToolFailure("calc.not_allowed", "Not possible in an expression.")

    def _number(self, node: ast.Constant) -> Any:
        """A literal with a point is read from its own digits, so that 0.1 is a tenth."""
        number = node.value
        if not isinstance(number, float):
            return Decimal(number) if self.decimal and type(number) is int else number
        written = (ast.get_source_segment(self.lines, node) or repr(number)).replace("_", "")
        return Decimal(written) if self.decimal else Fraction(written)

    def _constant(self, name: str) -> Any:
        if name not in CONSTANTS:
            raise ToolFailure("calc.bad_argument", f"`{name}` is a function.", f"Write {name}(...).")
        return DECIMAL_CONSTANTS[name] if self.decimal else NAMES[name]

    def _binary(self, op: type[ast.operator], left: Any, right: Any) -> Any:
        if isinstance(left, list) or isinstance(right, list):
            raise ToolFailure("calc.bad_argument", "Lists have no operators.", "Use sum, mean, min or max on a list.")
        return OPERATORS[op](*_alike(left, right))

    def _unary(self, op: ast.unaryop, value: Any) -> Any:
        if isinstance(op, ast.Not):
            return not value
        if isinstance(value, list):
            raise ToolFailure("calc.bad_argument", "Lists have no operators.")
        if isinstance(op, ast.Invert):
            return ~whole(value, "~")
        return -value if isinstance(op, ast.USub) else +value

    def _boolean(self, op: ast.boolop, values: list[ast.expr]) -> Any:
        result: Any = None
        for node in values:
            result = self.value(node)
            if bool(result) is isinstance(op, ast.Or):
                break
        return result

    def _compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            if not OPERATORS[type(op)](*_alike(left, right)):
                return False
            left = right
        return True

    def _call(self, name: str, values: list[Any]) -> Any:
        try:
            return NAMES[name](*values)
        except ToolFailure:
            raise
        except TypeError:
            raise ToolFailure("calc.bad_argument", f"`{name}` cannot take these arguments.") from None
        except (ValueError, decimal.InvalidOperation):
            raise ToolFailure("calc.undefined", f"`{name}` has no value there.", "Check its argument.") from None


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Both as decimals where one is: Python would not mix them with fractions."""
    if isinstance(left, Decimal) != isinstance(right, Decimal) and not isinstance(left, list):
        return (to_decimal(left), right) if isinstance(right, Decimal) else (left, to_decimal(right))
    return left, right


# --- the answer ----------------------------------------------------------------------------------------------------


def _answer(value: Any, mode: str) -> dict[str, Any]:
    notes: list[str] = []
    answer: dict[str, Any] = {"value": _json(value, notes), "text": _text(value), "type": _type(value), "mode": mode}
    answer["finite"] = all(_finite(item) for item in (value if isinstance(value, list) else [value]))
    if isinstance(value, Fraction) and value.denominator != 1 and bits(value) <= 200:
        answer["fraction"] = f"{value.numerator}/{value.denominator}"
    if notes:
        answer["note"] = notes[0]
    return answer


def _json(value: Any, notes: list[str]) -> Any:
    if isinstance(value, list):
        return [_json(item, notes) for item in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        value = value.numerator
    if isinstance(value, int):
        if abs(value) <= EXACT_INTEGER:
            return value
        notes.append("whole numbers beyond 2^53 are given as text, exactly")
        return str(value)
    if isinstance(value, Decimal):
        notes.append("decimal values are given as text, exactly")
        return _text(value)
    if isinstance(value, complex):
        return {"real": _json(value.real, notes), "imaginary": _json(value.imag, notes)}
    number = float(value)
    if value and not number:
        notes.append("the value is too small for a JSON number; see text")
    if not math.isfinite(number):
        notes.append("the value is not a finite number")
        return None
    return number


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return str(value.numerator)
        # below the smallest float, but not zero
        return repr(float(value)) if float(value) else str(to_decimal(value))
    if isinstance(value, Decimal):
        plain = value.normalize() if value else Decimal(0)
        return format(plain, "f") if abs(plain.adjusted()) <= DECIMAL_DIGITS else str(plain)
    return repr(value)


def _type(value: Any) -> str:
    if isinstance(value, list):
        return "list"
    if isinstance(value, Fraction):
        return "int" if value.denominator == 1 else "float"
    return {Decimal: "decimal"}.get(type(value), type(value).__name__)


def _finite(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return not isinstance(value, float | complex) or cmath.isfinite(value)
