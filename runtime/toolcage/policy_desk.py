"""What the policy desk asks of tools and roles without a running Runtime: declarations, and how a call would end.

`judge_for` takes a call through parse to screen and stops there: nothing is approved, run or recorded. Strangers' files
are described in a cage, as always, but neither accepted nor remembered.
"""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from toolcage.cage import sweep
from toolcage.cage.images import ImageLock
from toolcage.cage.live import Owner
from toolcage.cage.pool import ONE_SHOT
from toolcage.errors import ImageError, Refused
from toolcage.line.judge import judge
from toolcage.line.means import Means
from toolcage.line.parse import parse
from toolcage.line.screen import screen
from toolcage.line.session_memory import SessionMemory
from toolcage.line.validate import compile_schema
from toolcage.policy.model import Role, Situation
from toolcage.resources import Resources
from toolcage.state import default_state_dir
from toolcage.tools.registry import ALIAS_ARGUMENTS, ALIASES, ToolRegistry, builtin_tools
from toolcage.types import Status, ToolDeclaration

_LOG: Final = logging.getLogger("toolcage")


def declared_tools() -> Mapping[str, ToolDeclaration]:
    """The built-in tools' declarations by name."""
    return {name: tool.declaration for name, tool in builtin_tools().items()}


def described_tools(files: Iterable[str | os.PathLike[str]]) -> Mapping[str, ToolDeclaration]:
    """The built-in tools' declarations and those of a stranger's files, each described in a cage and not accepted.

    tools.lock is neither asked nor written: this is for looking at policies. Raises DeclarationError, EngineError,
    ImageError.
    """
    paths = tuple(files)
    if not paths:
        return declared_tools()
    state_dir, runtime_id = default_state_dir(), secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as scratch, sweep.alive(state_dir, runtime_id):
        registry = ToolRegistry(describer=lambda shipment: means.describe(shipment), lock_folder=Path(scratch))
        means = Means(
            registry=registry, resources=Resources.empty(), state_dir=state_dir, terms=ONE_SHOT,
            owner=Owner(host=sweep.host_id(state_dir), runtime=runtime_id),
            on_problem=lambda text: _LOG.info("%s", text),
        )  # fmt: skip
        try:
            found = [tool.declaration for path in paths for tool in registry.load(path)]
        finally:
            means.close()
    return {**declared_tools(), **{declaration.name: declaration for declaration in found}}


def judge_for(
    role: Role, declarations: Mapping[str, ToolDeclaration], resources: Resources | None = None
) -> Callable[..., tuple[Status, str]]:
    """A function that takes a call through parse to screen and says how it would end, running nothing.

    It takes the tool, the arguments and, if it matters, the `Situation` of the session; it answers `ok` for a call that
    would run and `approval_required` for one that would ask.
    """
    known = resources or Resources.empty()
    validators = {name: compile_schema(found) for name, found in {**declarations, **role.view}.items()}

    def answer(
        tool: str, arguments: Mapping[str, Any], situation: Situation | None = None
    ) -> tuple[Status, str]:
        try:
            call = parse({"tool": tool, "arguments": arguments}, aliases=ALIASES, alias_arguments=ALIAS_ARGUMENTS)
            authorized = judge(
                call,
                role=role,
                memory=_memory_of(situation),
                validator=lambda declaration: validators[declaration.name],
                dialect=lambda name: known.dialect(name) if name in known.databases else "sqlite",
            )
            screen(authorized)
        except Refused as caught:
            return caught.refusal.status, caught.refusal.code
        if authorized.decision.effect == "ask":
            return "approval_required", "approval.required"
        return "ok", "ok"

    return answer


_EMPTY_MEMORY: Final = SessionMemory()


def _memory_of(situation: Situation | None) -> SessionMemory:
    if situation is None:
        return _EMPTY_MEMORY
    memory = SessionMemory(situation.facts)
    for text in situation.said:
        memory.user_said(text)
    for tool, text in situation.seen.items():
        memory.saw(tool, [text], {})
    memory.used(situation.used)
    return memory


def unknown_images(role: Role, state_dir: Path) -> list[str]:
    """A line for each grant whose image has no recipe and was not built here: every call of it would be unavailable.

    Empty where nothing was built yet or images.lock cannot be trusted: variants are known by it alone, and each call
    says then what is wrong.
    """
    try:
        lock = ImageLock.load(state_dir)
    except ImageError:
        return []
    if not lock.images:
        return []
    return [
        f"{role.source}:{grant.line}: tools.{tool}: there is no image `{grant.sandbox.image}`; write one of"
        f" {', '.join(lock.names())}, or build it with `toolcage images build IMAGE --with NAME==VERSION --as VARIANT`"
        for tool, grant in role.grants.items()
        if grant.sandbox.image not in lock.names()
    ]

