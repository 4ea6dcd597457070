"""Puts a broker's handler where a client can connect: what a cage's listener and the door do, in one process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from toolcage.broker.dial import UpstreamStream
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms

Serve = Callable[[ClientStream, Connection], Awaitable[None]]


class Portal:
    """A loopback port whose connections go to `serve`; `notes` and `denied` are what it left behind."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.notes: list[Connection] = []
        self.denied: list[Denied] = []
        self.failed: list[BaseException] = []
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="portal", daemon=True)
        self._thread.start()
        self._server = self.run(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])

    def run(self, work: Any) -> Any:
        """The result of `work` on the portal's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def settled(self) -> bool:
        """Whether no connection is open any more."""
        return not self._open

    def codes(self) -> list[str]:
        """Why connections were refused, once none is open any more."""
        end = time.monotonic() + 20
        while self._open and time.monotonic() < end:
            time.sleep(0.005)
        return [item.code for item in self.denied]

    def give_up(self) -> None:
        """Ends what is open, as the end of a call does."""

        async def cancel() -> None:
            for task in self._open:
                task.cancel()

        self.run(cancel())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        note = Connection(portal="test", kind="test")
        self.notes.append(note)
        client = UpstreamStream(reader, writer, "")
        try:
            await self._serve(client, note)
        except Denied as denied:
            self.denied.append(denied)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.failed.append(error)
        finally:
            await client.close()
            self._open.discard(task)

    def close(self) -> None:
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        if self.failed:
            raise self.failed[0]

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._loop.shutdown_default_executor()
        for _ in range(5):
            await asyncio.sleep(0)


TERMS = PortalTerms(connect_s=10, idle_s=10)
