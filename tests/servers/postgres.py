"""A PostgreSQL server (Debian's) with TLS, one role for each way to log in, and a small shop.

`reader`, `md5_reader` and `clear_reader` may only read; `writer` may change `orders`; `mighty` is a superuser; `owner`
owns the tables; `bypass`, `files` and `creator` each have one right too many.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from servers.authority import Authority
from servers.process import Process, as_user, free_port, own

PASSWORD = "pg-canary-5d1c9e"
PASSWORD_IN = "TOOLCAGE_TEST_PG"
"""The variable that holds it for the host side."""
ROLES = ("reader", "md5_reader", "clear_reader", "writer", "mighty", "owner", "bypass", "files", "creator")
SCHEMA = f"""
CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE clear_reader LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE mighty LOGIN SUPERUSER PASSWORD '{PASSWORD}';
CREATE ROLE owner LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE bypass LOGIN BYPASSRLS PASSWORD '{PASSWORD}';
CREATE ROLE files LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_server_files;
CREATE ROLE creator LOGIN PASSWORD '{PASSWORD}';
SET password_encryption = 'md5';
CREATE ROLE md5_reader LOGIN PASSWORD '{PASSWORD}';
CREATE DATABASE shop;
REVOKE ALL ON DATABASE shop FROM PUBLIC;
\\connect shop
REVOKE ALL ON SCHEMA public FROM PUBLIC;
CREATE TABLE orders (id integer PRIMARY KEY, customer text NOT NULL, total numeric(10, 2) NOT NULL, placed date);
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL);
CREATE TABLE salaries (id integer PRIMARY KEY, amount integer NOT NULL);
INSERT INTO orders VALUES (1, 'Ada', 10.50, '2026-05-01'), (2, 'Bo', 32.00, '2026-05-02'), (3, '王芳', 7.25, NULL);
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.com'), (2, 'Bo', 'bo@example.com');
INSERT INTO salaries VALUES (1, 99);
ALTER TABLE orders OWNER TO owner;
GRANT CONNECT ON DATABASE shop TO {", ".join(ROLES)};
GRANT USAGE ON SCHEMA public TO {", ".join(ROLES)};
GRANT SELECT ON orders, customers TO reader, md5_reader, clear_reader, writer, bypass, files, creator;
GRANT INSERT, UPDATE, DELETE ON orders TO writer;
GRANT CREATE ON SCHEMA public TO creator;
"""
HBA = """
local   all root_of_tests                 trust
local   all clear_reader                  trust
local   all all                           scram-sha-256
hostssl all clear_reader  127.0.0.1/32    password
hostssl all md5_reader    127.0.0.1/32    md5
host    all all           127.0.0.1/32    scram-sha-256
"""
USER = "postgres"


class PostgresServer:
    """One cluster, on TCP with TLS and on a unix socket that trusts whoever the kernel names."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.folder = folder
        self.port = free_port()
        self.ca = authority.file
        self.password = PASSWORD
        self._bin = _binaries()
        data = folder / "data"
        certificate = authority.issue("postgres", "127.0.0.1", "db.internal")
        folder.mkdir()
        shutil.copy(certificate.chain, folder / "server.pem")
        shutil.copy(certificate.key, folder / "server.key")
        own(folder, USER)
        (folder / "server.key").chmod(0o600)
        self._run("initdb", "-D", str(data), "-U", "root_of_tests", "--auth=trust", "--no-sync", "--no-instructions",
                  "--encoding=UTF8", "--locale=C.UTF-8")  # fmt: skip
        settings = {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": str(folder),
            "ssl": "on", "ssl_cert_file": str(folder / "server.pem"), "ssl_key_file": str(folder / "server.key"),
            "fsync": "off", "shared_buffers": "16MB", "max_connections": "40", "unix_socket_permissions": "0777",
        }  # fmt: skip
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._process = Process(
            as_user(USER, [str(self._bin / "postgres"), "-D", str(data), *options]), folder / "log", self._ready,
            stop=signal.SIGINT,
        )  # fmt: skip
        self.query(SCHEMA)
        (data / "pg_hba.conf").write_text(HBA)
        self.query("SELECT pg_reload_conf()")

    @property
    def socket(self) -> Path:
        """The unix socket: a password for `reader`, none for `clear_reader`."""
        return self.folder / f".s.PGSQL.{self.port}"

    def query(self, sql: str, database: str = "postgres") -> str:
        """What `psql` prints for it, as the cluster's superuser."""
        command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-p", str(self.port), "-U",
                   "root_of_tests", "-d", database]  # fmt: skip
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def log(self) -> str:
        """The server's log."""
        return self._process.log()

    def stop(self) -> None:
        self._process.stop()

    def _run(self, name: str, *arguments: str) -> None:
        command = as_user(USER, [str(self._bin / name), *arguments])
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd="/")
        if done.returncode:
            raise RuntimeError(done.stderr)

    def _ready(self) -> bool:
        command = [str(self._bin / "pg_isready"), "-q", "-h", str(self.folder), "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0


def resources_text(postgres: PostgresServer, user: str = "reader", name: str = "shop") -> str:
    """resources.yaml with the database of the test server."""
    return (
        f"version: 1\ndatabases:\n  {name}:\n    kind: postgresql\n    host: 127.0.0.1\n    port: {postgres.port}\n"
        f"    database: shop\n    user: {user}\n    password: {{env: {PASSWORD_IN}}}\n    ca: {postgres.ca}\n"
    )


def _binaries() -> Path:
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists() and os.access(folder / "postgres", os.X_OK):
            return folder
    raise RuntimeError("PostgreSQL is not installed; run `make test-servers`")
