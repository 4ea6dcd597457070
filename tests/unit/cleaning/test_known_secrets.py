"""Known values are found in every way to write them, and keys by their issuers' checksums, pairs and prefixes."""

import base64
import html
import itertools
import json
from urllib.parse import quote, quote_plus

import pytest

from toolcage.cleaning import neutralise
from toolcage.cleaning.secret_shapes import checksum
from toolcage.cleaning.secrets import redact_secrets
from toolcage.types import OutputTerms

VALUES = ["hunter2", 'p4$$/w"örd+9', "a?b&c=d e", "<canary-5f2c9a7be1>", "Tr0ub4dor&3'x", "пароль-42", "line\nbreak"]
WRITTEN = {
    "plain": lambda v: v,
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 after one byte": lambda v: base64.b64encode(b"u" + v.encode() + b"tail").decode(),
    "base64 after two bytes": lambda v: base64.b64encode(b"u:" + v.encode() + b"tail").decode(),
    "base64 for addresses": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
    "base32": lambda v: base64.b32encode(v.encode()).decode(),
    "hexadecimal": lambda v: v.encode().hex(),
    "hexadecimal, upper case": lambda v: v.encode().hex().upper(),
    "url": lambda v: quote(v, safe=""),
    "url, path": lambda v: quote(v),
    "url, form": lambda v: quote_plus(v),
    "json": lambda v: json.dumps(v)[1:-1],
    "json, unescaped": lambda v: json.dumps(v, ensure_ascii=False)[1:-1],
    "json in json": lambda v: json.dumps(json.dumps(v)[1:-1])[1:-1],
    "html": html.escape,
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN.keys())
@pytest.mark.parametrize("frame", ["{}", "é {} é", "x{}y"])
def test_a_known_value_is_redacted_however_it_is_written(value: str, write: object, frame: str) -> None:
    written = write(value)  # type: ignore[operator]
    text, count = redact_secrets(frame.format(written), [value], shapes=False)
    assert count >= 1
    middle = len(written) // 2
    assert written[middle - 2 : middle + 2] not in text


UMLAUTS = "p\u00e4ssw\u00f6rd-\u00c3/7+x"
MARKUP = "sk-<a>&b'c\"d e&f"
SPELLED = {
    "latin-1": (UMLAUTS, UMLAUTS.encode("latin-1").decode("utf-8", "replace")),
    "latin-1 in percent": (UMLAUTS, quote(UMLAUTS.encode("latin-1"), safe="")),
    "latin-1 in a program": (UMLAUTS, repr(UMLAUTS.encode("latin-1"))[2:-1]),
    "latin-1 in hexadecimal": (UMLAUTS, UMLAUTS.encode("latin-1").hex(":").upper()),
    "latin-1 in base64": (UMLAUTS, base64.b64encode(b"u:" + UMLAUTS.encode("latin-1") + b"tail").decode()),
    "percent twice": (UMLAUTS, quote(quote(UMLAUTS, safe=""), safe="")),
    "every letter in percent": (MARKUP, "".join(f"%{byte:02X}" for byte in MARKUP.encode())),
    "html by name": (UMLAUTS, UMLAUTS.replace("\u00e4", "&auml;").replace("\u00f6", "&ouml;")),
    "html by number": (UMLAUTS, UMLAUTS.encode("ascii", "xmlcharrefreplace").decode()),
    "html of json": (MARKUP, html.escape(json.dumps(MARKUP)[1:-1])),
    "json by number": (MARKUP, "".join(f"\\u{ord(one):04x}" for one in MARKUP)),
    "quotes doubled as in SQL": (MARKUP, MARKUP.replace("'", "''")),
    "quotes doubled as in csv": (MARKUP, MARKUP.replace('"', '""')),
    "quoted in a shell": (MARKUP, MARKUP.replace("'", "'\\''")),
    "fingerprint, mixed case": (MARKUP, MARKUP.encode().hex(":").replace("d", "D")),
}  # fmt: skip


@pytest.mark.parametrize(("value", "written"), SPELLED.values(), ids=SPELLED.keys())
def test_a_known_value_is_redacted_in_every_spelling_that_a_portal_masks(value: str, written: str) -> None:
    for before, after in (("x ", " y"), ("é ", " é"), ("", "\u200b")):
        text = neutralise(before + written + after, OutputTerms(redact=()), (value,))[0]
        assert "[redacted:secret]" in text
        middle = len(written) // 2
        assert written[middle - 3 : middle + 3] not in text


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\x1b[1m", "\x00", "\u202e", "[U+200B]"])
@pytest.mark.parametrize("write", [WRITTEN["plain"], WRITTEN["base64"], WRITTEN["hexadecimal"]])
def test_a_known_value_split_by_hidden_characters_is_redacted(write: object, hidden: str) -> None:
    written = write("canary-5f2c9a7be1")  # type: ignore[operator]
    text = redact_secrets(hidden.join(written), ["canary-5f2c9a7be1"], shapes=False)[0]
    assert text.startswith("[redacted:secret]")
    assert text.removeprefix("[redacted:secret]").replace(hidden, "") in ("", "E=")  # bits that are not its alone


def test_a_character_beyond_ascii_is_not_taken_for_a_question_mark_of_a_known_value() -> None:
    assert redact_secrets("abéd ab?d", ["ab?d"], shapes=False)[0] == "abéd [redacted:secret]"


def test_the_checksum_is_the_one_that_github_published() -> None:
    assert checksum("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"


LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYzAbCd"


LOWER = next("".join(letters) for letters in itertools.product("ab", repeat=30) if checksum("".join(letters)).islower())


@pytest.mark.parametrize("prefix", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_"])
def test_a_token_of_small_letters_is_a_secret_if_its_checksum_is_right_and_a_name_if_not(prefix: str) -> None:
    assert redact_secrets(prefix + LOWER + checksum(LOWER))[1] == 1
    assert redact_secrets(prefix + LOWER + "1" + checksum(LOWER)[1:-1] + "0")[1] == 0
    assert redact_secrets(prefix + "exampleexampleexampleexampleexample01")[1] == 0
    assert redact_secrets(prefix + LETTERS + "000000")[1] == 1  # as mixed as a real one


SECRET40 = "wJalrXUtnFEMIxK7MDENGxbPxRfiCYzzzzzzKEY1"


@pytest.mark.parametrize("between", [",", " ", "\t", '","', "\n", " | "])
def test_an_aws_secret_beside_its_id_is_redacted_and_a_digest_is_not(between: str) -> None:
    assert SECRET40 not in redact_secrets(f"AKIAQ7ZX3WPLM4TNB6VD{between}{SECRET40}")[0]
    digest = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
    assert digest in redact_secrets(f"AKIAQ7ZX3WPLM4TNB6VD{between}{digest}")[0]


HEX = "0123456789abcdef"
B = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ7kL9mN1pQ3rS5tU7"
SERVICES = {
    "digitalocean": "dop_v1_" + HEX * 4, "docker": "dckr_pat_" + B[:27], "databricks": "dapi" + HEX * 2,
    "shopify": "shpat_" + HEX * 2, "supabase": "sbp_" + HEX * 2 + HEX[:8], "sentry": "sntrys_" + B[:60],
    "groq": "gsk_" + B[:52], "grafana": "glsa_" + B[:32] + "_" + HEX[:8], "xai": "xai-" + B[:80],
    "perplexity": "pplx-" + B[:48], "vault": "hvs." + B[:28], "postman": "PMAK-" + HEX + HEX[:8] + "-" + HEX * 2 + "01",
    "new relic": "NRAK-" + "AB3DE5FG7HJ9KL1MN3PQ5RS7TU9", "atlassian": "ATATT3" + B + "_x=1",
    "linear": "lin_api_" + B[:40], "notion": "ntn_" + B[:46], "netlify": "nfp_" + B[:36],
    "planetscale": "pscale_tkn_" + B[:43], "rubygems": "rubygems_" + HEX * 3, "replicate": "r8_" + B[:37],
    "azure client": "aB3" + "8Q~" + B[:34], "azure storage": (B * 2)[:76] + "+AStaB3dE5==",
    "azure devops": (B * 2)[:76] + "AZDO" + "a1B2", "azure sas": "?sv=2024&sig=" + B[:43] + "%3D",
    "github app": "ghs_12345_eyJ" + B[:60], "putty": "Private-Lines: 2\n" + B[:64] + "\n" + B[:40],
    "openssh": "-----BEGIN OPENSSH PRIVATE KEY-----\n" + B[:70] + "\n-----END OPENSSH PRIVATE KEY-----",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + B[:64] + "\n=AbCd\n-----END PGP PRIVATE KEY BLOCK-----",
    "huggingface": "hf_" + LETTERS + "AbCd", "pypi": "pypi-AgEIcHlwaS5vcmc" + B[:60],
    "mongodb": "mongodb+srv://app:s3cr3tpw@cluster.example/db", "jdbc": "jdbc:mysql://h/db?user=a&password=s3cr3tpw",
    "odbc": "Server=db;Uid=app;Pwd=s3cr3tpw;", "basic auth": "https://user:s3cr3tpw@example.com/",
}  # fmt: skip


@pytest.mark.parametrize("key", SERVICES.values(), ids=SERVICES.keys())
def test_the_keys_of_many_services_are_redacted(key: str) -> None:
    text, count = redact_secrets(f"here: {key} end")
    assert count >= 1
    assert ("s3cr3tpw" if "s3cr3tpw" in key else key[14:30]) not in text
    assert redact_secrets(text) == (text, 0)


@pytest.mark.parametrize("value", ["password", "paſſword", "PASSWORD", "toKen", "Apı_key", "SECRET_\u212aEY"])
def test_a_name_is_recognised_in_any_case_and_in_letters_that_fold_to_its_own(value: str) -> None:
    assert "0123abcd4567efgh0123" not in redact_secrets(f"{value}=0123abcd4567efgh0123")[0]


def test_a_password_in_a_value_that_is_no_password_is_still_found() -> None:
    assert redact_secrets("password: [redacted:x] password: hunter2x")[1] == 1


def test_a_password_behind_a_name_whose_value_was_redacted_is_still_found() -> None:
    assert redact_secrets("API-KEY => [redacted:x]password: hunter2x")[0].endswith("password: [redacted:password]")
