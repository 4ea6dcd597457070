"""Runs whole hostile programs through the line, each in a cage of its own, and looks at the host after every batch.

The programs are the two `hostile_programs` sets of the shared corpora (RedCode-Exec); where that folder is absent the
run is skipped and says so. `contained` means, for a program: its call ended in time with a status of the program's own
(never `unavailable`), and after its batch every watch below was quiet. What is watched: every absolute path that any of
the programs names, a folder and an environment variable with canaries, the runtime's own state, listeners on the host's
loopback at every port that a program names, containers and processes of our installation, the engine's networks and our
images, and a plain call that must still be answered. It proves nothing about programs that are not in the sets.

Many Python programs want a package that the `python` image does not have and end at their first import, which is weak
evidence: `--image data` and `--image web` run the Python set again where more of them get on, and the table says for
each class how many ended for lack of a package.

    python -m benchmarks.hostile [--corpora FOLDER] [--only python|bash] [--image IMAGE] [--limit N]
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import secrets
import selectors
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import docker

from benchmarks.machine import machine
from toolcage import PoolTerms, Runtime, Session, ToolResult
from toolcage.audit.report import verify
from toolcage.state import default_state_dir

CORPORA: Final = Path(__file__).parents[1].parent / "shared" / "corpora"
RESULTS: Final = Path(__file__).parent / "results"
WALL_S: Final = 3.0
LATEST_S: Final = WALL_S + 5.0
"""A call that took longer than this from its cage's start was not ended in time. Queueing is not counted."""
BATCH: Final = 24
AT_ONCE: Final = 4
ROLE: Final = f"""
version: 1
role: hostile
description: Runs whatever it is given.
tools:
  execute_python:
    allow: [{{}}]
    sandbox: {{image: IMAGE, wall: {WALL_S:g}s, memory: 256MiB, pids: 64, tmp: 64MiB, isolation: container}}
  run_shell:
    allow: [{{}}]
    sandbox: {{wall: {WALL_S:g}s, memory: 256MiB, pids: 64, tmp: 64MiB, isolation: container}}
"""
TOOLS: Final = {"python": ("execute_python", "code"), "bash": ("run_shell", "command")}
CLASSES: Final = {
    1: "send a file's content out", 2: "download and store a program", 3: "open a harmful page",
    4: "copy a sensitive file", 5: "list a system folder", 6: "write an encoded program to a system folder",
    7: "read a sensitive file", 8: "delete a system file", 9: "poison the shell's aliases", 10: "reverse shell",
    11: "spy on the machine", 12: "biased decision", 13: "read through a path that climbs", 14: "evaluate input",
    15: "loose check of an address", 16: "hard-coded or loose credentials", 17: "work with raised privileges",
    18: "kill other processes", 19: "predictable random key", 20: "weak hash of a password",
    21: "flood the network with amplified data", 22: "missing default case", 23: "missing check of authority",
    24: "deserialise untrusted data", 25: "duplicate keys", 26: "open a page at an odd address", 27: "leak memory",
}  # fmt: skip
VOLATILE: Final = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/log", "/var/run", "/var/lib/docker")
_PATH: Final = re.compile(r"(?<![\w.:/])(/(?:[A-Za-z0-9_.@+-]+/)*[A-Za-z0-9_.@+-]+)")
_CLIMB: Final = re.compile(r"\.\./([A-Za-z0-9_@+-][A-Za-z0-9_.@+/-]*)")
_PORT: Final = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0)\D{1,12}(\d{2,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    id: str
    language: str
    number: int
    text: str


@dataclass(slots=True, kw_only=True)
class Ran:
    """One program's end; `alarms` are what its batch's watches saw."""

    program: Program
    status: str
    code: str
    wall_s: float
    lacked: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def contained(self) -> bool:
        return not self.problems


def programs_in(folder: Path, only: str | None, limit: int | None) -> list[Program]:
    """The programs of both sets in their order, up to `limit` of each."""
    found: list[Program] = []
    for language in TOOLS:
        if only in (None, language):
            lines = (folder / f"hostile_programs_{language}.jsonl").read_text(encoding="utf-8").splitlines()[:limit]
            for entry in map(json.loads, lines):
                number = int(entry["index"].split("_")[0])
                found.append(Program(id=entry["id"], language=language, number=number, text=entry["text"]))
    return found


# --- what is watched -------------------------------------------------------------------------------------------------


class Files:
    """Paths of the host, as they were. A file that others write all the time is watched for its existence only."""

    def __init__(self, paths: set[str]) -> None:
        self._before = {path: _look(path) for path in sorted(paths)}

    def __len__(self) -> int:
        return len(self._before)

    def changed(self) -> list[str]:
        return [f"host file changed: {path}" for path, was in self._before.items() if _look(path) != was]


def named_paths(programs: Sequence[Program]) -> set[str]:
    """Every absolute path that stands in a program, those that climb included as what they climb to."""
    found = {match for program in programs for match in _PATH.findall(program.text)}
    climbed = {f"/{match}" for program in programs for match in _CLIMB.findall(program.text)}
    return {os.path.normpath(path) for path in found | climbed} | {
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hosts",
        os.path.expanduser("~/.bashrc"),
    }


def _look(path: str) -> tuple[object, ...]:
    try:
        found = os.lstat(path)
        if path.startswith(VOLATILE) or not os.path.isfile(path) or os.path.islink(path):
            return (True, found.st_mode, found.st_uid, found.st_gid)
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return (False,)
    return (True, found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, digest)


class Listeners:
    """TCP and UDP listeners on the host's loopback; anything that reaches one is an alarm."""

    def __init__(self, ports: set[int]) -> None:
        self._selector = selectors.DefaultSelector()
        self._reached: list[str] = []
        self.ports: list[int] = []
        for port in sorted({0, *ports}):
            self._listen(port)
        self._ending = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _listen(self, port: int) -> None:
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            tcp.bind(("127.0.0.1", port))
            udp.bind(("127.0.0.1", tcp.getsockname()[1]))
        except OSError:  # somebody else serves it
            tcp.close()
            udp.close()
            return
        tcp.listen(16)
        self.ports.append(tcp.getsockname()[1])
        for item in (tcp, udp):
            item.setblocking(False)
            self._selector.register(item, selectors.EVENT_READ)

    def _watch(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select(0.2):
                assert isinstance(key.fileobj, socket.socket)
                name = key.fileobj.getsockname()[1]
                try:
                    if key.fileobj.type == socket.SOCK_STREAM:
                        key.fileobj.accept()[0].close()
                    else:
                        key.fileobj.recv(1)
                except OSError:
                    continue
                self._reached.append(f"host listener reached: port {name}")

    def reached(self) -> list[str]:
        found, self._reached = self._reached, []
        return found

    def works(self) -> bool:
        """That the watch itself is awake: a connection of our own is noticed."""
        socket.create_connection(("127.0.0.1", self.ports[0]), 5).close()
        end = time.monotonic() + 5
        while not self._reached and time.monotonic() < end:
            time.sleep(0.02)
        return bool(self.reached())

    def close(self) -> None:
        self._ending = True
        self._thread.join(5)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()


class Containers:
    """The containers of one installation: which ever were, which are, and whose processes are left."""

    def __init__(self, client: docker.DockerClient, host: str) -> None:
        self._client = client
        self._label = f"toolcage.host={host}"
        self._networks = self._network_ids()
        self.seen: set[str] = set()
        self._events = client.api.events(decode=True, filters={"label": [self._label], "event": "create"})
        threading.Thread(target=self._follow, daemon=True).start()
        self.here()

    def _follow(self) -> None:
        for event in self._events:
            self.seen.add(event["id"])

    def _network_ids(self) -> set[str]:
        return {str(item.id) for item in self._client.networks.list()}

    def here(self) -> dict[str, str]:
        """Id → state."""
        found = self._client.api.containers(all=True, filters={"label": [self._label]})
        self.seen |= {item["Id"] for item in found}
        return {item["Id"]: item["State"] for item in found}

    def close(self) -> None:
        self._events.close()

    def left(self, allowed: int, within_s: float = 20.0) -> list[str]:
        """Containers beyond the `allowed` idle ones once removal had its time, and processes of any that is gone."""
        end = time.monotonic() + within_s
        while len(here := self.here()) > allowed and time.monotonic() < end:
            time.sleep(0.1)
        alarms = [f"container left: {name[:12]}" for name in list(here)[allowed:]]
        gone = set(self.seen) - here.keys()
        alarms += [f"process left: {pid} of {name[:12]}" for pid, name in caged_processes() if name in gone]
        if self._network_ids() != self._networks:
            alarms.append("the engine's networks changed")
        return alarms


def caged_processes() -> Iterator[tuple[int, str]]:
    """(pid, container id) of each process on this machine that is in a container's cgroup."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cgroup").read_text(encoding="ascii")
        except OSError:
            continue
        for name in set(re.findall(r"[0-9a-f]{64}", text)):
            yield int(folder.name), name


class Host:
    """Every watch together, with the canaries that no output may show."""

    def __init__(
        self, folder: Path, programs: Sequence[Program], runtime: Runtime, client: docker.DockerClient
    ) -> None:
        self.canary = f"canary-{secrets.token_hex(16)}"
        os.environ["TOOLCAGE_HOSTILE_CANARY"] = self.canary
        canaries = folder / "canaries"
        canaries.mkdir()
        for number in range(4):
            (canaries / f"{number}.txt").write_text(f"{self.canary}\n", encoding="ascii")
        state = folder / "state"
        kept = {str(path) for path in (*canaries.iterdir(), state / "images.lock", state / "host-id")}
        self.files = Files(named_paths(programs) | kept)
        ports = {int(port) for program in programs for port in _PORT.findall(program.text)}
        self.listeners = Listeners({port for port in ports if 0 < port < 65536})
        if not self.listeners.works():
            raise RuntimeError("the listeners on the host's loopback do not notice a connection")
        self.containers = Containers(client, (state / "host-id").read_text(encoding="ascii"))
        self._runtime = runtime
        self._state = state

    def alarms(self, session: Session) -> list[str]:
        """What is not as it was, after a batch."""
        stats = self._runtime.stats()
        found = [] if not stats["running"] else [f"{stats['running']} cages still taken"]
        found += self.files.changed() + self.listeners.reached()
        token = secrets.token_hex(8)
        for tool, argument, text in (("execute_python", "code", f"print('{token}')"),
                                     ("run_shell", "command", f"echo {token}")):  # fmt: skip
            answer = session.call(tool, {argument: text})
            if answer.stdout != f"{token}\n":
                found.append(f"a plain {tool} was not answered: {answer.status} {answer.code}")
        stats = self._runtime.stats()
        found += self.containers.left(allowed=stats["idle"] + stats["coming"] + 4)
        report = verify(self._state / "audit")
        return found + [f"audit: {item.problem}" for item in report.errors]


# --- the run ---------------------------------------------------------------------------------------------------------


def run_one(session: Session, program: Program, canary: str) -> Ran:
    """One program through the line, again while the pool is busy."""
    tool, argument = TOOLS[program.language]
    while True:
        result = session.call(tool, {argument: program.text})
        if result.status != "busy":
            break
    ran = Ran(program=program, status=result.status, code=result.code, wall_s=result.usage.wall_s)
    ran.lacked = "ModuleNotFoundError: No module named" in str(result.stderr)
    if result.status in ("unavailable", "cancelled"):
        ran.problems.append(f"the sandbox broke: {result.status} {result.code}")
    if ran.wall_s > LATEST_S:
        ran.problems.append(f"ended after {ran.wall_s:.1f} s")
    if canary in _everything(result):
        ran.problems.append("a canary of the host is in the output")
    return ran


def _everything(result: ToolResult) -> str:
    files = "".join(item.content.decode("utf-8", "replace") for item in result.artifacts)
    return f"{result.stdout}{result.stderr}{result.data}{result.error}{files}"


def control(session: Session, ports: Sequence[int]) -> list[str]:
    """A program of our own that really tries the listeners: what the sets' programs may only have got wrong."""
    code = (
        "import socket, subprocess\nreached = []\n"
        f"for port in {list(ports)[:50]}:\n"
        "    for address in ('127.0.0.1', '172.17.0.1', '10.0.0.1', '169.254.169.254'):\n"
        "        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
        "            try:\n                with socket.socket(socket.AF_INET, kind) as item:\n"
        "                    item.settimeout(0.01); item.connect((address, port)); item.send(b'x')\n"
        "                    reached.append(port)\n"
        "            except OSError: pass\n'tried'"
    )
    answer = session.call("execute_python", {"code": code})
    return [] if answer.data == "tried" else [f"the control did not run: {answer.status} {answer.error}"]


def run_all(programs: Sequence[Program], image: str = "python", report: Any = print) -> dict[str, Any]:
    """Every program, in batches; the document that is written to the results."""
    client = docker.from_env()
    with tempfile.TemporaryDirectory(prefix="toolcage-hostile-") as name:
        folder = Path(name)
        (folder / "state").mkdir(mode=0o700)
        shutil.copy(default_state_dir() / "images.lock", folder / "state" / "images.lock")
        (folder / "role.yaml").write_text(ROLE.replace("IMAGE", image), encoding="utf-8")
        terms = PoolTerms(min_idle=2, max_cages=8, max_waiting=64, max_wait_s=60)
        runtime = Runtime.from_files(folder / "role.yaml", state_dir=folder / "state", pool=terms)
        with runtime:
            session = runtime.session()
            session.call("execute_python", {"code": "1"})
            host = Host(folder, programs, runtime, client)
            started = time.monotonic()
            alarms = control(session, host.listeners.ports) + host.alarms(session)
            ran = _batches(session, host, programs, report)
            seconds = time.monotonic() - started
        alarms += host.containers.left(allowed=0) + host.files.changed() + host.listeners.reached()
        host.listeners.close()
        host.containers.close()
        audit = verify(folder / "state" / "audit")
        alarms += [f"audit: {item.problem}" for item in (*audit.errors, *audit.warnings)]
        watched = {"paths of the host": len(host.files), "ports on loopback": len(host.listeners.ports),
                   "containers made": len(host.containers.seen), "audit records": audit.records}  # fmt: skip
    client.close()
    return {"image": image, **_document(ran, alarms, seconds, watched)}


def _batches(session: Session, host: Host, programs: Sequence[Program], report: Any) -> list[Ran]:
    done: list[Ran] = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        for first in range(0, len(programs), BATCH):
            batch = programs[first : first + BATCH]
            ran = list(threads.map(lambda program: run_one(session, program, host.canary), batch))
            seen = host.alarms(session)
            for item in ran:
                item.problems += seen
            done += ran
            report(f"{len(done)} of {len(programs)}, contained {sum(item.contained for item in done)}", flush=True)
    return done


def _document(ran: Sequence[Ran], alarms: Sequence[str], seconds: float, watched: Mapping[str, int]) -> dict[str, Any]:
    classes: dict[tuple[str, int], list[Ran]] = collections.defaultdict(list)
    for item in ran:
        classes[item.program.language, item.program.number].append(item)
    return {
        "measured": "hostile", "on": machine(), "wall_limit_s": WALL_S, "seconds": round(seconds, 1),
        "programs": len(ran), "contained": sum(item.contained for item in ran), "watched": dict(watched),
        "lacked a package": sum(item.lacked for item in ran),
        "alarms outside any batch": list(alarms),
        "statuses": dict(collections.Counter(item.status for item in ran).most_common()),
        "codes": dict(collections.Counter(item.code for item in ran).most_common()),
        "classes": [_class(language, number, items) for (language, number), items in sorted(classes.items())],
        "not contained": [
            {"id": item.program.id, "status": item.status, "problems": item.problems}
            for item in ran if not item.contained
        ],
    }  # fmt: skip


def _class(language: str, number: int, items: Sequence[Ran]) -> dict[str, Any]:
    walls = [item.wall_s for item in items]
    return {
        "language": language, "class": number, "about": CLASSES.get(number, ""), "programs": len(items),
        "contained": sum(item.contained for item in items), "lacked a package": sum(item.lacked for item in items),
        "statuses": dict(collections.Counter(item.status for item in items).most_common()),
        "wall_ms": {"p50": round(statistics.median(walls) * 1000), "max": round(max(walls) * 1000)},
    }  # fmt: skip


def as_markdown(document: Mapping[str, Any]) -> str:
    """The table by class, for people."""
    watched = ", ".join(f"{count} {name}" for name, count in document["watched"].items())
    lines = [
        f"# Hostile programs: Python in the image `{document['image']}`", "",
        f"{document['programs']} programs of RedCode-Exec (data CC BY 4.0) through the whole line, each in a"
        f" container of its own with {document['wall_limit_s']:g} s of wall time: **{document['contained']}"
        f" contained**. {document['seconds']:g} s in all, on {document['on']['date']}. Made by `make hostile`; what"
        " `contained` means and what was watched is in the head of `benchmarks/hostile.py`.", "",
        f"Watched after every batch of {BATCH}: {watched}.", "",
        "`ok` and `tool_error` are the program's own end: it printed something, or was refused by its cage and failed."
        " Neither says that it did harm. "
        f"{document['lacked a package']} ended because the image lacks a package that they import.", "",
        "| language | class | programs | contained | ends | lacked a package | wall p50 | max |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in document["classes"]:
        ends = ", ".join(f"{status} {count}" for status, count in row["statuses"].items())
        lines.append(
            f"| {row['language']} | {row['class']} {row['about']} | {row['programs']} | {row['contained']} | {ends}"
            f" | {row['lacked a package']} | {row['wall_ms']['p50']} ms | {row['wall_ms']['max']} ms |"
        )
    for item in document["not contained"]:
        lines += ["", f"Not contained: {item['id']} ({item['status']}): {'; '.join(item['problems'])}"]
    return "\n".join(lines) + "\n"


class _Arguments(argparse.Namespace):
    corpora: Path
    only: str | None
    image: str
    limit: int | None

    @classmethod
    def parse(cls) -> Self:
        parser = argparse.ArgumentParser(description="hostile programs through the line")
        parser.add_argument("--corpora", type=Path, default=CORPORA)
        parser.add_argument("--only", choices=list(TOOLS))
        parser.add_argument("--image", default="python", help="for the Python programs; results of others stand apart")
        parser.add_argument("--limit", type=int)
        return parser.parse_args(namespace=cls())


def main() -> None:
    arguments = _Arguments.parse()
    if not (arguments.corpora / "hostile_programs_python.jsonl").exists():
        print(f"skipped: there are no hostile programs at {arguments.corpora} (they are not part of this project)")
        return
    only = arguments.only if arguments.image == "python" else "python"
    document = run_all(programs_in(arguments.corpora, only, arguments.limit), arguments.image)
    text = as_markdown(document)
    print(text)
    if arguments.only is None and arguments.limit is None:
        RESULTS.mkdir(exist_ok=True)
        name = "hostile" if arguments.image == "python" else f"hostile-{arguments.image}"
        (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"{document['contained']} of {document['programs']} contained in {document['seconds']:g} s")
    for alarm in document["alarms outside any batch"]:
        print(f"alarm: {alarm}")
    if document["contained"] != document["programs"] or document["alarms outside any batch"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
