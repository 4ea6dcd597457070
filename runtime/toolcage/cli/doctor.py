"""`toolcage doctor`: finds the engine, really runs a cage, and says what weakens it with the command that mends it.

Exit 0 when a cage ran, 3 when none could be run.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

import typer

PLAIN_COLUMNS: Final = 100
PATCHED_ENGINE: Final = (29, 7)
Verdict = Literal["ok", "advice", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's report. `mend` is what to do, None when there is nothing."""

    check: str
    verdict: Verdict
    found: str
    mend: str | None = None


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> None:
    """Check this machine: engine, images, and a real cage."""
    findings = _examine()
    healthy = all(finding.verdict != "problem" for finding in findings)
    if as_json:
        print(json.dumps({"healthy": healthy, "findings": [asdict(finding) for finding in findings]}))
    else:
        _print(findings)
    raise typer.Exit(0 if healthy else 3)


def _examine() -> list[Finding]:
    from toolcage.cage.engine import Engine
    from toolcage.errors import EngineError

    try:
        engine = Engine.connect()
    except EngineError as error:
        return [Finding(check="engine", verdict="problem", found=str(error), mend="start Docker, or set DOCKER_HOST")]
    try:
        return [*_engine_findings(engine.version(), engine.info()), *_image_findings(engine), _run_cage()]
    finally:
        engine.close()


def _engine_findings(version: Any, info: Any) -> list[Finding]:
    """What the engine says of itself, judged. Pure."""
    number = str(version.get("Version", "unknown"))
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    findings = [Finding(check="engine", verdict="ok", found=f"version {number}, API {version.get('ApiVersion')}")]
    if _release(number) < PATCHED_ENGINE:
        found = f"{number} has known advisories fixed in 29.7, unless your distribution patched it"
        findings.append(Finding(check="engine age", verdict="advice", found=found,
                                mend="upgrade the engine to 29.7 or newer"))  # fmt: skip
    names = ("seccomp", "apparmor", "selinux", "userns", "rootless")
    has = {name: any(name in option for option in options) for name in names}
    if not has["seccomp"]:
        findings.append(Finding(check="seccomp", verdict="problem", found="the engine has no seccomp support",
                                mend="use a kernel and an engine with seccomp"))  # fmt: skip
    if not (has["userns"] or has["rootless"]):
        mend = 'set "userns-remap": "default" in /etc/docker/daemon.json, or run rootless Docker'
        findings.append(Finding(check="user namespace", verdict="advice", found="container users are host users",
                                mend=mend))  # fmt: skip
    if not (has["apparmor"] or has["selinux"]):
        found = "neither AppArmor nor SELinux confines containers"
        findings.append(Finding(check="LSM", verdict="advice", found=found,
                                mend="enable AppArmor or SELinux on the host"))  # fmt: skip
    if str(info.get("CgroupVersion", "1")) == "1":
        findings.append(Finding(check="cgroups", verdict="advice", found="cgroup v1",
                                mend="boot with systemd.unified_cgroup_hierarchy=1"))  # fmt: skip
    if "runsc" not in (info.get("Runtimes") or {}):
        findings.append(Finding(check="gVisor", verdict="advice", found="not installed: tools share the host's kernel",
                                mend="install runsc and say `runtime: runsc` in the policy's sandbox"))  # fmt: skip
    for name in ("MemoryLimit", "PidsLimit", "CpuCfsQuota"):
        if info.get(name) is False:
            findings.append(Finding(check=name, verdict="problem", found="the engine cannot enforce it",
                                    mend="enable the cgroup controllers memory, pids and cpu"))  # fmt: skip
    return findings


def _release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; (0, 0) for what is none, so that the unknown counts as old."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _image_findings(engine: Any) -> list[Finding]:
    from toolcage.cage.images import ImageLock, verify
    from toolcage.errors import ImageError
    from toolcage.state import default_state_dir

    try:
        image_id = verify(engine, ImageLock.load(default_state_dir()).resolve("python"))
    except ImageError as error:
        return [Finding(check="image python", verdict="problem", found=str(error), mend="toolcage images build")]
    return [Finding(check="image python", verdict="ok", found=image_id[:19])]


def _run_cage() -> Finding:
    from toolcage.errors import ToolcageError
    from toolcage.runtime import ONE_SHOT, Runtime
    from toolcage.shipped import shipped_dir

    try:
        with Runtime.from_files(shipped_dir("policies") / "coder.yaml", pool=ONE_SHOT) as runtime:
            result = runtime.session().call("execute_python", {"code": "6 * 7"})
    except ToolcageError as error:
        return Finding(check="cage", verdict="problem", found=str(error), mend="mend that, then run doctor again")
    if result.data == 42:
        return Finding(check="cage", verdict="ok", found=f"ran a program in {result.duration_ms:.0f} ms, cold")
    return Finding(check="cage", verdict="problem", found=f"{result.status}: {result.error}", mend=result.hint)


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=PLAIN_COLUMNS)
    table = Table("check", "verdict")
    table.add_column("found", overflow="fold")
    table.add_column("what to do", overflow="fold")
    styles = {"ok": "green", "advice": "yellow", "problem": "bold red"}
    for finding in findings:
        cells = (Text(finding.verdict, styles[finding.verdict]), Text(finding.found), Text(finding.mend or ""))
        table.add_row(finding.check, *cells)
    console.print(table)
