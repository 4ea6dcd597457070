"""P32 to P34 and P47 to P51: programs whose end is the evidence. Each runs in a cage of its own.

The judges are pure: from the report of the call (and, for the reset, from what the next program saw) to a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from toolcage.cage.outcome import classify
from toolcage.cage.properties.model import Finding, found
from toolcage.cage.report import CageReport, EngineState
from toolcage.cage.spec import CageSpec

OUTPUT_BYTES: Final = 1024 * 1024
SHORT_S: Final = 1.5
CPU_SLACK: Final = 1.5
"""A quota is kept over periods of a tenth of a second; a short trial can be off by part of one."""
Judge = Callable[[CageReport, EngineState | None, CageSpec], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A program, how long it may run, and who judges how it ended."""

    name: str
    code: str
    judge: Judge
    wall_s: float = 20.0


def _workspace(report: CageReport, _state: EngineState | None, _spec: CageSpec) -> Iterator[Finding]:
    names = sorted(item.name.decode("utf-8", "backslashreplace") for item in report.files)
    foreign = [name for name, item in zip(names, sorted(report.files, key=lambda item: item.name), strict=True)
               if item.content != b"mine"]  # fmt: skip
    ended = _ended_well(report)
    yield found("P32", ended or foreign, f"links and swapped folders brought nothing of elsewhere: {names[:4]} …")
    strange = sorted(set(names) & {"fifo", "socket", "link", "folder"})
    told = f"a pipe, a socket, {report.files_found} files and odd names did not hold or fool the collector"
    yield found("P34", ended or strange, f"{told}: {len(names)} were taken")


def _memory(report: CageReport, state: EngineState | None, spec: CageSpec) -> Iterator[Finding]:
    code = _code(report, state)
    told = f"{code}; {report.memory_peak_bytes} bytes at most, {spec.memory_bytes} allowed"
    yield found("P47", "" if code == "limit.memory" and report.broken is None else told, told)


def _processor(report: CageReport, _state: EngineState | None, spec: CageSpec) -> Iterator[Finding]:
    share = report.cpu_s / report.wall_s if report.wall_s else 0.0
    told = f"three busy processes used {share:.2f} processors, {spec.cpus:g} allowed"
    yield found("P48", _ended_well(report) or ("" if 0 < share <= spec.cpus * CPU_SLACK else told), told)


def _wall(report: CageReport, _state: EngineState | None, _spec: CageSpec) -> Iterator[Finding]:
    told = f"limit {report.limit}, {report.wall_s:.2f} s of {SHORT_S:g} s, door {report.broken or 'whole'}"
    yield found("P49", "" if report.limit == "wall" and report.broken is None else told, f"{told}; a daemon, a stopped"
                " process and one that ignores SIGTERM ended with it")  # fmt: skip


def _processes(report: CageReport, _state: EngineState | None, spec: CageSpec) -> Iterator[Finding]:
    told = f"{report.pids_refused} forks refused at {spec.pids} processes, door {report.broken or 'whole'}"
    held = report.pids_refused > 0 and report.broken is None
    yield found("P50", "" if held else told, f"{told}; ended in {report.wall_s:.2f} s")


def _flood(report: CageReport, _state: EngineState | None, _spec: CageSpec) -> Iterator[Finding]:
    told = f"limit {report.limit}; {len(report.stdout)} bytes kept of at least {report.written.get(1, 0)}"
    held = report.limit == "output" and len(report.stdout) <= OUTPUT_BYTES < report.written.get(1, 0)
    yield found("P51", "" if held else told, told)


TRIALS: Final = (
    Trial(name="the workspace", judge=_workspace, code="""
import os, socket, threading
open('honest', 'w').write('mine')
open('odd\\n\\x1b[31mname', 'w').write('mine')
os.symlink('/etc/passwd', 'link'); os.symlink('/etc', 'folder'); os.symlink('/proc/1', 'init')
os.mkfifo('fifo')
socket.socket(socket.AF_UNIX).bind('socket')
try:
    os.link('/etc/passwd', 'hard')
except OSError:
    pass
os.makedirs('many')
for number in range(3000):
    open(f'many/{number}', 'w').write('mine')
os.mkdir('a'); os.symlink('/etc', 'b')
def swap():
    while True:
        try:
            os.rename('a', 'c'); os.rename('b', 'a'); os.rename('a', 'b'); os.rename('c', 'a')
        except OSError:
            pass
threading.Thread(target=swap, daemon=True).start()
"""),
    Trial(name="memory", judge=_memory, code="held = []\nwhile True: held.append(bytearray(10**7))"),
    Trial(name="processors", judge=_processor, code="""
import os, time
children = []
for _ in range(3):
    if (pid := os.fork()) == 0:
        end = time.monotonic() + 1.5
        while time.monotonic() < end: pass
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
"""),
    Trial(name="time", judge=_wall, wall_s=SHORT_S, code="""
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: pass
    os._exit(0)
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
while True: pass
"""),
    Trial(name="processes", judge=_processes, code="""
import os, signal
first = os.getpid()
while True:
    try:
        os.fork()
    except OSError:
        if os.getpid() == first: break
        signal.pause()
"""),
    Trial(name="output", judge=_flood, code="import os\nwhile True: os.write(1, b'x' * 65536)"),
)  # fmt: skip

LEAVE: Final = """
import os, sys, socket, builtins
for folder in ('/tmp', '/workspace', '/dev/shm'):
    open(folder + '/left', 'w').write('left')
os.environ['LEFT'] = '1'; builtins.left = 1; os.umask(0o777)
left = socket.socket(socket.AF_UNIX); left.bind('\\0left'); left.listen()
if os.fork() == 0:
    os.setsid()
    import time; time.sleep(60)
"""
LOOK: Final = """
import os, sys, socket, builtins
found = [folder for folder in ('/tmp', '/workspace', '/dev/shm') if os.path.lexists(folder + '/left')]
found += ['environment'] * ('LEFT' in os.environ) + ['module'] * hasattr(builtins, 'left')
found += ['umask'] * (os.umask(0o022) == 0o777)
found += ['process'] * (len([name for name in os.listdir('/proc') if name.isdigit()]) > 3)
try:
    socket.socket(socket.AF_UNIX).connect('\\0left')
    found.append('socket')
except OSError:
    pass
"""


def reset(report: CageReport, where: str) -> Finding:
    """P33, from what a program saw after another one had left things behind."""
    seen = answer(report)
    return found("P33", _ended_well(report) or seen or ([] if seen == [] else ["no answer"]), where)


def answer(report: CageReport) -> Any:
    """What a program returned; None when it returned nothing readable."""
    try:
        document = json.loads(report.result)
    except (ValueError, RecursionError):
        return None
    return document.get("data") if isinstance(document, dict) else None


def _ended_well(report: CageReport) -> str:
    good = report.broken is None and report.limit is None and report.status == 0
    said = report.stderr[-200:].decode("utf-8", "replace")
    return "" if good else f"the trial did not end: {report.broken or report.limit or report.status} {said}"


def _code(report: CageReport, state: EngineState | None) -> str:
    refusal = classify(report, state, wall_s=SHORT_S)
    return "ok" if refusal is None else refusal.code
