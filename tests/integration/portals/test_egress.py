"""`egress` for programs, end to end: a real runtime in a network of its own, where a name has a public address.

The runtime runs as a process of its own in new network and mount namespaces: `lo` carries an address of the public
internet there, and /etc/hosts names it, so that what is resolved, judged and pinned is what an operator would have. The
engine is reached as always, through its socket's path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from conftest import Installation
from servers.authority import Authority

PUBLIC = "93.184.216.34"
HOSTS = f"""
127.0.0.1 localhost
{PUBLIC} api.example.com other.example.com
127.0.0.1 private.example.com
{PUBLIC} both.example.com
10.0.0.7 both.example.com
"""
POLICY = """
version: 1
role: coder
tools:
  execute_python:
    allow: [{}]
    egress: [api.example.com:8443, private.example.com:8443, both.example.com:8443]
    sandbox: {wall: 60s}
  run_shell:
    allow: [{}]
    egress: [api.example.com:8443]
    sandbox: {image: shell, wall: 60s}
  calculate_expression:
    allow: [{}]
"""
OUTER = """
set -e
mount --bind "$1" /etc/hosts
ip link set lo up
ip address add "$4/32" dev lo
exec "$2" "$3"
"""
INNER = '''
import json, os, socket, ssl, sys, threading
from toolcage import PoolTerms, Runtime

here = os.environ["HERE"]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.environ["CHAIN"], os.environ["KEY"])
listener = socket.create_server(("0.0.0.0", 8443))

def serve():
    while True:
        accepted, _ = listener.accept()
        try:
            with context.wrap_socket(accepted, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nConnection: close\\r\\n\\r\\nhello")
        except OSError:
            pass

threading.Thread(target=serve, daemon=True).start()
with Runtime.from_files(here + "/role.yaml", state_dir=here + "/state", pool=PoolTerms(min_idle=0)) as runtime:
    with runtime.session() as session:
        for call in json.load(open(here + "/calls.json")):
            authority = {"ca.pem": open(os.environ["CA"], "rb").read()}
            files = authority if call["tool"] == "execute_python" else None
            result = session.call(call["tool"], call["arguments"], files=files)
            print(json.dumps(result.to_dict()))
'''
FETCH = """
import ssl, urllib.request
context = ssl.create_default_context(cafile="ca.pem")
def fetch(url):
    try:
        with urllib.request.urlopen(url, context=context, timeout=20) as answer:
            return answer.read().decode()
    except Exception as error:
        return str(error)
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"),
    reason="a network of its own takes root, unshare and ip",
)


def run(installation: Installation, authority: Authority, *calls: tuple[str, dict[str, str]]) -> list[dict[str, Any]]:
    """What each call ended with."""
    folder = installation.folder
    certificate = authority.issue("public", "api.example.com", "private.example.com")
    listed = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
    written = {"hosts": HOSTS, "role.yaml": POLICY, "inner.py": INNER, "calls.json": json.dumps(listed)}
    for name, text in written.items():
        (folder / name).write_text(text)
    environment = {
        **os.environ, "HERE": str(folder), "CHAIN": str(certificate.chain), "KEY": str(certificate.key),
        "CA": str(authority.file),
    }  # fmt: skip
    inside = ["sh", "-c", OUTER, "sh", str(folder / "hosts"), sys.executable, str(folder / "inner.py"), PUBLIC]
    done = subprocess.run(
        ["unshare", "--net", "--mount", *inside], env=environment, capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def connections(installation: Installation) -> list[dict[str, Any]]:
    return [json.loads(str(item["detail"])) for item in installation.records() if item["type"] == "connection"]


def python(code: str) -> tuple[str, dict[str, str]]:
    return "execute_python", {"code": FETCH + textwrap.dedent(code)}


def test_a_program_reaches_the_granted_host_through_the_proxy_that_it_is_told_of(
    installation: Installation, authority: Authority
) -> None:
    (result,) = run(installation, authority, python('fetch("https://api.example.com:8443/x")'))
    assert (result["status"], result["data"]) == ("ok", "hello")
    (record,) = connections(installation)
    assert (record["target"], record["address"]) == ("CONNECT api.example.com:8443", f"{PUBLIC}:8443")
    assert record["kind"] == "connect"
    assert record["verdict"] in ("closed", "cancelled")  # the call may be over before the server has ended its side


def test_a_program_reaches_nothing_else_and_is_told_why(installation: Installation, authority: Authority) -> None:
    urls = [
        "https://other.example.com:8443/x", "https://api.example.com:8444/x", "https://private.example.com:8443/x",
        "https://both.example.com:8443/x", f"https://{PUBLIC}:8443/x", "https://127.0.0.1.nip.io:8443/x",
        "https://169.254.169.254/latest/", "http://api.example.com:8443/x",
    ]  # fmt: skip
    (result,) = run(installation, authority, python(f"[fetch(url) for url in {urls!r}]"))
    assert result["status"] == "ok"
    assert all("403" in said for said in result["data"]), result["data"]
    assert "egress_denied" in result["labels"]
    reasons = [record["reason"] for record in connections(installation)]
    not_granted, private = "egress.host_not_granted", "egress.address"
    assert reasons == [not_granted, not_granted, private, private, not_granted, not_granted, not_granted,
                       "egress.plain_http"]  # fmt: skip


def test_a_shell_finds_the_proxy_too_and_a_tool_without_the_grant_finds_none(
    installation: Installation, authority: Authority
) -> None:
    shell, plain = run(
        installation, authority, ("run_shell", {"command": "echo $HTTPS_PROXY $https_proxy $NO_PROXY"}),
        ("calculate_expression", {"expression": "6*7"}),
    )  # fmt: skip
    proxy = "http://127.0.0.1:8101"
    assert shell["stdout"].split() == [proxy, proxy, "127.0.0.1,localhost"]
    assert plain["status"] == "ok"
    assert connections(installation) == []


def test_there_is_no_way_around_the_proxy(installation: Installation, authority: Authority) -> None:
    code = f"""
    import os, socket
    def reach(address, port):
        try:
            socket.create_connection((address, port), timeout=2).close()
            return "reached"
        except OSError as error:
            return error.errno
    def resolve(name):
        try:
            return socket.getaddrinfo(name, 443)
        except OSError:
            return "unknown"
    [reach("{PUBLIC}", 8443), reach("10.0.0.7", 8443), resolve("api.example.com"), sorted(os.listdir("/sys/class/net"))]
    """
    (result,) = run(installation, authority, python(code))
    assert result["data"][2:] == ["unknown", ["lo"]]
    assert "reached" not in result["data"][:2]
