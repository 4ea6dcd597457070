"""The servers as fixtures: one of each per session, started when a test first asks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from servers.authority import Authority
from servers.dovecot import DovecotServer
from servers.http import HttpServer
from servers.mediawiki import PAGES, MediaWiki
from servers.office import DAV_SECRET, MAIL_SECRET, resources_of
from servers.portal import Portal, Serve
from servers.postgres import PostgresServer
from servers.radicale import PASSWORD as DAV_PASSWORD
from servers.radicale import RadicaleServer
from servers.smtp import PASSWORD as MAIL_PASSWORD
from servers.smtp import SmtpServer


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """Short on purpose: a unix socket's path has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="tc-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def authority(servers_folder: Path) -> Authority:
    """The authority of every server here."""
    return Authority(servers_folder)


@pytest.fixture(scope="session")
def postgres(servers_folder: Path, authority: Authority) -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    server = PostgresServer(servers_folder / "pg", authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def dovecot(servers_folder: Path, authority: Authority) -> Iterator[DovecotServer]:
    """An IMAP server, which tests only read."""
    server = DovecotServer(servers_folder / "imap", authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mediawiki(servers_folder: Path) -> Iterator[Mapping[str, MediaWiki]]:
    """Two wikis by language, `en` and `zh`, which tests only read."""
    wikis = {language: MediaWiki(servers_folder / f"wiki-{language}", language) for language in PAGES}
    yield wikis
    for wiki in wikis.values():
        wiki.stop()


@pytest.fixture(scope="session")
def radicale_of_session(servers_folder: Path, authority: Authority) -> Iterator[RadicaleServer]:
    """A CalDAV server."""
    server = RadicaleServer(servers_folder / "dav", authority)
    yield server
    server.stop()


@pytest.fixture
def radicale(radicale_of_session: RadicaleServer) -> RadicaleServer:
    """The CalDAV server with an empty calendar."""
    radicale_of_session.empty()
    return radicale_of_session


@pytest.fixture
def wire_server(authority: Authority) -> Iterator[HttpServer]:
    """An HTTPS server for `localhost` that answers byte by byte what a test says."""
    server = HttpServer(authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def smtp_of_session(authority: Authority) -> Iterator[SmtpServer]:
    """An SMTP server."""
    server = SmtpServer(authority)
    yield server
    server.stop()


@pytest.fixture
def smtp(smtp_of_session: SmtpServer) -> SmtpServer:
    """The SMTP server with an empty memory."""
    smtp_of_session.keeper.delivered.clear()
    smtp_of_session.keeper.refuse.clear()
    smtp_of_session.keeper.silent = False
    return smtp_of_session


@pytest.fixture
def office(
    tmp_path: Path,
    smtp: SmtpServer,
    dovecot: DovecotServer,
    radicale: RadicaleServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """resources.yaml with a mailbox and a calendar on these servers."""
    monkeypatch.setenv(MAIL_SECRET, MAIL_PASSWORD)
    monkeypatch.setenv(DAV_SECRET, DAV_PASSWORD)
    dovecot.fill()
    return resources_of(tmp_path, smtp, dovecot, radicale)


@pytest.fixture
def portal() -> Iterator[Callable[[Serve], Portal]]:
    """Opens portals that end with the test; one that failed otherwise than by Denied fails it."""
    opened: list[Portal] = []

    def open_one(serve: Serve) -> Portal:
        opened.append(Portal(serve))
        return opened[-1]

    yield open_one
    for item in opened:
        item.close()
