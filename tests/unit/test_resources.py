"""resources.yaml: what it names, what it refuses, and that nothing is touched before it is used."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from toolcage.errors import ResourceError
from toolcage.resources import (
    Cache,
    Calendar,
    Endpoint,
    Idempotency,
    KeyPlacement,
    Mailbox,
    MailServer,
    McpServer,
    PostgresDatabase,
    Rate,
    Resources,
    SecretRef,
    Server,
    SqliteDatabase,
    Workspace,
    load_resources,
)

GOOD = """
version: 1
databases:
  shop: {kind: sqlite, path: data/shop.sqlite, attach: door}
  archive: {kind: sqlite, path: /srv/archive.sqlite, access: rw}
workspaces:
  scratch: {folder: ./scratch, access: rw}
  docs: {folder: ../docs, access: ro}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "resources.yaml"
    path.write_text(text.lstrip("\n"), encoding="utf-8")
    return path


def test_every_field_arrives_and_relative_paths_are_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf", GOOD)
    monkeypatch.chdir(tmp_path)
    resources = load_resources(Path("conf/resources.yaml"))
    assert resources.databases == {
        "shop": SqliteDatabase(name="shop", path=tmp_path / "conf/data/shop.sqlite"),
        "archive": SqliteDatabase(name="archive", path=Path("/srv/archive.sqlite"), access="rw"),
    }
    assert resources.workspaces == {
        "scratch": Workspace(name="scratch", folder=tmp_path / "conf/scratch", access="rw"),
        "docs": Workspace(name="docs", folder=tmp_path / "docs", access="ro"),
    }


def test_a_name_is_found_exactly_or_the_error_lists_the_names(tmp_path: Path) -> None:
    resources = load_resources(write(tmp_path, GOOD))
    assert resources.database("shop").name == "shop"
    assert resources.workspace("docs").access == "ro"
    assert resources.dialect("archive") == "sqlite"
    for name in ("Shop", "shop ", "payroll"):
        with pytest.raises(ResourceError, match="named there: archive, shop"):
            resources.database(name)
        with pytest.raises(ResourceError):
            resources.dialect(name)
    with pytest.raises(ResourceError, match="named there: docs, scratch"):
        resources.workspace("shop")


def test_without_a_file_there_is_nothing_to_reach() -> None:
    with pytest.raises(ResourceError, match="named there: none"):
        Resources.empty().database("shop")
    Resources.empty().check()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("databases: {}", 1, "version: missing"),
        ("version: 2", 1, "reads `version: 1`"),
        ("version: true", 1, "reads `version: 1`"),
        ("version: 1\ndatabase: {}", 2, "known are: version, databases, endpoints"),
        ("version: 1\nqueues: {}", 2, "`queues` is not known here"),
        ("version: 1\ndatabases:", 2, "write a mapping"),
        ("version: 1\ndatabases:\n  Shop: {kind: sqlite, path: a}", 3, "write a name that matches"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite}", 3, "path: missing; write `path: …`"),
        ("version: 1\ndatabases:\n  shop: {path: a}", 3, "kind: missing"),
        ("version: 1\ndatabases:\n  shop: {kind: mysql, path: a}", 3, "write sqlite or postgresql"),
        ("version: 1\ndatabases:\n  shop: {kind: postgresql, path: a}", 3, "the key `path` is not known here; known"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: a, attach: mount}", 3, "not enforced by this version"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: a, attach: }", 3, "write door"),
        ("version: 1\nworkspaces:\n  desk:\n    folder: a\n    access: rw\n    quota:", 6, "quota: nothing stands"),
        ("version: 1\nendpoints:\n  a:\n    url: https://a.example\n    ca:", 5, "ca: nothing stands behind"),
        ("version: 1\nendpoints:\n  a: {url: https://a.example, cache: }", 3, "cache: nothing stands behind it"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: a, mode: rw}", 3, "known are: kind, path, access"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: ~/a}", 3, "neither ~ nor variables"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: $HOME/a}", 3, "neither ~ nor variables"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: ''}", 3, "write a path"),
        ("version: 1\nworkspaces:\n  w: {folder: a}", 3, "access: missing; write `access: ro or rw`"),
        ("version: 1\nworkspaces:\n  w: {folder: a, access: rwx}", 3, "write ro or rw"),
        ("version: 1\nworkspaces:\n  w: {folder: /, access: ro}", 3, "the whole machine"),
        ("version: 1\nworkspaces:\n  w: {folder: /tmp/.., access: ro}", 3, "the whole machine"),
        ("version: 1\nworkspaces:\n  w: {folder: a, access: ro, quota: 1}", 3, "is not a size"),
        ("version: 1\nworkspaces:\n  w: {folder: a, access: ro, files: 0}", 3, "from 1 to 100000"),
        ("version: 1\nworkspaces:\n  session: {folder: a, access: ro}", 3, "each session's own workspace"),
        ("version: 1\nversion: 1", 2, "stands twice"),
        ("version: 1\ndatabases: &a {}", 2, "anchor"),
        ("- a", 1, "write a mapping"),
    ],
)
def test_a_faulty_file_is_refused_with_line_and_what_to_write(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ResourceError) as caught:
        load_resources(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert said in str(caught.value)


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "version: 1\nhosts: {}\nworkspaces:\n  w: {folder: a, access: x}\n")
    with pytest.raises(ResourceError) as caught:
        load_resources(path)
    assert len(str(caught.value).splitlines()) == 2


def test_an_absent_file_is_an_error_and_not_empty_resources(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="cannot be read"):
        load_resources(tmp_path / "absent.yaml")
    with pytest.raises(ResourceError):
        load_resources(tmp_path)


def test_loading_touches_nothing_and_checking_names_the_resource_that_is_missing(tmp_path: Path) -> None:
    resources = load_resources(write(tmp_path, GOOD))
    assert sorted(item.name for item in tmp_path.iterdir()) == ["resources.yaml"]
    with pytest.raises(ResourceError, match="the database `shop`"):
        resources.databases["shop"].check()
    with pytest.raises(ResourceError, match="the workspace `scratch`"):
        resources.workspaces["scratch"].check()
    with pytest.raises(ResourceError):
        resources.check()


def test_what_is_there_and_of_the_right_type_passes_the_check(tmp_path: Path) -> None:
    database, folder = tmp_path / "a.sqlite", tmp_path / "w"
    database.write_bytes(b"")
    folder.mkdir()
    SqliteDatabase(name="a", path=database).check()
    SqliteDatabase(name="a", path=database, access="rw").check()
    Workspace(name="w", folder=folder, access="rw").check()
    with pytest.raises(ResourceError, match="is not a regular file"):
        SqliteDatabase(name="a", path=folder).check()
    with pytest.raises(ResourceError, match="is not a folder"):
        Workspace(name="w", folder=database, access="ro").check()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_named_pipe_is_no_database(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ResourceError, match="is not a regular file"):
        SqliteDatabase(name="p", path=tmp_path / "pipe").check()


SERVERS = """
version: 1
databases:
  sales: {kind: postgresql, host: db.example.com, database: sales, user: reader, password: {env: SALES_PASSWORD}}
  local: {kind: postgresql, socket: /run/postgresql, port: 5433, database: sales, user: reader}
endpoints:
  weather:
    url: https://API.example.org/v1
    methods: [GET, POST]
    path_prefixes: [/v1/forecast]
    key: {header: X-Api-Key, format: "{}", secret: {file: keys/weather}}
    rate: 60/minute
    max_bytes: 2MiB
    cache: {seconds: 300, bytes: 1MiB, share: role}
    idempotency: {header: X-Request-Key, quoted: true}
    retries: 1
  wiki: {url: "http://127.0.0.1:8080", allow_private: true}
mailboxes:
  team:
    address: bot@example.com
    user: bot
    password: {env: MAIL_PASSWORD}
    smtp: {host: smtp.example.com, port: 587, tls: starttls, ca: ca.pem}
    imap: {host: "::1", port: 143, tls: none}
    folders: [INBOX, Reports]
calendars:
  team: {url: "https://dav.example.com:8443/team", user: bot, password: {env: DAV_PASSWORD}, access: rw}
workspaces:
  scratch: {folder: scratch, access: rw, quota: 64MiB}
mcp_servers:
  files: {command: [files-server, --stdio], environment: {TOKEN: {env: FILES_TOKEN}}}
  remote: {url: "https://mcp.example.com/mcp", key: {secret: {env: MCP_KEY}}}
"""


def test_every_kind_of_resource_arrives_with_closed_defaults(tmp_path: Path) -> None:
    found = load_resources(write(tmp_path, SERVERS))
    secure = Server(host="db.example.com", port=5432, tls=True, ca=None, allow_private=False)
    assert dict(found.databases) == {
        "sales": PostgresDatabase(
            name="sales", database="sales", user="reader", password=SecretRef(source="env", place="SALES_PASSWORD"),
            server=secure,
        ),
        "local": PostgresDatabase(
            name="local", database="sales", user="reader", password=None, socket=Path("/run/postgresql"), port=5433
        ),
    }  # fmt: skip
    assert found.endpoints["weather"] == Endpoint(
        name="weather",
        server=Server(host="api.example.org", port=443),
        base_path="/v1",
        methods=frozenset({"GET", "POST"}),
        path_prefixes=("/v1/forecast",),
        key=KeyPlacement(
            header="X-Api-Key", format="{}", secret=SecretRef(source="file", place=str(tmp_path / "keys/weather"))
        ),
        rate=Rate(count=60, seconds=60),
        max_bytes=2 * 1024 * 1024,
        cache=Cache(seconds=300, max_bytes=1024 * 1024, share="role"),
        idempotency=Idempotency(header="X-Request-Key", quoted=True),
        retries=1,
    )
    wiki = found.endpoints["wiki"]
    assert (wiki.methods, wiki.path_prefixes, wiki.key, wiki.server.tls) == (frozenset({"GET"}), ("/",), None, False)
    assert (wiki.cache, wiki.idempotency, wiki.retries) == (None, None, 0)
    assert found.mailboxes["team"] == Mailbox(
        name="team",
        address="bot@example.com",
        user="bot",
        password=SecretRef(source="env", place="MAIL_PASSWORD"),
        smtp=MailServer(server=Server(host="smtp.example.com", port=587, ca=tmp_path / "ca.pem"), tls="starttls"),
        imap=MailServer(server=Server(host="::1", port=143, tls=False), tls="none"),
        folders=("INBOX", "Reports"),
        max_message=10 * 1024 * 1024,
    )
    assert found.calendars["team"] == Calendar(
        name="team", server=Server(host="dav.example.com", port=8443), path="/team/", user="bot",
        password=SecretRef(source="env", place="DAV_PASSWORD"), access="rw", max_bytes=8 * 1024 * 1024,
    )  # fmt: skip
    assert found.workspaces["scratch"].quota == 64 * 1024 * 1024
    assert found.mcp_servers["files"] == McpServer(
        name="files", command=("files-server", "--stdio"),
        environment={"TOKEN": SecretRef(source="env", place="FILES_TOKEN")},
    )  # fmt: skip
    assert found.mcp_servers["remote"].server == Server(host="mcp.example.com", port=443)
    assert (found.dialect("sales"), found.names("mailbox")) == ("postgres", frozenset({"team"}))


POSTGRES = "version: 1\ndatabases:\n  d: {{kind: postgresql, database: d, user: u, password: {{env: P}}, {}}}"
ENDPOINT = "version: 1\nendpoints:\n  e: {{{}}}"
AGAIN = "version: 1\nendpoints:\n  e: {{url: 'https://a.example.org', {}}}"
KEY = "version: 1\nendpoints:\n  e: {{url: 'https://a.example.org', key: {{secret: {{env: K}}, {}}}}}"
MAILBOX = "version: 1\nmailboxes:\n  m: {{address: a@b.example, {}}}"
SMTP = "version: 1\nmailboxes:\n  m: {{address: a@b.example, smtp: {{host: {}, port: 25, tls: {}}}}}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POSTGRES.format("host: db.example.com, socket: /run"), "either `host` or `socket`"),
        (POSTGRES.format("port: 5432"), "either `host` or `socket`"),
        (POSTGRES.format("socket: /run, tls: disable"), "belong to a `host`"),
        (POSTGRES.format("host: db.example.com, port: 0"), "from 1 to 65535"),
        (POSTGRES.format("host: db.example.com, tls: disable"), "readable on the way"),
        (POSTGRES.format("host: 93.184.215.14, tls: disable"), "readable on the way"),
        (POSTGRES.format("host: db.example.com, tls: prefer"), "write verify-full or disable"),
        (POSTGRES.format("host: localhost"), "allow_private: true"),
        (POSTGRES.format("host: db.internal"), "allow_private: true"),
        (POSTGRES.format("host: 127.0.0.1.nip.io"), "allow_private: true"),
        (POSTGRES.format("host: '127.1'"), "is 127.0.0.1 in another spelling"),
        (POSTGRES.format("host: '0x7f000001'"), "is 127.0.0.1 in another spelling"),
        (POSTGRES.format("host: '::ffff:127.0.0.1'"), "in another spelling"),
        (POSTGRES.format("host: '::ffff:7f00:1'"), "carries 127.0.0.1"),
        (POSTGRES.format("host: 0.0.0.0"), "no address of one server"),
        (POSTGRES.format("host: 224.0.0.1"), "no address of one server"),
        (POSTGRES.format("host: '*.example.com'"), "without a scheme, a port or a wildcard"),
        (POSTGRES.format("host: 'db.example.com:5432'"), "without a scheme, a port or a wildcard"),
        (POSTGRES.format("host: b\u0430nk.example.com"), "only looks like"),
        ("version: 1\ndatabases:\n  d: {kind: postgresql, host: h.example.com, database: d, user: u}", "`password`"),
        (ENDPOINT.format("url: 'ftp://a.example.org'"), "write an address such as"),
        (ENDPOINT.format("url: 'http://a.example.org'"), "readable on the way"),
        (ENDPOINT.format("url: 'https://a.example.org/?key=1'"), "no user, password, query or fragment"),
        (ENDPOINT.format("url: 'https://a.example.org/v1/../v2'"), "may not stand in a path"),
        (ENDPOINT.format("url: 'https://a.example.org/%2e'"), "without escapes"),
        (ENDPOINT.format("url: 'https://a.example.org/v1', path_prefixes: [/v10]"), "outside the url"),
        (ENDPOINT.format("url: 'https://a.example.org/v1', path_prefixes: [v1/a]"), "plain path"),
        (ENDPOINT.format("url: 'https://a.example.org/v1', path_prefixes: []"), "at least one item"),
        (ENDPOINT.format("url: 'https://a.example.org', methods: [CONNECT]"), "`CONNECT` is not known here"),
        (ENDPOINT.format("url: 'https://a.example.org', rate: 60"), "is no rate"),
        (ENDPOINT.format("url: 'https://a.example.org', max_bytes: 8MB"), "is not a size"),
        (ENDPOINT.format("url: 'https://a.example.org', allow_private: 1"), "write true or false"),
        (AGAIN.format("cache: {}"), "cache.seconds: missing"),
        (AGAIN.format("cache: {seconds: 0}"), "from 1 to 86400"),
        (AGAIN.format("cache: {seconds: 90000}"), "from 1 to 86400"),
        (AGAIN.format("cache: {seconds: 1.5}"), "from 1 to 86400"),
        (AGAIN.format("cache: {seconds: 1, bytes: 1GiB}"), "256MiB"),
        (AGAIN.format("cache: {seconds: 1, share: all}"), "write session or role"),
        (AGAIN.format("cache: {seconds: 1, vary: []}"), "known are: seconds, bytes, share"),
        (AGAIN.format("methods: [POST], cache: {seconds: 1}"), "keeps answers to GET"),
        (AGAIN.format("idempotency: {}"), "`methods` has none"),
        (AGAIN.format("methods: [POST], idempotency: {header: Host}"), "says how a request is read"),
        (AGAIN.format("methods: [POST], idempotency: {header: ''}"), "name of a header"),
        (AGAIN.format("methods: [POST], idempotency: {quoted: 1}"), "write true or false"),
        (AGAIN.format("methods: [POST], idempotency: {header: authorization}, key: {secret: {env: K}}"), "same header"),
        (AGAIN.format("methods: [POST], retries: 2"), "write `idempotency` beside it"),
        (AGAIN.format("retries: 6"), "from 0 to 5"),
        (AGAIN.format("retries: true"), "from 0 to 5"),
        (KEY.format("header: Host"), "never a key's place"),
        (KEY.format("header: 'X-Key: a'"), "name of a header"),
        (KEY.format("format: Bearer"), "{} once"),
        (KEY.format("format: '{} {}'"), "{} once"),
        (KEY.format("place: query"), "known are: header, format, secret"),
        (MAILBOX.format("user: a"), "`smtp`, `imap` or both"),
        (SMTP.format("mx.example.com", "none"), "readable on the way"),
        (SMTP.format("mx.example.com", "opportunistic"), "write implicit or starttls or none"),
        (MAILBOX.format("imap: {host: mx.example.com, port: 993, tls: implicit}"), "needs `user` and `password`"),
        (MAILBOX.format("user: a, smtp: {host: mx.example.com, port: 25, tls: starttls}"), "go together"),
        ("version: 1\nmailboxes:\n  m: {address: 'a@b.example>', smtp: {}}", "one plain address"),
        ("version: 1\nmcp_servers:\n  m: {}", "either `command` or `url`"),
        ("version: 1\nmcp_servers:\n  m: {command: [x], environment: {path: {env: P}}}", "^[A-Z]"),
    ],
)
def test_a_server_that_would_be_reached_more_widely_than_it_reads_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ResourceError) as caught:
        load_resources(write(tmp_path, text))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("written", "retries"),
    [("retries: 2", 2), ("methods: [GET, POST], retries: 1", 1), ("methods: [POST], idempotency: {}", 2),
     ("methods: [POST], idempotency: {}, retries: 0", 0), ("cache: {seconds: 60}", 0)],
)  # fmt: skip
def test_nothing_is_repeated_unasked_but_by_a_key(tmp_path: Path, written: str, retries: int) -> None:
    found = load_resources(write(tmp_path, AGAIN.format(written))).endpoints["e"]
    assert found.retries == retries
    assert found.idempotency in (None, Idempotency(header="Idempotency-Key"))
    assert found.cache in (None, Cache(seconds=60, max_bytes=8 * 1024 * 1024, share="session"))


@pytest.mark.parametrize("allowed", ["host: localhost, allow_private: true", "host: 127.0.0.1, tls: disable",
                                     "host: 10.1.2.3, tls: disable", "host: '[::1]', tls: disable",
                                     "host: postgres, allow_private: true, tls: disable"])  # fmt: skip
def test_what_the_operator_names_openly_may_be_private(tmp_path: Path, allowed: str) -> None:
    found = load_resources(write(tmp_path, POSTGRES.format(allowed))).databases["d"]
    assert isinstance(found, PostgresDatabase)
    assert found.server is not None


@pytest.mark.parametrize(
    "slip",
    [
        POSTGRES.format("host: db.example.com").replace("{env: P}", "hunter2-canary"),
        POSTGRES.format("host: db.example.com").replace("{env: P}", "{hunter2-canary}"),
        POSTGRES.format("host: db.example.com").replace("{env: P}", "{env: hunter2-canary!}"),
        POSTGRES.format("host: db.example.com").replace("{env: P}", "{env: P, file: hunter2-canary}"),
        POSTGRES.format("host: 'postgresql://u:hunter2-canary@db.example.com/d'"),
        ENDPOINT.format("url: 'https://u:hunter2-canary@a.example.org/'"),
        ENDPOINT.format("url: 'https://a.example.org/?key=hunter2-canary'"),
        KEY.format("format: 'Bearer hunter2-canary'"),
    ],
)
def test_a_secret_that_was_written_into_the_file_is_refused_and_not_repeated(tmp_path: Path, slip: str) -> None:
    with pytest.raises(ResourceError) as caught:
        load_resources(write(tmp_path, slip))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "carried", "hidden"),
    [
        ("Basic {}", "bot:correct-horse", ["bot:correct-horse", "correct-horse"]),
        ("basic {}", "sk_live_abcdef:", ["sk_live_abcdef:", "sk_live_abcdef"]),
        ("Basic {}", "sk_live_abcdef:X", ["sk_live_abcdef:X", "sk_live_abcdef"]),
        ("Basic {}", "b\u00f6b:p\u00e4ssword", ["b\u00f6b:p\u00e4ssword", "p\u00e4ssword"]),
        ("Bearer {}", "bot:correct-horse", []),
        ("{}", "bot:correct-horse", []),
    ],
)
def test_what_a_server_reads_in_a_login_must_not_come_back_either(
    monkeypatch: pytest.MonkeyPatch, written: str, carried: str, hidden: list[str]
) -> None:
    token = base64.b64encode(carried.encode()).decode()
    monkeypatch.setenv("TOOLCAGE_TEST_KEY", token)
    secret = SecretRef(source="env", place="TOOLCAGE_TEST_KEY")
    key, secrets = KeyPlacement(header="Authorization", format=written, secret=secret).read()
    assert key == ("Authorization", written.replace("{}", token))
    assert secrets == (token, *hidden)


def test_a_basic_key_that_is_no_login_is_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = SecretRef(source="env", place="TOOLCAGE_TEST_KEY")
    for value in ("not/base64?at all", "/////w==", "YTpiYw=="):  # nothing, no text, nothing long enough to look for
        monkeypatch.setenv("TOOLCAGE_TEST_KEY", value)
        assert KeyPlacement(header="X-Key", format="Basic {}", secret=secret).read()[1] == (value,)
