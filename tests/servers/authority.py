"""A certificate authority that only tests trust, and certificates for servers on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: the chain and its key."""

    chain: Path
    key: Path


class Authority:
    """Issues into one folder; `file` is what clients are told to trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca = trustme.CA()
        self.file = folder / "ca.pem"
        self.ca.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str, *hosts: str) -> Certificate:
        """A certificate for `hosts`, kept as `name`."""
        issued = self.ca.issue_cert(*(hosts or ("127.0.0.1", "localhost")))
        chain, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        key.chmod(0o600)
        return Certificate(chain=chain, key=key)
