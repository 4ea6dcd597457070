# ruff: noqa: E501 - tables of keys read better in long lines
"""What stands around a secret, or how it is built, gives it away; words of prose, code and interfaces stay."""

import base64
import hashlib
import json
from urllib.parse import quote

import pytest

from toolcage.cleaning import clean_json
from toolcage.cleaning.secret_keys import named_secret
from toolcage.cleaning.secret_values import checksum
from toolcage.cleaning.secrets import redact_secrets
from toolcage.types import OutputTerms, freeze, thaw

WORD = "x7gEbnZk2Lpq"
A40 = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
B64 = base64.b64encode(hashlib.sha512(b"x").digest() * 4).decode().replace("=", "")
BASIC = base64.b64encode(b"ann:hunter2x").decode()
UUID = "550e8400-e29b-41d4-a716-446655440000"


def base58_checked(payload: bytes) -> str:
    raw = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, digits = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit] + digits
    return digits


PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + B64[:64] + "\n-----END RSA PRIVATE KEY-----"
WALLET = base58_checked(b"\x80" + bytes(range(100, 132)))
SECRETS = {  # what stands before it, it, what stands behind it
    "authorization of any scheme": ("Authorization: Splunk ", UUID, ""),
    "authorization of few characters": ("Authorization: Basic ", BASIC, ""),
    "bearer uuid": ("Authorization: Bearer ", UUID, ""),
    "okta": ("SSWS ", "00" + A40, ""),
    "docker": ('{"auths": {"h": {"auth": "', BASIC, '"}}}'),
    "npm": ("_auth=", BASIC, ""),
    "app key": ("DD_APP_KEY=", HEX + HEX[:8], ""),
    "header key": ("X-Auth-Key: ", HEX + "12345", ""),
    "laravel": ("APP_KEY=", "base64:" + B64[:43] + "=", ""),
    "wireguard": ("PresharedKey = ", B64[:43] + "=", ""),
    "rails": ("secret_key_base: ", HEX * 4, ""),
    "query": ("https://h/?a=b&key=", A40, "&c=d"),
    "session cookie": ("Set-Cookie: PHPSESSID=", HEX, "; Path=/"),
    "framework cookie": ("Cookie: .AspNetCore.Cookies=", "CfDJ8" + A40, "; a=b"),
    "presigned": ("https://b/k?X-Amz-Signature=", HEX * 2, "&x=1"),
    "aws session": ("aws_session_token = ", "IQoJb3JpZ2lu" + B64, ""),
    "option": ("tool --token ", A40, " run"),
    "quoted option": ("tool --db-password '", WORD, "' run"),
    "sshpass": ("sshpass -p '", WORD, "' ssh h"),
    "curl": ("curl -s -u admin:", WORD, " https://h/"),
    "mysql": ("mysql -uroot -p", WORD, " shop"),
    "sql user": ("CREATE USER app WITH PASSWORD '", WORD, "';"),
    "sql identified": ("CREATE USER 'a'@'%' IDENTIFIED BY '", WORD, "';"),
    "tag": ("<password>", WORD, "</password>"),
    "attribute": ('<add key="ApiKey" value="', A40, '"/>'),
    "name and value": ('{"name": "DB_PASSWORD", "value": "', WORD, '"}'),
    "define": ("define('DB_PASSWORD', '", WORD, "');"),
    "bytes": ("secret_key = b'", WORD, "'"),
    "json in json": ('{\\\\\\"password\\\\\\": \\\\\\"', WORD, '\\\\\\"}'),
    "json in html": ("{&quot;password&quot;: &quot;", WORD, "&quot;}"),
    "percent-encoded": ("user%3Dann%26password%3D", WORD, "%26x%3D1"),
    "url percent-encoded": ("url=postgres%3A%2F%2Fapp%3A", WORD, "%40db%2Fshop"),
    "wireless": ('psk="', WORD, '"'),
    "netrc lines": ("machine h\n  login ann\n  password ", WORD, "\n"),
    "pgpass": ("db.example.com:5432:shop:app:", WORD, ""),
    "oracle": ("jdbc:oracle:thin:scott/", WORD, "@h:1521:x"),
    "said": ("The password is ", WORD, "."),
    "German": ("Passwort: ", WORD, ""),
    "German compound": ("Datenbankpasswort: ", WORD, ""),
    "Spanish": ("CONTRASEÑA: ", WORD, ""),
    "Russian": ("Пароль: ", WORD, ""),
    "Chinese": ("密码：", WORD, ""),
    "Japanese": ("パスワード: ", WORD, ""),
    "Korean": ("비밀번호: ", WORD, ""),
    "Arabic": ("كلمة المرور: ", WORD, ""),
    "apr1": ("bob:", "$apr1$" + A40[:8] + "$" + A40[:22], ""),
    "bcrypt": ("bob:", "$2y$10$" + (A40 + A40)[:53], ""),
    "shadow": ("root:", "$6$" + A40[:16] + "$" + (A40 * 3)[:86], ":19000:0:99999:7:::"),
    "yescrypt": ("root:", "$y$j9T$" + A40[:22] + "$" + (A40 + A40)[:43], ":19000:"),
    "argon2": ("", "$argon2id$v=19$m=65536,t=3,p=4$" + A40[:22] + "$" + (A40 + A40)[:43], ""),
    "pbkdf2": ("", "pbkdf2_sha256$600000$" + A40[:22] + "$" + B64[:43] + "=", ""),
    "scram": ("", "SCRAM-SHA-256$4096:" + B64[:24] + "$" + B64[:43] + "=:" + B64[:43] + "=", ""),
    "ntlm": ("Administrator:500:", HEX + ":" + HEX, ":::"),
    "der": ('key: "', "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + B64 * 3, '"'),
    "der of a curve": ("", "MHcCAQEEI" + B64[:120], ""),
    "openvpn": (
        "", "-----BEGIN OpenVPN Static key V1-----\n" + f"{HEX}\n" * 16 + "-----END OpenVPN Static key V1-----", "",
    ),
    "jwk": ('{"kty":"OKP","d":"', A40 + "123", '"}'),
    "wallet": ("", WALLET, ""),
    "dsn": ("https://", HEX, "@o1.ingest.sentry.io/2"),
    "token as user": ("git clone https://", A40, "@git.example.com/o/r"),
    "zapier": ("https://hooks.zapier.com/hooks/catch/", "1234567/abc12de", "/"),
    "mailgun": ("", f"{HEX}-0a1b2c3d-4e5f6071", ""),
    "new relic": ("", HEX + "FFFFNRAL", ""),
    "azure openai": ("", (A40 + A40)[:52] + "JQQJ99" + A40[:26], ""),
    "known key in base64": ("token: ", base64.b64encode(f"ghp_{A40[:36]}".encode()).decode(), ""),
    "url in base64": ("  url: ", base64.b64encode(b"postgres://app:hunter2x@db/shop").decode(), ""),
    "pem percent-encoded": ("k=", quote(PEM), ""),
}  # fmt: skip


@pytest.mark.parametrize(("before", "secret", "after"), SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize("frame", ["{}", "2026-11-30 INFO\n{}\nnext"])
def test_a_secret_is_redacted_and_what_stands_around_it_stays(
    before: str, secret: str, after: str, frame: str
) -> None:
    text, count = redact_secrets(frame.format(before + secret + after))
    assert count == 1
    assert secret not in text
    start, _, end = frame.partition("{}")
    assert text.startswith(start + before + "[redacted:")
    assert text.endswith(after + end)
    assert redact_secrets(text) == (text, 0)


LATER = [
    "ABSK" + B64[:110], "bedrock-api-key-" + B64[:90], "sess-" + A40, "api_org_" + "abcdEFGH" * 4 + "ab", "fw_" + A40[:24],
    "csk-" + (HEX + HEX)[:48], "tgp_v1_" + A40 + "1-2", "jina_" + A40 + A40[:20], "pa-" + A40 + "1_2", "e2b_" + HEX + HEX[:8],
    "GOOG1E" + A40.upper() + A40[:15].upper(), "GR1348941" + A40[:20], "sk_org_live_" + A40, "cio" + A40[:32], "md-" + A40[:22],
    "mfa." + A40 + A40 + "-abc", "shpua_" + HEX, "DO00" + A40[:16].upper(), "NRJS-" + HEX[:19], "NRII-" + A40[:32],
    "hcaik_" + (HEX + HEX)[:58], "eyJrIjoi" + B64[:76], "phx_" + A40 + "abc", "sdk-" + UUID, "sgp_" + A40 + A40[:24],
    "vercel_blob_rw_" + A40[:16] + "_" + A40[:30], "vcp_" + A40 + A40[:16], "rnd_" + A40[:28], "sb_secret_" + A40[:31],
    "napi_" + (HEX + HEX)[:64], "lin_oauth_" + HEX + HEX, "1/1234567890123456:" + HEX, "ATBB" + A40[:32], "ATCTT3" + A40 * 3,
    "ATTA" + HEX + HEX + "ABCD1234", "pk_12345678_" + A40[:32].upper(), "00D" + A40[:12] + "!AQ" + A40 + A40 + "._x",
    "IGQVJ" + A40 + A40 + A40, "act." + A40 + "!1234.e1", "A21AA" + A40 + A40, f"access_token$production${HEX[:16]}${HEX}",
    "live_" + A40[:30], "sl.u." + A40 * 4, "dp.st.prd." + A40 + "abc", f"st.{UUID[:24]}.{HEX}.{HEX}", "dbtc_" + A40, "AKID" + A40[:32],
    "bce-v3/ALTAK-" + A40[:21] + "/" + HEX + HEX[:8], "t1.9euelZ" + A40 + A40 + A40, "y0_" + A40 + A40[:15], "nsec1" + (HEX * 2)[:58],
    "A3-ABC123-DEF456-GHI78-JKL90-MNO12-PQR34", "cfut_" + A40 + "12345678",
]  # fmt: skip


@pytest.mark.parametrize("key", LATER, ids=[key[:12] for key in LATER])
def test_keys_of_more_issuers_are_redacted_and_a_part_of_one_is_not(key: str) -> None:
    text, count = redact_secrets(f"key is {key}, keep it")
    assert (text.startswith("key is [redacted:"), text.endswith("], keep it"), count) == (True, True, 1)
    assert redact_secrets(key[:14])[1] == 0


CHECKED = A40[:30] + checksum(A40[:30])
BREAKS = ["\n", "\r\n", "=\n", "\n    ", "\n> ", "\\n", '" + "', "' '", '" \\\n  "', "\"\n      \""]


@pytest.mark.parametrize("prefix", ["ghp_", "npm_"])
@pytest.mark.parametrize("break_", BREAKS)
@pytest.mark.parametrize("place", [0, 7, 20, 35])
def test_a_token_in_two_parts_is_known_by_its_checksum(prefix: str, break_: str, place: int) -> None:
    split = prefix + CHECKED[:place] + break_ + CHECKED[place:]
    text, count = redact_secrets(f'x = "{split}" and more')
    assert count == 1
    assert text.endswith(']" and more')
    assert all(part not in text for part in (CHECKED[:place], CHECKED[place:]) if len(part) > 6)
    wrong = split[:-1] + ("A" if split[-1] != "A" else "B")
    assert place in (0, 35) or redact_secrets(f'x = "{wrong}" and more')[1] == 0


def test_words_behind_a_prefix_and_a_line_end_stay() -> None:
    text = "ghp_\nis the prefix of a token\nnpm_config\ncache=1"
    assert redact_secrets(text) == (text, 0)


ORDINARY = [
    f"token: {UUID}", f'"key": "{UUID}"', f"page_token={UUID}", f"session_id={UUID}", "Authorization: Bearer $TOKEN",
    "Authorization: Basic realm", "WWW-Authenticate: Bearer realm=x", "arn:aws:secretsmanager:eu:1:secret:prod/db-AbCdEf",
    "app_key = some_function_name2", "masterKey = deriveKeyFromSeed2(seed)", "appKey: SomeClassName2Foo.bar", "license_key: MIT",
    f"?key={HEX}", "session=2026-11-30-morning-standup-notes", "Cookie: _ga=GA1.2.1234567890.1234567890; theme=dark",
    "--token TOKEN", "--password-file /run/secrets/pw1", "--secret id=mysecret,src=/run/x1", "--api-key $API_KEY",
    'docker run -u "$(id -u):$(id -g)" img', "docker run -u 1000:1000 img", "mysql -u root -p mydb1", "mysql -h db-1 -P3306 shop2",
    "CREATE USER app WITH PASSWORD :pw;", "password 'must match'", "IDENTIFIED BY password_var2", "<password></password>",
    '<label for="password">Password</label>', "<token>string</token>", '{"name": "password", "type": "string"}',
    '{"name": "password", "value": ""}', '["password", "username2"]', 'getpass("Password: ")', "pass = 0", "pass: 12, fail: 3",
    "The password is incorrect.", "The password is base64-encoded.", "The password is SHA256 hashed with PBKDF2-HMAC.",
    "Passwort: mindestens 8 Zeichen", "resenha: ABC1234x", "модель: XPS13-9310", "订单号：AB1234567890", "注文番号：AB12345678",
    "パスワード：8文字以上", "db:5432:up", "*:*:*:*", "$1$ and $2", "root:x:0:0:root:/root:/bin/bash", "user:!:19000::::::",
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A" + B64, "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa" + B64,
    '{"kty":"RSA","n":"' + B64[:80].replace("+", "-").replace("/", "_") + '","e":"AQAB"}', '{"d": "M10 10 L20 20"}',
    WALLET[:-1] + ("A" if WALLET[-1] != "A" else "B"), "https://user@example.com/path", "https://git@github.com/org/repo2.git",
    f"{UUID}-0a1b2c3d", "9f86d081-884c7d65-9a2feaa0", "live_StreamSomethingName2026ABCDEFGHIJ", "live_stream_2026_recording_final",
    "pa-lease-agreement-2026-pennsylvania-form-v1", "md-outlined-text-field-2026", "api-gateway-2026-11-30-prod-eu-west-1",
    base64.b64encode(b"ghp_ is the prefix of a token of theirs").decode(), base64.b64encode(b"postgres://db.example/shop").decode(),
    "redirect_uri=https%3A%2F%2Fapp.example.com%2Fcb", "%3Aport%3A8080%40home", "password%3A%20required", "token%3Dabc",
    "https%3A%2F%2Fexample.com%3A8080%2Fa%40b", "std::password::verify2", "Password::hash2(x)", "password=_UNSET):",
    "$secret = $config->get()", "INVALID_PASSWORD = (SEC_ERROR_BASE + 1)", "spwd: 3.0-3.12",
    "OBJECT_ON_TOKEN = P11_KIT_URI_FOR_OBJECT_2", "private_key = $dir/private/cakey.pem", "p.pw_passwd = (p).pws.pw_name",
    "<privateKey>/path/to/private/key</privateKey>", "ALL:!PSK:!RC4:!ADH:!LOW@STRENGTH1",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact_secrets(text) == (text, 0)
    assert redact_secrets(f"a {text}\nb")[1] == 0


LABELS = [
    "Passwort vergessen?", "Neues Passwort:", "Contraseña", "Password used to generate the key", "パスワード", "Слова без цифр",
    "Se activó la recuperación de la cuenta. Consulta $1 para más opciones.", "Enter {{name}} here", "The <b>new</b> one",
]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_what_an_interface_says_about_a_password_is_none(label: str) -> None:
    text = json.dumps({"yourpassword": label}, ensure_ascii=False)
    assert redact_secrets(text) == (text, 0)
    assert not named_secret("password", label)


@pytest.mark.parametrize("password", ["correct horse battery", "hunter2", "пароль123", "Tr0ub4dor&3.", "pencil"])
def test_a_quoted_password_of_words_or_other_letters_is_still_one(password: str) -> None:
    assert redact_secrets(json.dumps({"password": password}, ensure_ascii=False))[1] == 1


SAID_BY_A_KEY = [
    ("dbPassword", WORD), ("X-API-Key", WORD), ("SecretAccessKey", A40), ("refresh_token", HEX), ("idToken", A40), ("token", HEX),
    ("Authorization", f"Splunk {UUID}"), ("authorization", f"Basic {BASIC}"), ("appKey", HEX), ("master_key", HEX), ("auth", BASIC),
    ("d", A40 + "123"), ("_authToken", HEX),
]
NOT_SAID_BY_A_KEY = [
    ("token", UUID), ("nextPageToken", A40), ("page_token", A40), ("continuation_token", HEX), ("sync-token", A40), ("tokens", HEX),
    ("token_type", "Bearer"), ("Authorization", "required"), ("appKey", "SomeClassName2Foo"), ("sort_key", "user#1234567890abcdef"),
    ("key", HEX), ("d", "M10 10 L20 20"), ("auth", "required"), ("showPassword", "false"), ("password_hint", "Use 8 characters"),
    ("id", HEX), ("etag", A40), ("secretName", "db-creds1"),
]


@pytest.mark.parametrize(("key", "value"), SAID_BY_A_KEY)
def test_the_key_of_an_object_says_as_much_as_a_text_would(key: str, value: str) -> None:
    assert thaw(clean_json(freeze({key: value, "x": [{key: [value]}]}), OutputTerms()).value) == {
        key: "[redacted:password]", "x": [{key: ["[redacted:password]"]}],
    }  # fmt: skip


@pytest.mark.parametrize(("key", "value"), NOT_SAID_BY_A_KEY)
def test_what_a_key_says_about_other_things_stays(key: str, value: str) -> None:
    assert thaw(clean_json(freeze({key: value}), OutputTerms()).value) == {key: value}
    text = json.dumps({key: value})
    assert redact_secrets(text) == (text, 0)
