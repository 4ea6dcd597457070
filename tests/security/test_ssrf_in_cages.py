"""URLs that lead servers astray, told to every portal of a real cage: no private or metadata address is reached.

The runtime works in a network where every address is one machine that notes what is connected, and every
name of the list is at a private address. The list is public (`../shared/corpora`, or TOOLCAGE_CORPORA; skipped where it
is not there), the refusals are of kinds: another place than the granted one, and a granted name at a private address.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Installation
from servers.everywhere import place_of
from toolcage.errors import ResourceError
from toolcage.policy.places import egress_target
from toolcage.resources import load_resources

CORPUS = Path(os.environ.get("TOOLCAGE_CORPORA", Path(__file__).resolve().parents[3] / "shared" / "corpora"))
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="no ../shared/corpora; set TOOLCAGE_CORPORA"),
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"),
        reason="a network of its own takes root, unshare and ip",
    ),
]
PUBLIC = "93.184.216.34"
PRIVATE = ("169.254.169.254", "127.0.0.1", "10.0.0.5", "192.168.1.1", "100.100.100.200", "fd00:ec2::254", "::1",
           "::ffff:169.254.169.254", "0.0.0.0", "172.17.0.1")  # fmt: skip
NAME = re.compile(r"(?=[a-z0-9.-]*[a-z])[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
POLICY = """
version: 1
role: tester
tools:
  try_urls:
    resources: {{endpoint: [api]}}
    allow: [{{}}]
    egress: ["granted.example.org:443"]
    sandbox: {{wall: 120s}}
    output: {{max_bytes: 8MiB}}
  try_names:
    resources: {{endpoint: [api]}}
    allow: [{{}}]
    egress: ["granted.example.org:443", {names}]
    sandbox: {{wall: 120s}}
    output: {{max_bytes: 8MiB}}
  call_api:
    resources: {{endpoint: [{endpoints}]}}
    allow: [{{}}]
"""
PORTS = (21, 22, 25, 69, 70, 80, 389, 443, 2375, 2628, 3306, 5000, 6379, 9001, 10050, 11111, 11211)


def urls() -> list[str]:
    lines = (CORPUS / "ssrf_urls.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines if line.strip()]


def names_in(listed: list[str]) -> list[str]:
    """The plain host names among the hosts, with their ports."""
    places = dict.fromkeys(place_of(url).lower() for url in listed)
    return [place for place in places if NAME.fullmatch(place.rpartition(":")[0])]


def granted_by_name(folder: Path, places: list[str]) -> tuple[list[str], dict[str, str]]:
    """What an operator may grant: as `egress`, and as the url of an endpoint."""
    egress, endpoints = [], {}
    for number, place in enumerate(places):
        try:
            egress_target(place)
            egress.append(place)
        except ValueError:
            pass
        text = f"version: 1\nendpoints:\n  n{number}: {{url: \"https://{place}/v1\"}}\n"
        (folder / "one.yaml").write_text(text)
        try:
            load_resources(folder / "one.yaml")
            endpoints[f"n{number}"] = place
        except ResourceError:
            pass
    return egress, endpoints


def run(installation: Installation, every: int) -> dict[str, Any]:
    """One runtime that is told everything; of `call_api`, which takes a cage for each, every so manieth."""
    folder, listed = installation.folder, urls()
    places = names_in(listed)
    egress, endpoints = granted_by_name(folder, places)
    assert len(egress) > 5
    assert len(endpoints) > 5
    hosts = [f"{PRIVATE[at % len(PRIVATE)]} {place.rpartition(':')[0]}" for at, place in enumerate(places)]
    (folder / "hosts").write_text("\n".join([*hosts, f"{PUBLIC} granted.example.org", ""]))
    written = [f"  {name}: {{url: \"https://{place}/v1\"}}" for name, place in endpoints.items()]
    api = "  api: {url: \"http://127.0.0.1:8300/v1\"}"
    (folder / "resources.yaml").write_text("\n".join(["version: 1", "endpoints:", api, *written, ""]))
    shown = ", ".join(f'"{place}"' for place in egress)
    (folder / "role.yaml").write_text(POLICY.format(names=shown, endpoints=", ".join(["api", *endpoints])))
    calls = [{"endpoint": "api", "path": form.format(url)} for url in listed[::every] for form in ("{}", "/{}", "/@{}")]
    calls += [{"endpoint": name, "path": "/x"} for name in list(endpoints)[::every]]
    ports = sorted({*PORTS, *(int(place.rpartition(":")[2]) for place in places)})
    tried = [("try_urls", listed), ("try_names", [f"https://{place}/" for place in egress])]
    job = {"urls": listed, "ports": ports, "calls": calls, "tried": tried}
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-m", "servers.one_machine", str(folder)],
        input=json.dumps(job), env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, cwd=folder,
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {**json.loads(done.stdout), "listed": listed, "granted": egress, "endpoints": endpoints, "calls": calls}


@pytest.mark.parametrize("every", [pytest.param(14, id="a spread"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_no_url_makes_a_portal_reach_a_private_or_metadata_address(installation: Installation, every: int) -> None:
    happened = run(installation, every)
    records = [json.loads(str(item["detail"])) for item in installation.records() if item["type"] == "connection"]

    # What was connected, by those who were connected to, and by the log.
    assert happened["would_be_seen"]
    assert {tuple(place) for place in happened["reached"]} == {(PUBLIC, 443)}
    assert {record["address"] for record in records if record.get("address")} == {f"{PUBLIC}:443", "127.0.0.1:8300"}
    for head in happened["heads"]:
        assert head.startswith("GET /v1/"), head
        assert "host: 127.0.0.1:8300\r\n" in head.lower()
        assert "x-forwarded" not in head.lower()

    # What the cage was told: the control passed, everything else was refused or is the granted endpoint's own.
    urls_told, names_told = happened["told"]
    assert (urls_told["status"], names_told["status"]) == ("ok", "ok"), happened["told"]
    for told in urls_told["data"]:
        assert _is_refused_or_its_own(*told), (told, happened["listed"][told[1]])
    of_names = [said for form, _, said in names_told["data"] if form == "proxy"]
    assert len(of_names) == len(happened["granted"])
    assert all("X-Toolcage-Refused: egress.address" in said for said in of_names), of_names

    # What `call_api` said.
    for arguments, result in zip(happened["calls"], happened["called"], strict=True):
        assert result["status"] in ("invalid", "tool_error"), (arguments, result)
        if arguments["endpoint"] != "api":
            assert (result["code"], "egress.address" in (result["hint"] or "")) == ("endpoint.refused", True), result


def _is_refused_or_its_own(form: str, number: int, said: str) -> bool:
    if form == "control":
        return said.startswith("HTTP/1.1 200")
    if form in ("host", "query", "at"):  # the endpoint's own path, and what stands in it is the endpoint's affair
        return said.startswith("HTTP/1.1 200") or "X-Toolcage-Refused" in said
    if form == "redirect" and said.startswith("HTTP/1.1 302"):
        return "location: /v1" in said.lower()
    if form == "library":
        own_file = "nobody:x:65534" in said and "daemon:" not in said  # a cage has two users, and a file: URL its files
        return own_file or not said.startswith("opened")
    return "X-Toolcage-Refused" in said or said == "nothing"
