"""Hashes, ids, images, diffs and codes are not secrets: several hundred lines that must come out as they went in."""

import base64
import random
import uuid
from collections.abc import Callable

import pytest

from toolcage.cleaning import clean_json, neutralise
from toolcage.types import OutputTerms, freeze, thaw

SECRETS = OutputTerms(html="keep")
EVERYTHING = OutputTerms(html="keep", redact=("secrets", "email", "iban", "card", "phone"))
HEX = "0123456789abcdef"
UPPER = "ABCDEFGHJKLMNPQRSTUVWXYZ"
DIGITS = "0123456789"


def word(draw: random.Random, letters: str, length: int) -> str:
    return "".join(draw.choices(letters, k=length))


def raw64(draw: random.Random, length: int) -> str:
    return base64.b64encode(draw.randbytes(length)).decode()


KINDS: dict[str, Callable[[random.Random], str]] = {
    "md5": lambda d: f"{word(d, HEX, 32)}  dist/app.tar.gz",
    "sha1": lambda d: f"commit {word(d, HEX, 40)}",
    "sha256": lambda d: f"sha256:{word(d, HEX, 64)}",
    "sha512": lambda d: f"Digest: {word(d, HEX, 128)}",
    "checksum, named": lambda d: f"checksum={word(d, HEX, 64)} etag=\"{word(d, HEX, 32)}\"",
    "short commit": lambda d: f"* {word(d, HEX, 7)} Merge branch 'release' into main",
    "index of a diff": lambda d: f"index {word(d, HEX, 7)}..{word(d, HEX, 7)} 100644",
    "diff": lambda d: f"-    key = row['{word(d, HEX, 6)}']\n+    key = row.get('{word(d, HEX, 6)}')\n",
    "diff of a password field": lambda d: "-    password = None\n+    password: str | None = field(default=None)\n",
    "hunk": lambda d: f"@@ -{d.randrange(900)},7 +{d.randrange(900)},9 @@ def secret_santa(self):",
    "uuid": lambda d: f"id={uuid.UUID(int=d.getrandbits(128), version=4)}",
    "uuid of a token": lambda d: f"token_id: {uuid.UUID(int=d.getrandbits(128), version=4)}",
    "ulid": lambda d: f"order 01{word(d, '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 24)}",
    "object id": lambda d: f'{{"_id": "{word(d, HEX, 24)}"}}',
    "stripe object": lambda d: f"customer cus_{word(d, UPPER + DIGITS, 14)} charge ch_{word(d, HEX, 24)}",
    "stripe public key": lambda d: f"pk_live_{word(d, UPPER + HEX, 24)}",
    "aws ids": lambda d: f"i-{word(d, HEX, 17)} vpc-{word(d, HEX, 8)} arn:aws:iam::{word(d, DIGITS, 12)}:role/app",
    "trace": lambda d: f"traceparent: 00-{word(d, HEX, 32)}-{word(d, HEX, 16)}-01",
    "image": lambda d: f"data:image/png;base64,{raw64(d, 300)}",
    "image lines": lambda d: "\n".join(raw64(d, 57) for _ in range(6)),
    "certificate": lambda d: f"-----BEGIN CERTIFICATE-----\n{raw64(d, 48)}\n{raw64(d, 48)}\n-----END CERTIFICATE-----",
    "public key": lambda d: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{raw64(d, 32)} user@host",
    "fingerprint": lambda d: f"SHA256:{raw64(d, 32).rstrip('=')} (ED25519)",
    "integrity": lambda d: f'"integrity": "sha512-{raw64(d, 64)}"',
    "wheel": lambda d: f"numpy-2.{d.randrange(9)}.1-cp311-cp311-manylinux_2_17.whl --hash=sha256:{word(d, HEX, 64)}",
    "docker": lambda d: f"FROM python:3.11-slim@sha256:{word(d, HEX, 64)}",
    "product": lambda d: f"SKU-{word(d, UPPER, 3)}-{word(d, DIGITS, 6)}-{word(d, UPPER + DIGITS, 4)}",
    "serial": lambda d: f"S/N {word(d, UPPER + DIGITS, 12)} P/N {word(d, DIGITS, 5)}-{word(d, DIGITS, 3)}",
    "vin": lambda d: f"VIN WVWZZZ1J{word(d, UPPER + DIGITS, 9)}",
    "isbn": lambda d: f"ISBN 978-3-16-{word(d, DIGITS, 6)}-{d.randrange(10)}",
    "ean": lambda d: f"EAN 590{word(d, DIGITS, 9)}x",
    "invoice": lambda d: f"Invoice RE-2026-{word(d, DIGITS, 10)}, customer no. {word(d, DIGITS, 8)}",
    "tracking": lambda d: f"1Z{word(d, UPPER + DIGITS, 16)}",
    "time": lambda d: f"ts=17{word(d, DIGITS, 11)} at 2026-01-17T09:30:{d.randrange(10, 60)}.123456Z",
    "coordinates": lambda d: f"52.{word(d, DIGITS, 14)}, 13.{word(d, DIGITS, 14)}",
    "float": lambda d: f"0.{word(d, DIGITS, 17)} 1e-{d.randrange(300)}",
    "address": lambda d: f"10.{d.randrange(256)}.{d.randrange(256)}.1:8080 fe80::{word(d, HEX, 4)}:{word(d, HEX, 4)} "
                         f"{':'.join(word(d, HEX, 2) for _ in range(6))}",
    "url": lambda d: f"https://example.com/a/{word(d, HEX, 32)}?page={d.randrange(99)}&sort=key#at-{d.randrange(9)}",
    "css": lambda d: f".sk-circle-{d.randrange(9)}-fade-dot-container {{ color: #{word(d, HEX, 6)}; }}",
    "slug": lambda d: f"task-management-and-desk-organisation-for-{d.randrange(99)}-people",
    "code": lambda d: f"token = tokens[{d.randrange(9)}]; secret = getpass.getpass(); api_key = os.environ['API_KEY']",
    "config": lambda d: "password: ${DB_PASSWORD}\nsecret: <your-secret>\napi_key: ********\ntoken: null",
    "count": lambda d: f"token_count={d.randrange(9999)} tokens: {d.randrange(9999)} max_tokens=4096 key: value",
    "prose": lambda d: f"The password: ask the administrator on page {d.randrange(9)}. A key: to open. Secret: none.",
    "name": lambda d: f"npm_config_registry npm_lifecycle_event_name_number_{d.randrange(9)} hf_hub_download_file",
    "migration": lambda d: f"{word(d, HEX, 12)} -> {word(d, HEX, 12)}, add orders (head)",
    "matrix": lambda d: " ".join(word(d, DIGITS, 4) for _ in range(3)),
}  # fmt: skip
LINES = [(kind, make(random.Random(f"{kind} {turn}"))) for kind, make in KINDS.items() for turn in range(8)]


@pytest.mark.parametrize(("kind", "line"), LINES)
def test_a_line_without_a_secret_is_left_as_it_is(kind: str, line: str) -> None:
    cleaned, findings = neutralise(line, SECRETS)
    assert cleaned == line
    assert not findings
    if kind not in ("public key", "tracking"):  # an address, and a number like any other
        assert neutralise(line, EVERYTHING)[0] == line


def test_all_of_them_together_are_left_as_they_are() -> None:
    text = "\n".join(line for _, line in LINES)
    assert neutralise(text, SECRETS) == (text, {})
    value = [{"line": line, "kind": kind} for kind, line in LINES]
    assert thaw(clean_json(freeze(value), OutputTerms(html="keep", max_bytes=10**7)).value) == value
