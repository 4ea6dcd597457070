"""`toolcage doctor`: finds the engine, really runs a cage, and says what weakens it with the command that mends it.

Exit 0 when a cage ran, 3 when none could be run. With `--resources` each resource of that file is tried for real
instead: exit 0 when each one can be used and no account may do too much, 3 otherwise. No secret is ever shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

PLAIN_COLUMNS: Final = 100
PATCHED_ENGINE: Final = (29, 7)
UPGRADE: Final = "sudo apt-get install --only-upgrade docker-ce docker-ce-cli containerd.io (29.7 or newer)"
REMAP: Final = 'put "userns-remap": "default" into /etc/docker/daemon.json, then sudo systemctl restart docker'
ROOTLESS: Final = "dockerd-rootless-setuptool.sh install, then export DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock"
APPARMOR: Final = "sudo apt-get install apparmor && sudo systemctl restart apparmor docker"
CGROUP_V2: Final = "add systemd.unified_cgroup_hierarchy=1 to GRUB_CMDLINE_LINUX, sudo update-grub && sudo reboot"
GVISOR: Final = (
    "sudo apt-get install runsc && sudo runsc install && sudo systemctl restart docker, then `runtime: runsc` in the"
    " policy's sandbox"
)
CORE_FILE: Final = "sudo sysctl -w kernel.core_pattern=core, and the same in a file of /etc/sysctl.d"
"""One command each, as far as one command does it."""
CORE_PATTERN: Final = Path("/proc/sys/kernel/core_pattern")
MOST_NAMED: Final = 5
Verdict = Literal["ok", "advice", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's report. `mend` is what to do, None when there is nothing."""

    check: str
    verdict: Verdict
    found: str
    mend: str | None = None


def doctor(
    resources: Annotated[
        Path | None, typer.Option("--resources", help="Try every resource of this file instead of the engine.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check this machine: engine, images, and a real cage; or each thing that a resources file names."""
    findings = _examine() if resources is None else _resource_findings(resources)
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
        about_host = [*_engine_findings(engine.version(), engine.info()), *_core_findings(CORE_PATTERN)]
        return [*about_host, *_image_findings(engine), _run_cage()]
    finally:
        engine.close()


def _resource_findings(path: Path) -> list[Finding]:
    """Each resource tried for real, or the file's own faults."""
    import asyncio

    from toolcage.errors import ResourceError
    from toolcage.line.resource_checks import check_resources
    from toolcage.resources import load_resources

    try:
        loaded = load_resources(path)
    except ResourceError as error:
        return [Finding(check="file", verdict="problem", found=str(error), mend="correct the lines that are named")]
    checked = asyncio.run(check_resources(loaded))
    if not checked:
        mend = "name there what tools may reach"
        return [Finding(check="file", verdict="advice", found=f"{path} names nothing", mend=mend)]
    return [Finding(check=item.resource, verdict=item.verdict, found=item.found, mend=item.mend) for item in checked]


def _engine_findings(version: Any, info: Any) -> list[Finding]:
    """What the engine says of itself, judged. Pure."""
    number = str(version.get("Version", "unknown"))
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    findings = [Finding(check="engine", verdict="ok", found=f"version {number}, API {version.get('ApiVersion')}")]
    if _release(number) < PATCHED_ENGINE:
        found = f"{number} has known advisories fixed in 29.7, unless your distribution patched it"
        findings.append(Finding(check="engine age", verdict="advice", found=found, mend=UPGRADE))
    names = ("seccomp", "apparmor", "selinux", "userns", "rootless")
    has = {name: any(name in option for option in options) for name in names}
    if not has["seccomp"]:
        findings.append(Finding(check="seccomp", verdict="problem", found="the engine has no seccomp support",
                                mend="use a kernel and an engine with seccomp"))  # fmt: skip
    if not (has["userns"] or has["rootless"]):
        found = "a cage's user number is that of a host user, though nobody else's"
        findings.append(Finding(check="userns-remap", verdict="advice", found=found, mend=REMAP))
        found = "the engine runs as root: whoever breaks out of it is root"
        findings.append(Finding(check="rootless", verdict="advice", found=found, mend=ROOTLESS))
    if not (has["apparmor"] or has["selinux"]):
        found = "neither AppArmor nor SELinux confines containers"
        findings.append(Finding(check="LSM", verdict="advice", found=found, mend=APPARMOR))
    if str(info.get("CgroupVersion", "1")) == "1":
        findings.append(Finding(check="cgroups", verdict="advice", mend=CGROUP_V2,
                                found="cgroup v1, which does not count what network buffers hold"))  # fmt: skip
    if "runsc" not in (info.get("Runtimes") or {}):
        findings.append(Finding(check="gVisor", verdict="advice", found="not installed: tools share the host's kernel",
                                mend=GVISOR))  # fmt: skip
    for name in ("MemoryLimit", "PidsLimit", "CpuCfsQuota"):
        if info.get(name) is False:
            findings.append(Finding(check=name, verdict="problem", found="the engine cannot enforce it",
                                    mend="enable the cgroup controllers memory, pids and cpu"))  # fmt: skip
    return findings


def _core_findings(pattern: Path) -> list[Finding]:
    """A handler for crashes is run by the kernel itself: no limit on cores, which cages have, keeps it from that."""
    try:
        handler = pattern.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # no Linux: its engine's kernel is elsewhere
        return []
    if not handler.startswith("|"):
        return []
    program = handler.removeprefix("|").split(" ")[0]
    found = f"each crash in a cage starts {program[:200]} on the host, as root and outside the cage's limits"
    return [Finding(check="core handler", verdict="advice", found=found, mend=CORE_FILE)]


def _release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; (0, 0) for what is none, so that the unknown counts as old."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _image_findings(engine: Any) -> list[Finding]:
    """The image that every installation needs, and each other that was built."""
    from toolcage.cage.images import ImageLock, verify
    from toolcage.errors import ImageError
    from toolcage.state import default_state_dir

    findings = []
    lock = ImageLock.load(default_state_dir())
    for name in dict.fromkeys(("python", *sorted(lock.images))):
        try:
            locked = lock.resolve(name)
            image_id = verify(engine, locked)
        except ImageError as error:
            mend = f"toolcage images build {name}"
            verdict: Verdict = "problem" if name == "python" else "advice"
            findings.append(Finding(check=f"image {name}", verdict=verdict, found=str(error), mend=mend))
            continue
        findings.append(Finding(check=f"image {name}", verdict="ok", found=image_id[:19]))
        findings += _update_findings(name, locked.packages, lock.recipe(name).suite)
    return findings


def _update_findings(name: str, packages: Mapping[str, str], suite: str, lists: Path | None = None) -> list[Finding]:
    """Security updates that the image lacks; nothing where this host has no package lists to tell by."""
    from toolcage.cage import updates

    newer = updates.waiting(packages, suite, lists or updates.APT_LISTS)
    if not newer:
        return []
    named = [f"{package} {version}" for package, version in sorted(newer.items())]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    found = f"updates wait for {len(named)} of its packages: {', '.join(named[:MOST_NAMED])}{more}"
    mend = f"toolcage images build {name} --force"
    return [Finding(check=f"updates {name}", verdict="advice", found=found, mend=mend)]


def _run_cage() -> Finding:
    from toolcage.cage.pool import ONE_SHOT
    from toolcage.errors import ToolcageError
    from toolcage.runtime import Runtime
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
