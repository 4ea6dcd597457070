"""The container engine, as few verbs as the product needs. The only module that imports the `docker` package.

Every failure of the engine or of the way to it is an `EngineError` that says what was asked; nothing is retried here
and nothing else is tried instead. A client serves one thread at a time (shared by threads it is known to freeze under
load) and is used again by the next: as many are open as were ever needed at once, not one for each thread that was.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Literal

import docker
import docker.errors
import docker.utils
import requests.exceptions
import urllib3.exceptions
from docker.context import ContextAPI
from docker.transport import UnixHTTPAdapter
from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool

from toolcage.errors import EngineError

REQUEST_TIMEOUT_S = 60
RECENT_S = 30.0
_NOT_RUNNING = "start Docker (for example `sudo systemctl start docker`), or name its socket in DOCKER_HOST"

_BAD_CERTIFICATE = (
    "one side does not accept the other's certificate; DOCKER_CERT_PATH (or the context) must hold ca.pem, which "
    "signed the engine's, and cert.pem with key.pem, which the engine accepts"
)


class EngineSilent(EngineError):
    """The engine gave no answer: what was asked may be done, or may still be being done."""


class Engine:
    """One engine. Cheap to hold; `close()` closes every connection."""

    def __init__(self, address: str | None, tls: docker.TLSConfig | None = None) -> None:
        self._address = address
        self._tls = tls
        self._free: list[docker.APIClient] = []
        self._lock = threading.Lock()
        self._closed = False
        self._version = "auto"
        self._told: tuple[float, Mapping[str, Any]] = (-math.inf, {})

    @classmethod
    def connect(cls) -> Engine:
        """The engine that DOCKER_HOST names, else that of the current Docker context. Raises EngineError when it does
        not answer."""
        engine = cls(*_address())
        with engine._asking("connect to the container engine") as client:
            engine._version = client.api_version
        return engine

    def close(self) -> None:
        """Closes every connection; one that is in use, when it is no longer."""
        with self._lock:
            self._closed = True
            clients, self._free = self._free, []
        for client in clients:
            client.close()

    def version(self) -> Mapping[str, Any]:
        """The engine's own answer to version."""
        with self._asking("ask the engine for its version") as client:
            return dict(client.version(api_version=False))

    def info(self) -> Mapping[str, Any]:
        """The engine's own answer to info."""
        with self._asking("ask the engine about itself") as client:
            return dict(client.info())

    def recent_info(self) -> Mapping[str, Any]:
        """The same, at most RECENT_S old: an engine may be restarted with another configuration."""
        asked, told = self._told
        if time.monotonic() - asked > RECENT_S:
            told = self.info()
            self._told = (time.monotonic(), told)
        return told

    # images

    def load_image(self, archive: BinaryIO) -> None:
        """Loads a docker-archive."""
        with self._asking("load an image") as client:
            for _ in client.load_image(archive, quiet=True):
                pass

    def image_id(self, reference: str) -> str | None:
        """The id of an image, None when the engine does not have it."""
        found = self.image_inspect(reference)
        return None if found is None else str(found["Id"])

    def image_inspect(self, reference: str) -> Mapping[str, Any] | None:
        """What the engine says about an image, None when it does not have it."""
        with self._asking("inspect an image") as client:
            try:
                return dict(client.inspect_image(reference))
            except docker.errors.ImageNotFound:
                return None

    def image_history(self, reference: str) -> list[Mapping[str, Any]]:
        """How the image was made, layer by layer. Raises EngineError when the engine does not have it."""
        with self._asking("read an image's history") as client:
            return [dict(layer) for layer in client.history(reference)]

    def remove_image(self, reference: str) -> None:
        """Removes an image with its names; one that is gone is fine. Raises EngineError while a container uses it."""
        with self._asking("remove an image") as client:
            try:
                client.remove_image(reference, force=False)
            except docker.errors.ImageNotFound:
                return

    # containers

    def create(self, config: Mapping[str, Any], name: str) -> str:
        """Creates a container from a complete configuration and returns its id. Never pulls."""
        with self._asking("create a container") as client:
            return str(client.create_container_from_config(dict(config), name)["Id"])

    def attach(self, container: str) -> socket.socket:
        """The raw stream of a container's stdin, stdout and stderr; attach before start so that no byte is missed."""
        with self._asking("attach to a container") as client:
            stream = client.attach_socket(container, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            return _raw_socket(stream)

    def start(self, container: str) -> None:
        with self._asking("start a container") as client:
            client.start(container)

    def inspect(self, container: str) -> Mapping[str, Any] | None:
        """What the engine says about a container, None when it is gone."""
        with self._asking("inspect a container") as client:
            try:
                return dict(client.inspect_container(container))
            except docker.errors.NotFound:
                return None

    def kill(self, container: str) -> None:
        """SIGKILL; a container that is gone or not running is fine."""
        with self._asking("kill a container") as client, contextlib.suppress(docker.errors.APIError):
            client.kill(container)

    def remove(self, container: str) -> bool:
        """Removes a container by its id or name, running or not; one that is gone, or is being removed, is fine.
        Returns whether there was one."""
        with self._asking("remove a container") as client:
            try:
                client.remove_container(container, force=True, v=True)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise
                return error.status_code != 404
        return True

    def list_labelled(self, label: str) -> list[Mapping[str, Any]]:
        """Every container with that label, stopped ones included: `Id`, `Labels`, `State`."""
        with self._asking("list containers") as client:
            return [dict(item) for item in client.containers(all=True, filters={"label": [label]})]

    # how it is asked

    @contextlib.contextmanager
    def _asking(self, what: str) -> Iterator[docker.APIClient]:
        client = None
        try:
            client = self._borrow()
            yield client
        except docker.errors.APIError as error:
            raise EngineError(f"the engine refused to {what}: {error.explanation or error}") from error
        except (docker.errors.DockerException, requests.exceptions.RequestException, urllib3.exceptions.HTTPError,
                OSError) as error:  # fmt: skip
            why = _BAD_CERTIFICATE if "SSL" in str(error) else f"no engine answers; {_NOT_RUNNING}"
            raise EngineSilent(f"could not {what}: {why}") from error
        finally:
            if client is not None:
                self._give_back(client)

    def _borrow(self) -> docker.APIClient:
        with self._lock:
            if self._free:
                return self._free.pop()
        _knock(self._address)
        return _Client(
            base_url=self._address, tls=self._tls or False, version=self._version, timeout=REQUEST_TIMEOUT_S
        )

    def _give_back(self, client: docker.APIClient) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(client)
                return
        client.close()


class _Client(docker.APIClient):
    """Takes nothing from the environment: with TLS, REQUESTS_CA_BUNDLE would replace the authority that
    DOCKER_CERT_PATH names, and a proxy for the web is no way to an engine. Keeps one connection open."""

    def __init__(
        self, *, base_url: str | None, tls: docker.TLSConfig | Literal[False], version: str, timeout: int
    ) -> None:
        super().__init__(base_url=base_url, tls=tls, version=version, timeout=timeout)
        adapter = getattr(self, "_custom_adapter", None)
        if isinstance(adapter, UnixHTTPAdapter):
            self._custom_adapter = _UnixAdapter(f"http+unix://{adapter.socket_path}", timeout, 1, 1)
            self.mount("http+docker://", self._custom_adapter)
            adapter.close()

    @property
    def trust_env(self) -> bool:
        return False

    @trust_env.setter
    def trust_env(self, value: bool) -> None:
        """The session's constructor sets it, before anything else could."""


class _UnixAdapter(UnixHTTPAdapter):
    """One connection for every path. The client's own adapter keeps one for each path that it was asked for, and those
    name containers: it would keep 25 that are never used again, and make a new one for each request."""

    def get_connection(self, url: str | bytes, proxies: Any = None) -> UnixHTTPConnectionPool:
        with self.pools.lock:
            pool = self.pools.get("")
            if pool is None:
                pool = self.pools[""] = _UnixPool("", self.socket_path, self.timeout, maxsize=self.max_pool_size)
            return pool


class _UnixPool(UnixHTTPConnectionPool):
    def _new_conn(self) -> Any:
        return _UnixConnection(self.base_url, self.socket_path, REQUEST_TIMEOUT_S)


class _UnixConnection(UnixHTTPConnection):
    """Leaves no socket open when nobody answers."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.unix_socket)
        except OSError:
            self.close()
            raise


def _knock(address: str | None) -> None:
    """Raises OSError when nobody answers on a unix socket. A new client would too, and leave its socket open."""
    target = str(docker.utils.parse_host(address))
    if target.startswith("http+unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(REQUEST_TIMEOUT_S)
            knocking.connect(target.removeprefix("http+unix://"))


def _address() -> tuple[str | None, docker.TLSConfig | None]:
    """Where the engine is: DOCKER_HOST wins, then the current context, then the platform's default socket."""
    if os.environ.get("DOCKER_HOST"):
        settings = docker.utils.kwargs_from_env()
        return settings.get("base_url"), settings.get("tls") or None
    try:
        context = ContextAPI.get_current_context()
    except (docker.errors.DockerException, OSError, ValueError, KeyError):
        return None, None
    return (context.Host, context.TLSConfig) if context else (None, None)


def _raw_socket(stream: Any) -> socket.socket:
    """The socket below the client's wrappers (unix, TCP and TLS differ), owned by us alone where that is possible.

    The client's response object holds the socket too, in a reference cycle: closing ours would leave the descriptor
    open until the garbage collector comes by. A TLS socket has state of its own and cannot be taken out.
    """
    found = getattr(stream, "_sock", stream)
    if isinstance(found, ssl.SSLSocket):
        return found
    if not isinstance(found, socket.socket):
        raise EngineError("could not attach to a container: the engine's stream is not a socket")
    own = socket.socket(found.family, found.type, found.proto, fileno=os.dup(found.fileno()))
    getattr(stream, "_response", stream).close()
    return own
