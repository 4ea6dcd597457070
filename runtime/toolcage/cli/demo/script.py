"""The demo's calls, in order, as data: who calls what, what is tried, and how it must end.

What a step is stands in `step`, the researcher's in `research`. An attack whose program ends well is contained only if
its own report shows that nothing was reached. A canary (a word in a file and in an environment variable of the host) is
looked for in whatever any step brings back; that is not a step's business but `play`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcage.cli.demo import programs
from toolcage.cli.demo.research import RESEARCHER
from toolcage.cli.demo.step import Scene, Step, need
from toolcage.line.result import ToolResult
from toolcage.types import Status

DATABASE: Final = "shop"
_CAGE_ENVIRONMENT: Final = """
    HOME LANG MKL_NUM_THREADS MPLBACKEND MPLCONFIGDIR NUMEXPR_MAX_THREADS OMP_NUM_THREADS OPENBLAS_NUM_THREADS PATH
    POLARS_MAX_THREADS PYTHONDONTWRITEBYTECODE
    TMPDIR
"""
_LIVE: Final = ("\x1b", "\r", "<script", "\u202e", "\u200b", "![pixel](")


# --- what a result must show ---------------------------------------------------------------------------------------


def _has_tables(result: ToolResult) -> str:
    names = [table["name"] for table in result.data["tables"]]
    need({"customers", "order_items", "orders", "products"} <= set(names), "a table is missing")
    return f"{len(names)} tables"


def _has_rows(result: ToolResult) -> str:
    need(bool(result.data["rows"]), "no rows came back")
    return f"{result.data['row_count']} rows"


def _is_share(result: ToolResult) -> str:
    value = result.data["value"]
    need(isinstance(value, int | float) and 0 < value < 100, "the share is no percentage")
    return f"{value} %"


def _has_chart(result: ToolResult) -> str:
    names = [artifact.name for artifact in result.artifacts]
    need(names == ["revenue.svg"], "the chart did not come out")
    return f"{names[0]}, {result.artifacts[0].size} bytes, brought out"


def _all_refused(attempts: int) -> Callable[[ToolResult], str]:
    def demand(result: ToolResult) -> str:
        made = result.data
        need(isinstance(made, Mapping) and len(made) == attempts, "the program did not make all its attempts")
        reached = [name for name, end in made.items() if not str(end).startswith("refused: ")]
        need(not reached, f"reached: {', '.join(reached)}")
        return f"{attempts} attempts, each refused by the system"

    return demand


def _only_constants(result: ToolResult) -> str:
    names = set(result.data)
    foreign = sorted(names - set(_CAGE_ENVIRONMENT.split()))
    need(not foreign, f"the cage knows {', '.join(foreign)}")
    return f"{len(names)} variables, the same in every cage"


def _forged_nothing(result: ToolResult) -> str:
    need("FORGED" not in repr(result.data), "the forged answer was believed")
    need("wrote to" in result.stdout and "/proc/1" not in result.stdout.rpartition("wrote to")[2], "the door was open")
    return "the door was out of reach, the forged answer not believed"


def _inert(result: ToolResult) -> str:
    live = [repr(sign) for sign in _LIVE if sign in result.stdout]
    need(not live, f"still live: {', '.join(live)}")
    return f"{len(result.labels) - 1} kinds of it shown as text"


def _redacted(result: ToolResult) -> str:
    need("AK" + "IA" not in result.stdout and "battery" not in result.stdout, "the key came out")
    need("secret_redacted" in result.labels, "the result does not say that something was redacted")
    return "both replaced by a mark"


def _lived(result: ToolResult) -> str:
    need(isinstance(result.data, Mapping) and set(result.data) == {"1", "-1"}, "the program did not report")
    return "the cage's first process lived on and answered"


def _began(result: ToolResult) -> str:
    need(result.stdout == "begun\n", "the output so far was lost")
    return result.error or ""


# --- arguments that follow from what came before -------------------------------------------------------------------


def _share(scene: Scene) -> Mapping[str, object]:
    """The best category's share of all revenue, from the rows of an earlier query."""
    rows = scene.results["revenue"].data["rows"]
    return {"expression": f"round(100 * {rows[0][1]} / ({' + '.join(str(row[1]) for row in rows)}), 1)"}


def _revenue_table(scene: Scene) -> Mapping[str, bytes]:
    rows = scene.results["revenue"].data["rows"]
    lines = ["category,revenue", *(f"{category},{revenue}" for category, revenue, *_ in rows)]
    return {"revenue.csv": "\n".join(lines).encode()}


def _host_files(scene: Scene) -> Mapping[str, object]:
    return {"code": programs.HOST_FILES.replace("{host_file!r}", repr(str(scene.host_file)))}


# --- the calls -----------------------------------------------------------------------------------------------------


def _query(name: str, tried: str, sql: str, *, status: Status = "blocked", code: str | None = None) -> Step:
    arguments: dict[str, Any] = {"database": DATABASE, "sql": sql}
    return Step(name=name, role="analyst", tool="query_database", tried=tried, arguments=arguments, status=status,
                code=code)  # fmt: skip


def _program(
    name: str, tried: str, text: str, *, status: Status = "ok", code: str | None = None,
    demand: Callable[[ToolResult], str] | None = None,
) -> Step:  # fmt: skip
    arguments = {"code": text}
    return Step(name=name, role="coder", tool="execute_python", tried=tried, arguments=arguments, status=status,
                code=code, demand=demand)  # fmt: skip


_REVENUE: Final = """
    SELECT p.category, sum(i.quantity * i.unit_price_cents) / 100.0 AS revenue, count(DISTINCT o.id) AS orders
    FROM order_items i JOIN orders o ON o.id = i.order_id JOIN products p ON p.id = i.product_id
    WHERE o.status <> :status AND o.ordered_on >= :since
    GROUP BY p.category ORDER BY revenue DESC
"""

ANALYST: Final[tuple[Step, ...]] = (
    Step(
        name="schema", role="analyst", tool="describe_database", tried="learn the schema", kind="work",
        arguments={"database": DATABASE}, demand=_has_tables,
    ),
    Step(
        name="revenue", role="analyst", tool="query_database", tried="revenue per category, values bound", kind="work",
        arguments={
            "database": DATABASE, "sql": _REVENUE, "parameters": {"status": "cancelled", "since": "2026-01-01"},
        },
        demand=_has_rows,
    ),
    Step(
        name="share", role="analyst", tool="calculate_expression", tried="the best category's share of it", kind="work",
        arguments=_share, demand=_is_share,
    ),
    _query("drop", "drop a table", "DROP TABLE orders", code="sql.defines"),
    _query("stacked", "a second statement behind the first", "SELECT 1; DROP TABLE orders",
           code="sql.multiple_statements"),
    _query("attach", "open another file as a database", "ATTACH DATABASE '/etc/passwd' AS x", code="sql.attach"),
    _query("pragma", "switch the schema to writable", "PRAGMA writable_schema = ON", code="sql.pragma"),
    _query("extension", "load a library into the engine", "SELECT load_extension('/tmp/x.so')",
           code="sql.load_extension"),
    _query("with_delete", "delete inside a WITH", "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
           code="sql.writes"),
    _query("denied_column", "read customers' e-mail addresses", "SELECT name, email FROM customers", status="denied",
           code="policy.no_match"),
    _query("denied_star", "the same by *, in a subquery",
           "SELECT count(*) FROM (SELECT * FROM customers WHERE id < 10)", status="denied", code="policy.no_match"),
    Step(
        name="other_tool", role="analyst", tool="execute_python", tried="a tool that the role does not have",
        arguments={"code": "print('hello')"}, status="denied", code="tool.unknown",
    ),
    Step(
        name="huge", role="analyst", tool="query_database", tried="2 MB of arguments",
        arguments=lambda _: {"database": DATABASE, "sql": "SELECT '" + "x" * 2_000_000 + "'"},
        status="malformed", code="call.too_large",
    ),
    Step(
        name="duplicate_key", role="analyst", tool="query_database", tried="one key twice, with two values",
        raw=b'{"tool": "query_database", "arguments":'
            b' {"database": "shop", "sql": "SELECT 1", "sql": "DROP TABLE orders"}}',
        status="malformed", code="call.duplicate_key",
    ),
)  # fmt: skip

CODER: Final[tuple[Step, ...]] = (
    Step(
        name="chart", role="coder", tool="execute_python", tried="draw the revenue as an SVG file", kind="work",
        arguments={"code": programs.CHART}, files=_revenue_table, demand=_has_chart,
    ),
    Step(
        name="host_files", role="coder", tool="execute_python", tried="read and write the host's files",
        arguments=_host_files, demand=_all_refused(8),
    ),
    _program("environment", "read the host's environment", programs.ENVIRONMENT, demand=_only_constants),
    _program("network", "cloud metadata, internet, DNS, gateway", programs.NETWORK, demand=_all_refused(6)),
    _program("fork_bomb", "fork bomb", programs.FORK_BOMB, status="limit_exceeded", code="limit.pids"),
    _program("memory_bomb", "memory bomb", programs.MEMORY_BOMB, status="out_of_memory", code="limit.memory"),
    _program("endless_output", "endless output", programs.ENDLESS_OUTPUT, status="limit_exceeded", code="limit.output"),
    _program("endless_loop", "endless loop", programs.ENDLESS_LOOP, status="timeout", code="limit.wall", demand=_began),
    _program("forged_frames", "forge an answer in the door's frames", programs.FORGED_FRAMES, status="tool_error",
             code="tool.no_result", demand=_forged_nothing),
    _program("markup", "HTML, escapes, hidden characters", programs.MARKUP, demand=_inert),
    _program("key", "print a key and a password", programs.KEY, demand=_redacted),
    _program("kill_first", "kill the cage's first process", programs.KILL_FIRST, demand=_lived),
)  # fmt: skip

STEPS: Final = ANALYST + CODER + RESEARCHER
