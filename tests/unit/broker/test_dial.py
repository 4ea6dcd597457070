"""Connections go to the judged address and nowhere else, and TLS proves who answers. Real sockets, real TLS."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from toolcage.broker.dial import Upstream, UpstreamStream, open_stream, tls_context
from toolcage.broker.stream import Denied

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def server_context(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    await writer.drain()
    await reader.read()
    writer.close()


@asynccontextmanager
async def server(handler: Handler = greet, host: str = "127.0.0.1", **options: object) -> AsyncIterator[int]:
    serving: set[asyncio.Task[object]] = set()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await handler(reader, writer)
        except asyncio.CancelledError:
            pass  # the fixture's end; start_server would log it as an error
        finally:
            writer.transport.abort()
            serving.discard(task)

    made = await asyncio.start_server(keep, host, 0, **options)  # type: ignore[arg-type]
    try:
        yield made.sockets[0].getsockname()[1]
    finally:
        made.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for _ in range(5):  # the transports' own last steps
            await asyncio.sleep(0)


def resolving(*answers: Sequence[str]) -> tuple[Callable[[str, int], Awaitable[Sequence[str]]], list[str]]:
    """A resolver with one answer per question, and the names that it was asked."""
    asked: list[str] = []
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return left.pop(0)

    return resolve, asked


async def heard(stream: UpstreamStream) -> bytes:
    try:
        return await stream.read(5)
    finally:
        await stream.close()


def refused(work: Callable[[], Awaitable[object]]) -> Denied:
    async def run() -> Denied:
        with pytest.raises(Denied) as caught:
            await work()
        return caught.value

    return asyncio.run(run())


def test_a_permitted_name_is_resolved_once_and_reached_at_that_address() -> None:
    async def run() -> None:
        async with server() as port:
            resolve, asked = resolving(["127.0.0.1"])
            upstream = Upstream(host="db.internal", port=port, tls=False, allow_private=True)
            stream = await open_stream(upstream, connect_s=5, resolve=resolve)
            assert await heard(stream) == b"hello"
            assert (asked, stream.address) == (["db.internal"], f"127.0.0.1:{port}")

    asyncio.run(run())


def test_a_name_that_changes_its_answer_after_the_check_leads_nowhere_new() -> None:
    """Rebinding: the second answer would be taken by whoever resolved again when connecting."""

    async def run() -> None:
        async with server() as port:
            resolve, asked = resolving(["127.0.0.1"], ["127.0.0.2"])
            upstream = Upstream(host="rebind.example.org", port=port, tls=False, allow_private=True)
            stream = await open_stream(upstream, connect_s=5, resolve=resolve)
            assert await heard(stream) == b"hello"
            assert (len(asked), stream.address) == (1, f"127.0.0.1:{port}")

    asyncio.run(run())


@pytest.mark.parametrize("answer", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_a_name_at_a_private_address_is_refused_before_any_connection(answer: str) -> None:
    async def run() -> None:
        connected: list[bool] = []

        async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connected.append(True)
            writer.close()

        async with server(note) as port:
            resolve, _ = resolving([answer])
            with pytest.raises(Denied) as caught:
                await open_stream(Upstream(host="api.example.org", port=port), connect_s=5, resolve=resolve)
        assert (caught.value.code, connected) == ("egress.address", [])
        assert answer not in caught.value.message
        assert "api.example.org" in caught.value.operator

    asyncio.run(run())


def test_in_the_clear_a_public_address_is_refused_unless_the_ends_encrypt_themselves() -> None:
    resolve, _ = resolving(["93.184.215.14"])
    upstream = Upstream(host="api.example.org", port=9, tls=False, allow_private=True)
    assert refused(lambda: open_stream(upstream, connect_s=5, resolve=resolve)).code == "egress.clear"


def test_tls_is_verified_by_name_and_by_the_named_authority_alone(authority: trustme.CA, ca: Path) -> None:
    async def run() -> None:
        async with server(ssl=server_context(authority, "db.internal")) as port:
            resolve, _ = resolving(*[["127.0.0.1"]] * 3)
            good = Upstream(host="db.internal", port=port, ca=ca, allow_private=True)
            assert await heard(await open_stream(good, connect_s=5, resolve=resolve)) == b"hello"
            other_name = Upstream(host="other.internal", port=port, ca=ca, allow_private=True)
            system_roots = Upstream(host="db.internal", port=port, allow_private=True)
            for wrong in (other_name, system_roots):
                with pytest.raises(Denied) as caught:
                    await open_stream(wrong, connect_s=5, resolve=resolve)
                assert caught.value.code == "egress.tls"

    asyncio.run(run())


def test_tls_below_1_2_and_an_answer_in_the_clear_are_refused(authority: trustme.CA, ca: Path) -> None:
    context = server_context(authority, "127.0.0.1")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT@SECLEVEL=0")

    async def run(port: int) -> str:
        with pytest.raises(Denied) as caught:
            await open_stream(Upstream(host="127.0.0.1", port=port, ca=ca), connect_s=5)
        return caught.value.code

    async def both() -> list[str]:
        async with server(ssl=context) as old, server() as clear:
            return [await run(old), await run(clear)]

    assert asyncio.run(both()) == ["egress.tls", "egress.tls"]


def test_the_environment_cannot_make_us_write_down_tls_keys(
    authority: trustme.CA, ca: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))

    async def run() -> bytes:
        async with server(ssl=server_context(authority, "127.0.0.1")) as port:
            return await heard(await open_stream(Upstream(host="127.0.0.1", port=port, ca=ca), connect_s=5))

    assert asyncio.run(run()) == b"hello"
    assert not (tmp_path / "keys").exists()


def test_a_server_that_never_finishes_its_handshake_is_given_up(ca: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def run() -> Denied:
        async with server(silent) as port:
            with pytest.raises(Denied) as caught:
                await open_stream(Upstream(host="127.0.0.1", port=port, ca=ca), connect_s=0.2)
            return caught.value

    error = asyncio.run(run())
    assert error.code == "egress.timeout"
    assert "127.0.0.1" not in error.message


def test_the_next_address_is_tried_when_the_first_refuses() -> None:
    async def run() -> None:
        async with server(host="127.0.0.2") as port:
            resolve, _ = resolving(["127.0.0.3", "127.0.0.2"])
            upstream = Upstream(host="two.internal", port=port, tls=False, allow_private=True)
            stream = await open_stream(upstream, connect_s=5, resolve=resolve)
            assert await heard(stream) == b"hello"
            assert stream.address == f"127.0.0.2:{port}"

    asyncio.run(run())


def test_nobody_there_and_no_such_name_say_different_things_and_no_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening
        port = taken.getsockname()[1]
        gone = refused(lambda: open_stream(Upstream(host="127.0.0.1", port=port, tls=False), connect_s=5))
    assert (gone.code, str(port) in gone.message) == ("egress.unreachable", False)

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    missing = refused(lambda: open_stream(Upstream(host="no.example.org", port=1), connect_s=5, resolve=unknown))
    assert (missing.code, "no.example.org" in missing.message) == ("egress.name", False)
    empty, _ = resolving([])
    assert refused(
        lambda: open_stream(Upstream(host="no.example.org", port=1), connect_s=5, resolve=empty)
    ).code == "egress.unreachable"  # fmt: skip


def test_an_unreadable_authority_file_refuses_instead_of_trusting_the_system(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for path in (tmp_path / "absent.pem", tmp_path / "empty.pem"):
        with pytest.raises(Denied) as caught:
            tls_context(path)
        assert caught.value.code == "egress.tls"
        assert str(path) not in caught.value.message


def test_failed_and_cancelled_connections_leave_no_descriptor(authority: trustme.CA, ca: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def run() -> tuple[int, int]:
        async with server(silent) as slow, server(ssl=server_context(authority, "other")) as wrong:
            before = 0
            for turn in range(20):
                for port in (slow, wrong):
                    with pytest.raises(Denied):
                        await open_stream(Upstream(host="127.0.0.1", port=port, ca=ca), connect_s=0.05)
                task = asyncio.create_task(open_stream(Upstream(host="127.0.0.1", port=slow, ca=ca), connect_s=5))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if turn == 2:
                    await asyncio.sleep(0.05)
                    before = len(os.listdir("/proc/self/fd"))
            await asyncio.sleep(0.05)
            return before, len(os.listdir("/proc/self/fd"))

    before, after = asyncio.run(run())
    assert after <= before + 2
