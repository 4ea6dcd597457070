"""A wrong argument of the public API is one clear error at once; what the operator must see is one line of a log."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcage import PoolTerms, Runtime, RuntimeClosedError, Tool, UsageError
from toolcage.cage.engine import Engine
from toolcage.errors import EngineError

ROLE = "version: 1\nrole: {name}\ntools: {{calculate_expression: {{allow: [{{}}]}}}}\n"
SUM = {"expression": "1+1"}


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Engine:
        raise EngineError("no engine\nin this test")

    monkeypatch.setattr(Engine, "connect", refuse)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Runtime]]:
    made: list[Runtime] = []

    def make(policy: Any = None, **options: Any) -> Runtime:
        for name in ("one", "two"):
            (tmp_path / f"{name}.yaml").write_text(ROLE.format(name=name))
        options = {"state_dir": tmp_path / "state", "pool": PoolTerms(min_idle=0), **options}
        made.append(Runtime.from_files(tmp_path / "one.yaml" if policy is None else policy, **options))
        return made[-1]

    yield make
    for runtime in made:
        runtime.close()


class Half(Tool):
    """Halves a number."""

    name = "half"

    def execute(self, number: float) -> float:
        return number / 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tools": "their_tools.py"}, "pass a list"),
        ({"tools": Half()}, "pass a list"),
        ({"tools": [Half]}, r"pass an instance of it: Half\(\)"),
        ({"tools": [len]}, "decorate the function with @tool"),
        ({"tools": 5}, "pass a list"),
        ({"policy": {"role": "x"}}, "policy is of type dict; pass the path"),
        ({"policy": [1]}, "every item must be a path"),
        ({"shadow": 3}, "shadow is of type int"),
        ({"resources": {"databases": {}}}, "pass the path of resources.yaml"),
        ({"approver": True}, "pass a function that takes an ApprovalRequest"),
        ({"audit_key": "a text of sixteen characters"}, "bytes"),
    ],
)
def test_a_runtime_says_which_argument_is_wrong_and_what_to_pass(
    make: Callable[..., Runtime], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        make(**options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"files": {"a.csv": "text"}}, "map names to bytes"),
        ({"files": ["a.csv"]}, "pass a mapping"),
        ({"on_output": "print"}, "pass a function"),
        ({"cancel": True}, "pass a CancelToken"),
    ],
)
def test_a_call_says_which_argument_is_wrong(make: Callable[..., Runtime], options: dict[str, Any], told: str) -> None:
    session = make().session()
    with pytest.raises(UsageError, match=told):
        session.call("calculate_expression", SUM, **options)
    with pytest.raises(UsageError, match=told):
        asyncio.run(session.acall("calculate_expression", SUM, **options))


def test_a_session_says_that_a_role_must_be_chosen_and_how(make: Callable[..., Runtime], tmp_path: Path) -> None:
    runtime = make([tmp_path / "one.yaml", tmp_path / "two.yaml"])
    with pytest.raises(UsageError, match=r"session\(role=\.\.\.\): one of one, two"):
        runtime.session("one")
    with pytest.raises(UsageError, match="request is of type dict"):
        runtime.session({"role": "one"})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="role is of type list"):
        runtime.session(role=["one"])  # type: ignore[arg-type]
    assert runtime.session(role="two").role.name == "two"


def test_a_session_that_ended_refuses_every_call_and_an_open_one_does_not(make: Callable[..., Runtime]) -> None:
    runtime = make()
    with runtime.session() as session:
        with session:
            pass
        assert session.call("calculate_expression", SUM).status == "unavailable"
    with pytest.raises(RuntimeClosedError, match="the session ended"):
        session.call("calculate_expression", SUM)
    with pytest.raises(RuntimeClosedError, match="the session ended"):
        session.map([("calculate_expression", SUM)])
    with pytest.raises(RuntimeClosedError, match="the session ended"):
        session.delegate("one")
    with session:
        assert session.call("calculate_expression", SUM).status == "unavailable"


def test_a_runtime_is_closed_by_async_with(make: Callable[..., Runtime]) -> None:
    async def use() -> Runtime:
        async with make() as runtime:
            assert (await runtime.session().acall("calculate_expression", SUM)).status == "unavailable"
        return runtime

    with pytest.raises(RuntimeClosedError):
        asyncio.run(use()).session()


def test_what_was_unavailable_is_one_line_for_the_operator_and_not_in_the_result(
    make: Callable[..., Runtime], caplog: pytest.LogCaptureFixture
) -> None:
    session = make().session()
    denied = session.call("execute_python", {"code": "1"})
    assert (denied.status, caplog.records) == ("denied", [])
    result = session.call("calculate_expression", SUM)
    [record] = caplog.records
    assert (record.name, record.levelname) == ("toolcage", "WARNING")
    assert "no engine in this test" in record.getMessage()
    assert "no engine" not in str(result.to_dict()) + repr(result)


@pytest.mark.filterwarnings("error")
def test_a_failure_to_make_cages_ahead_is_one_line_of_the_log(
    make: Callable[..., Runtime], caplog: pytest.LogCaptureFixture
) -> None:
    runtime = make()

    def broken(_: object, *, internet: bool) -> None:
        raise ValueError("images.lock\nis odd")

    runtime._means.warm = broken  # type: ignore[method-assign, assignment]
    runtime._warm([(object(), False)])  # type: ignore[list-item]
    assert [record.getMessage() for record in caplog.records] == [
        "no cages were made ahead: ValueError: images.lock is odd"
    ]


def test_a_runtime_that_nobody_closed_ends_its_log_when_the_program_ends(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ROLE.format(name="one"))
    program = """
        import sys
        from toolcage import PoolTerms, Runtime
        runtime = Runtime.from_files("one.yaml", state_dir="state", pool=PoolTerms(min_idle=0))
        print(runtime.audit_path)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert '"runtime_end"' in (tmp_path / done.stdout.strip()).read_text().splitlines()[-1]
