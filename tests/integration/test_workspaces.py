"""The file tools on workspaces, through the whole line in real cages: a host folder, and the session's own."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from toolcage import CancelToken, PoolTerms, ResourceError, Runtime
from toolcage.audit.record import Closing
from toolcage.errors import AuditError, PolicyError
from toolcage.line.workspace import Exchange

pytestmark = pytest.mark.docker

CLERK = """
version: 1
role: clerk
tools:
  read_file:
    resources: {workspace: [docs]}
    allow: [{}]
    deny:
      - path: {const: private.txt}
  write_file:
    resources: {workspace: [docs]}
    allow:
      - path: {paths: {under: [out]}}
  list_files:
    resources: {workspace: [docs]}
    allow: [{}]
"""
OWN = """
version: 1
role: own
tools:
  read_file: {resources: {workspace: [session]}, allow: [{}]}
  write_file: {resources: {workspace: [session]}, allow: [{path: {}}]}
  list_files: {resources: {workspace: [session]}, allow: [{}]}
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "out").mkdir(parents=True)
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


def resources(installation: Any, docs: Path, terms: str = "access: rw, quota: 2MiB, files: 20") -> Path:
    path: Path = installation.folder / "resources.yaml"
    path.write_text(f"version: 1\nworkspaces:\n  docs: {{folder: {docs}, {terms}}}\n")
    return path


@pytest.fixture
def clerk(installation: Any, docs: Path) -> Any:
    return installation.session(CLERK, resources=resources(installation, docs), pool=PoolTerms(min_idle=1))


def call(session: Any, tool: str, /, **arguments: Any) -> Any:
    return session.call(tool, arguments)


def test_a_file_is_written_read_appended_to_and_listed(clerk: Any, docs: Path) -> None:
    made = call(clerk, "write_file", path="out/a/b.txt", content="grüße\n")
    assert made.status == "ok", made
    assert made.data == {"path": "out/a/b.txt", "size": 8, "created": True}
    assert made.artifacts == ()
    more = call(clerk, "write_file", path="out/./a//b.txt", content="end", mode="append")
    assert more.data == {"path": "out/a/b.txt", "size": 11, "created": False}
    assert (docs / "out/a/b.txt").read_text() == "grüße\nend"
    read = call(clerk, "read_file", path="out/a/b.txt")
    assert (read.data["text"], read.data["total_lines"]) == ("grüße\nend", 2)
    assert "private" in read.labels
    listed = call(clerk, "list_files", pattern="**/*.txt")
    assert [entry["path"] for entry in listed.data["entries"]] == ["link.txt", "notes.txt", "out/a/b.txt"]
    assert listed.data["complete"]


def test_long_files_and_long_listings_come_in_pages(clerk: Any, docs: Path) -> None:
    (docs / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 1001)) + "x" * 10_000)
    page = call(clerk, "read_file", path="long.txt", start_line=990, limit=5)
    assert page.data["text"] == "".join(f"line {number}\n" for number in range(990, 995))
    assert page.data["next_start_line"] == 995
    last = call(clerk, "read_file", path="long.txt", start_line=995)
    assert (last.data["next_start_line"], last.data["cut_lines"]) == (None, 1)
    for number in range(5):
        (docs / "out" / f"{number}").touch()
    first = call(clerk, "list_files", path="out", limit=3)
    rest = call(clerk, "list_files", path="out", limit=3, after=first.data["next_after"])
    names = [entry["path"] for page in (first, rest) for entry in page.data["entries"]]
    assert (names, rest.data["next_after"]) == ([f"out/{number}" for number in range(5)], None)


def test_what_is_no_text_says_so_and_how_to_go_on(clerk: Any, docs: Path) -> None:
    (docs / "binary").write_bytes(b"\x00\x01")
    (docs / "western").write_bytes("grüße".encode("latin-1"))
    for path, code in (("binary", "content.binary"), ("western", "content.encoding")):
        result = call(clerk, "read_file", path=path)
        assert (result.status, result.code) == ("tool_error", code), result
        assert result.hint
    assert call(clerk, "read_file", path="western", encoding="latin-1").data["text"] == "grüße"


OUTSIDE = {
    "link.txt": "workspace.link",
    "../secret.txt": "path.leaves_root",
    "out/../../secret.txt": "path.leaves_root",
    "/etc/passwd": "path.absolute",
    "%2e%2e/secret.txt": "path.leaves_root",
    "..／secret.txt": "path.leaves_root",
    "‥/secret.txt": "path.leaves_root",
    "notes.txt\x00": "text.nul",
    "file:///etc/passwd": "path.scheme",
    "~root/x": "path.home",
    "C:/x": "path.drive",
    "notes.txt::$DATA": "path.stream",
    "/proc/self/fd/0": "path.absolute",
}


@pytest.mark.parametrize("path", OUTSIDE)
def test_what_lies_outside_is_not_read(clerk: Any, path: str) -> None:
    result = call(clerk, "read_file", path=path)
    assert (result.status, result.code) == ("blocked", OUTSIDE[path]), result
    assert "secret" not in result.to_text().replace("secret.txt", "")


@pytest.mark.parametrize("path", [*OUTSIDE, "notes.txt", "out", "out/../notes.txt"])
def test_what_lies_outside_the_granted_folder_is_not_written(clerk: Any, docs: Path, path: str) -> None:
    result = call(clerk, "write_file", path=path, content="x")
    assert result.status in ("denied", "blocked", "tool_error"), result
    assert (docs / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert (docs.parent / "secret.txt").read_text() == "secret"
    assert sorted(entry.name for entry in docs.iterdir()) == ["link.txt", "notes.txt", "out"]
    assert list((docs / "out").iterdir()) == []


def test_a_workspace_that_is_not_granted_is_denied(clerk: Any) -> None:
    result = call(clerk, "read_file", path="notes.txt", workspace="session")
    assert (result.status, result.code) == ("denied", "resource.not_granted")


def test_a_file_that_does_not_fit_the_quota_is_not_written(clerk: Any, docs: Path) -> None:
    (docs / "filler").write_bytes(b"x" * (2 * 1024 * 1024 - 100))
    assert call(clerk, "write_file", path="out/small", content="x" * 50).status == "ok"
    result = call(clerk, "write_file", path="out/large", content="x" * 51)
    assert (result.status, result.code) == ("limit_exceeded", "workspace.quota"), result
    assert not (docs / "out" / "large").exists()


def test_a_file_that_changed_while_the_call_ran_is_a_conflict_for_append_alone(
    clerk: Any, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Exchange.fetch

    def fetch(self: Exchange, authorized: Any) -> None:
        real(self, authorized)
        (docs / "out" / "log").write_text("theirs")

    (docs / "out" / "log").write_text("before")
    monkeypatch.setattr(Exchange, "fetch", fetch)
    result = call(clerk, "write_file", path="out/log", content="mine", mode="append")
    assert (result.status, result.code, result.retryable) == ("tool_error", "workspace.conflict", True)
    assert (docs / "out" / "log").read_text() == "theirs"
    assert call(clerk, "write_file", path="out/log", content="mine").status == "ok"
    assert (docs / "out" / "log").read_text() == "mine"


def test_calls_at_once_each_write_their_file_whole(clerk: Any, docs: Path) -> None:
    calls = [("write_file", {"path": "out/one", "content": str(number) * 10_000}) for number in range(6)]
    assert {result.status for result in clerk.map(calls)} == {"ok"}
    content = (docs / "out" / "one").read_text()
    assert len(content) == 10_000
    assert len(set(content)) == 1


def left_alone(docs: Path) -> bool:
    return list((docs / "out").iterdir()) == []


def test_nothing_is_written_when_the_record_cannot_be_kept(
    clerk: Any, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = clerk._runtime._log
    real = log.append

    def append(record: Any) -> Any:
        if isinstance(record, Closing):
            raise AuditError("the disk is full")
        return real(record)

    monkeypatch.setattr(type(log), "append", lambda self, record: append(record))
    result = call(clerk, "write_file", path="out/x/y", content="x")
    assert (result.status, result.code) == ("unavailable", "audit.unwritable")
    assert left_alone(docs)


def test_nothing_is_written_when_the_call_is_cancelled_at_its_end(
    clerk: Any, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, token = Exchange.stage, CancelToken()
    waiting = threading.Event()

    def stage(self: Exchange, files: Any) -> Any:
        token.cancel()
        waiting.wait(2)
        return real(self, files)

    monkeypatch.setattr(Exchange, "stage", stage)
    result = clerk.call("write_file", {"path": "out/x/y", "content": "x"}, cancel=token)
    assert result.status == "cancelled"
    assert left_alone(docs)
    monkeypatch.undo()
    assert call(clerk, "write_file", path="out/z", content="x").status == "ok"


def test_a_tool_that_ends_badly_writes_nothing(installation: Any, docs: Path) -> None:
    files = {"path": "write"}
    tool = (
        "from toolcage import tool\n"
        "@tool('spoil_file', kinds={'path': 'path'}, resources={'workspace': 'workspace'}, effects=['writes'],\n"
        f"      file_uses={files!r}, description='Leaves a file and fails, or leaves others.',\n"
        "      parameters={'type': 'object', 'properties': {'path': {'type': 'string'}, 'how': {'type': 'string'},\n"
        "                  'workspace': {'type': 'string'}}, 'required': ['path', 'how'],\n"
        "                  'additionalProperties': False})\n"
        "def spoil_file(path: str, how: str, workspace: str = '') -> str:\n"
        "    import os\n"
        "    os.makedirs('out', exist_ok=True)\n"
        "    if how == 'fail':\n"
        "        open(path, 'w').write('half')\n"
        "        raise ValueError('no')\n"
        "    if how == 'link':\n"
        "        os.symlink('/etc/passwd', path)\n"
        "    if how == 'other':\n"
        "        open('out/other', 'w').write('x')\n"
        "    if how == 'both':\n"
        "        open(path, 'w').write('mine')\n"
        "        open('out/other', 'w').write('x')\n"
        "    return 'done'\n"
    )
    (installation.folder / "spoiling.py").write_text(tool)
    import importlib.util
    import sys

    spec = importlib.util.spec_from_file_location("spoiling", installation.folder / "spoiling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["spoiling"] = module
    spec.loader.exec_module(module)
    policy = "version: 1\nrole: r\ntools: {spoil_file: {resources: {workspace: [docs]}, allow: [{path: {}}]}}\n"
    session = installation.session(policy, resources=resources(installation, docs), tools=[module.spoil_file])
    failed = call(session, "spoil_file", path="out/x", how="fail")
    assert (failed.status, failed.code) == ("tool_error", "tool.exception")
    for how in ("link", "other", "nothing"):
        result = call(session, "spoil_file", path="out/x", how=how)
        assert (result.status, result.code) == ("tool_error", "workspace.no_file"), result
    assert left_alone(docs)
    both = call(session, "spoil_file", path="out/x", how="both")
    assert both.status == "ok", both
    assert [item.name for item in both.artifacts] == ["out/other"]
    assert [entry.name for entry in (docs / "out").iterdir()] == ["x"]
    del sys.modules["spoiling"]


def test_a_read_only_workspace_and_a_tool_that_writes_do_not_start(installation: Any, docs: Path) -> None:
    with pytest.raises(ResourceError, match="write_file: it writes, and the workspace docs is `ro`"):
        installation.session(CLERK, resources=resources(installation, docs, "access: ro"))
    reading = CLERK.split("  write_file")[0]
    session = installation.session(reading, resources=resources(installation, docs, "access: ro"))
    assert call(session, "read_file", path="notes.txt").data["lines"] == 3


def test_a_grant_without_a_workspace_does_not_load(installation: Any) -> None:
    with pytest.raises(PolicyError, match="no workspace is granted"):
        installation.session("version: 1\nrole: r\ntools: {read_file: {allow: [{}]}}\n")


def test_a_session_has_a_workspace_of_its_own_on_no_disk(installation: Any) -> None:
    runtime: Runtime = installation.runtime(OWN, pool=PoolTerms(min_idle=1))
    before = set(installation.folder.rglob("*"))
    with runtime.session() as one, runtime.session() as two:
        assert call(one, "write_file", path="a/b.txt", content="mine").status == "ok"
        assert call(one, "read_file", path="a/b.txt").data["text"] == "mine"
        assert [entry["path"] for entry in call(one, "list_files").data["entries"]] == ["a"]
        assert call(two, "read_file", path="a/b.txt").code == "workspace.not_found"
        name = one.id
    made = set(installation.folder.rglob("*")) - before
    assert not any(b'"mine"' in path.read_bytes() and "audit" not in path.parts for path in made if path.is_file())
    assert runtime._means.workspaces.store("session", name).read(("a", "b.txt")) is None


def test_the_cage_sees_the_one_file_and_no_folder_of_the_host(installation: Any, docs: Path) -> None:
    (docs / "other.txt").write_text("not sent")
    session = installation.session(CLERK, resources=resources(installation, docs))
    assert call(session, "read_file", path="notes.txt").status == "ok"
    result = call(session, "read_file", path="/workspace/notes.txt")
    assert result.data["text"].startswith("one")
    assert not any("docs" in str(item) for container in installation.containers() for item in container.attrs["Mounts"])
    assert os.listdir(docs / "out") == []


def test_a_file_that_cannot_be_put_in_place_any_more_is_no_success_and_is_noted(
    clerk: Any, docs: Path, installation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Exchange.commit

    def commit(self: Exchange) -> Any:
        (docs / "out").rename(docs / "moved")
        return real(self)

    monkeypatch.setattr(Exchange, "commit", commit)
    result = call(clerk, "write_file", path="out/x", content="x")
    assert (result.status, result.code) == ("tool_error", "workspace.not_found"), result
    assert list((docs / "moved").iterdir()) == []
    clerk._runtime.close()
    notes = [str(record.get("note")) for record in installation.records()]
    assert any("its file was not written: workspace.not_found" in note for note in notes)
