"""Keys are redacted whatever hides them; what only looks random stays."""

import base64
import json
from urllib.parse import quote

import pytest

from toolcage.cleaning.secret_keys import named_secret
from toolcage.cleaning.secrets import redact_secrets

A36 = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890"}', b"signature-bytes-here-0001")
)
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(["MIIEowIBAAKCAQEA" + "x" * 48] * 5)
    + "\n-----END RSA PRIVATE KEY-----"
)
KEYS = {
    "aws id": "AKIA" + "Q7ZX3WPLM4TNB6VD",
    "github": "ghp_" + A36,
    "github fine-grained": "github_pat_11" + A36 + "_" + A36,
    "gitlab": "glpat-" + A36[:20],
    "slack": "xoxb-" + "1234567890-abcdefghij",
    "stripe": "sk_live_" + A36[:24],
    "openai": "sk-proj-" + A36 + A36,
    "openai classic": "sk-" + A36 + "abcdefghijkl",
    "anthropic": "sk-ant-api03-" + A36 + "-AA",
    "google": "AIza" + A36[:35],
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "twilio": "SK" + "0a1b2c3d" * 4,
    "mailgun": "key-" + "0a1b2c3d" * 4,
    "mailchimp": "0a1b2c3d" * 4 + "-us12",
    "airtable": "pat" + A36[:14] + "." + "0a1b2c3d" * 8,
    "discord": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + A36[:27],
    "doppler": "dp.pt." + A36 + A36[:7],
    "dynatrace": "dt0c01." + "ABCDEFGH12345678ABCDEFGH" + "." + "ABCDEF12" * 8,
    "figma": "figd_" + A36 + "-x_1",
    "hubspot": "pat-na1-550e8400-e29b-41d4-a716-446655440000",
    "notion": "secret_" + A36 + A36[:7],
    "plaid": "access-sandbox-550e8400-e29b-41d4-a716-446655440000",
    "resend": "re_" + A36[:8] + "_" + A36[:24],
    "sonar": "squ_" + "0a1b2c3d" * 5,
    "square": "sq0atp-" + A36[:22],
    "tailscale": "tskey-auth-" + A36[:12] + "CNTRL-" + A36[:20],
    "terraform": A36[:14] + ".atlasv1." + A36 + A36,
    "vault batch": "hvb." + A36 * 3,
    "kubernetes": base64.b64encode(b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + b"x" * 60).decode(),
    "jwt": JWT,
    "pem": PEM,
}
CONTEXT = {
    "aws secret": ("aws_secret_access_key = ", "wJalrXUtnFEMIxK7MDENGxbPxRfiCYzzzzzzKEY1"),
    "url": ("postgres://app:", "hunter2x@db.example/shop"),
    "password": ("password=", "hunter2x"),
    "environment": ("DB_PASSWORD=", "s3cr3t!pass"),
    "yaml": ("api_key: ", "0123abcd4567efgh"),
    "json": ('{"client_secret": "', 'correct horse"}'),
    "escaped json": ('{\\"password\\": \\"', 'correct-horse\\"}'),
    "netrc": ("machine h login ann password ", "corr3cthorse"),
    "bearer": ("Authorization: Bearer ", "abcdef0123456789abcdef"),
    "dollar": ("password: ", "$uper5ecret"),
}
INNOCENT = {
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "git": "commit c498708f2a1b3c4d5e6f708192a3b4c5d6e7f809",
    "uuid": "550e8400-e29b-41d4-a716-446655440000",
    "uuid called a token": "token=550e8400-e29b-41d4-a716-446655440000",
    "image": "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode(),
    "order id": "ORD-2026-0001234567890123456789",
    "public key": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "code": "password = get_password(user)\nsecret = os.environ['X']\npassword: str\npassword=None",
    "placeholder": "password=<password> api_key=$API_KEY password=****** secret: ${SECRET}",
    "prose": "The password: please ask the administrator. Token economics. Secret: nothing.",
    "class": "sk-circle-fade-dot-animation-container",
    "eyJ that is no header": "eyJhbGciOiJub.eyJhbGciOiJub.abcdefgh",
    "address": "https://example.com:8080/path@2x.png",
    "integrity": "sha512-" + base64.b64encode(b"x" * 64).decode(),
    "a name after nothing": "PASSWORD=\nAPI_KEY=\nDEBUG=yes1234\nSECRET=\nTOKEN=",
    "prefixes of issuers elsewhere": "re_export_names, key-value, pat.match(x), sl.append(y), live_stream_2026",
    "a certificate in base64": base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + b"x1" * 60).decode(),
    "price": "1,234,567.89 EUR",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("frame", ["{}", "key is {}, keep it", '{{"k": "{}"}}', "x={}\n", "https://h/?q={}&a=b"])
def test_a_known_key_shape_is_redacted(key: str, frame: str) -> None:
    text, count = redact_secrets(frame.format(key))
    assert count == 1
    assert key[10:] not in text
    assert redact_secrets(text) == (text, 0)


@pytest.mark.parametrize(("before", "value"), CONTEXT.values(), ids=CONTEXT.keys())
def test_a_password_that_the_text_calls_one_is_redacted(before: str, value: str) -> None:
    text, count = redact_secrets(before + value)
    assert count >= 1
    assert text.startswith(before + "[redacted:")
    assert redact_secrets(text) == (text, 0)


@pytest.mark.parametrize("text", INNOCENT.values(), ids=INNOCENT.keys())
def test_what_only_looks_like_a_key_stays(text: str) -> None:
    assert redact_secrets(text) == (text, 0)


@pytest.mark.parametrize("key", [k for k in KEYS.values() if "\n" not in k and "." not in k])
@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",
        "\u200d",
        "\u00ad",
        "\x00",
        "\x1b[31m",
        "\x1b]0;title\x07",
        "\U000e0041",
        "[U+200B]",
        "[U+200B +99 invisible]",
        "␛[31m",
        "\x9b1m",
    ],
)
def test_hidden_characters_do_not_hide_a_key(key: str, hidden: str) -> None:
    text, count = redact_secrets(f"a {key[:12]}{hidden}{key[12:]} z")
    assert count == 1
    assert key[13:] not in text
    assert text.startswith("a [redacted:")
    assert text.endswith("] z")


@pytest.mark.parametrize("name", ["aws id", "github", "gitlab", "slack", "stripe", "openai", "anthropic", "google"])
@pytest.mark.parametrize("before", ["token", "\x1b[32m", "token\x1b[32m", "x\x00", "x\u200b", "_"])
def test_a_distinctive_key_needs_no_word_border_before_it(name: str, before: str) -> None:
    assert KEYS[name][-12:] not in redact_secrets(before + KEYS[name] + "\x1b[0m")[0]


def test_a_key_inside_a_terminal_title_is_redacted() -> None:
    assert KEYS["github"] not in redact_secrets(f"\x1b]0;{KEYS['github']}\x07")[0]


SECRET = 'p4$$/w"örd+9'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        base64.b64encode(b"ab" + SECRET.encode() + b"tail").decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        json.dumps(SECRET)[1:-1],
    ],
)
def test_an_exact_value_is_redacted_in_every_encoding_and_alignment(written: str) -> None:
    text, count = redact_secrets(f"<<{written}>>", [SECRET], shapes=False)
    assert count >= 1
    assert written not in text
    assert "[redacted:secret]" in text


def test_an_exact_value_is_redacted_even_where_shapes_are_not() -> None:
    assert redact_secrets("hunter2 ghp_" + A36, ["hunter2"], shapes=False)[0] == "[redacted:secret] ghp_" + A36


def test_values_too_short_to_be_secret_are_left() -> None:
    assert redact_secrets("abc", ["abc", ""]) == ("abc", 0)


def test_a_private_key_without_its_end_or_its_beginning_is_redacted() -> None:
    lines = PEM.split("\n")
    assert lines[2] not in redact_secrets("\n".join(lines[:4]))[0]
    assert lines[2] not in redact_secrets("\n".join(lines[2:]))[0]


@pytest.mark.parametrize(
    "line",
    [
        "PWD=/workspace", "OLDPWD=/", "PWD=~", "declare -x PWD=\"/home/app/My Files\"", "PWD=C:/Users/app",
        "secret: /run/secrets/db", "private_key=~/.ssh/id_rsa", "ssl_private_key: ./certs/server.key",
        "password=/etc/app/pw1",
    ],
)  # fmt: skip
def test_the_folder_of_a_shell_and_the_path_of_a_file_are_no_passwords(line: str) -> None:
    assert redact_secrets(line) == (line, 0)


@pytest.mark.parametrize(
    "line",
    ["pwd=hunter2x!", "DB_PWD=/xK9$kd72", "PWD=hunter2x!", "secret_key=/9jQAkSKZJRgAB1234/xy", "MYPWD=/secret99"],
)
def test_a_password_that_begins_with_a_slash_is_still_one(line: str) -> None:
    assert redact_secrets(line)[1] == 1


def test_an_object_tells_the_folder_of_a_shell_from_a_password_too() -> None:
    assert not named_secret("PWD", "/workspace")
    assert named_secret("pwd", "hunter2x")
    assert not named_secret("private_key", "/run/secrets/key.pem")


@pytest.mark.parametrize("key", ["AKIAQ7ZX3WPLM4TNB6VD", "AIza" + A36[1:], "npm_" + "a1B2" * 9])
@pytest.mark.parametrize("count", [2, 21, 400])
def test_keys_glued_to_each_other_are_redacted_at_once(key: str, count: int) -> None:
    text, found = redact_secrets("x " + key * count + " y")
    assert found >= 1
    assert key[8:] not in text
    assert redact_secrets(text) == (text, 0)
