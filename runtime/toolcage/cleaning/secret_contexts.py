r"""Secrets without a form of their own: the words around them say what they are.

Headers and cookies, options of commands, statements of SQL, markup, files of passwords, and sentences, also in other
languages than English. Where those words could speak of something else too, the value must look random, or hold digits
as no word of prose does.

Not found: a secret that is split over several strings or lines, and one behind a word that is not known here.
"""

from __future__ import annotations

from typing import Final

from toolcage.cleaning.secret_values import (
    PLACEHOLDER,
    is_authorization,
    is_basic,
    is_given_password,
    is_opaque,
    is_password,
    is_scattered,
    is_session,
    is_spoken_password,
    mixed,
    names_a_place,
)
from toolcage.cleaning.shape import ANY_ASSIGNED, ASSIGNED, NAMED, QUOTE, SPACE, START, VALUE, Shape, shape


def _is_no_placeholder(value: str) -> bool:
    return PLACEHOLDER.match(value) is None and not names_a_place("", value)


def _is_not_a_word(value: str) -> bool:
    return _is_no_placeholder(value) and (mixed(value) or not (value.isalnum() or any(map(str.isspace, value))))


_SCHEMES: Final = "(?:basic|bearer|token|apikey|splunk|ssws|geniekey|bot|key|negotiate|hawk)"
_KEYS: Final = "(?:app(?:lication)?|auth|admin|master|subscription|shared|license|hmac|webhook)[_-]?key"
_SESSIONS: Final = (
    r"(?:sess(?:ion)?(?:[_.-]?(?:id|key|token))?|connect\.sid|phpsessid"
    r"|\.aspnet(?:core)?\.[a-z]{1,20}(?:\.[a-z]{1,20})?)"
)
_HEADERS: Final = (
    shape(
        "authorization",
        rf"bearer(?={SPACE}{{1,3}}[a-z0-9._~+/-]{{16}})",
        r"(?i:bearer)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{16,}+=*+)",
        mixed,
        folded=True,
    ),
    shape(
        "authorization",
        rf"authorization(?={ANY_ASSIGNED}{QUOTE}?{_SCHEMES}{SPACE}{{1,3}}[a-z0-9._~+/-]{{8}})",
        rf"(?i:authorization){ASSIGNED}{QUOTE}?(?i:{_SCHEMES})\s{{1,3}}(?P<value>[A-Za-z0-9._~+/-]{{8,}}+=*+)",
        is_authorization,
        folded=True,
    ),
    shape(
        "authorization",
        rf"ssws(?={SPACE}00[a-z0-9_-]{{20}})",
        r"(?i:ssws)\s(?P<value>00[A-Za-z0-9_-]{20,60})",
        folded=True,
    ),
    shape(  # of Docker
        "authorization",
        rf"[\"']auth(?={QUOTE}{SPACE}?:{SPACE}?{QUOTE}[a-z0-9+/]{{12}})",
        rf"(?i:[\"']auth){QUOTE}\s?:\s?{QUOTE}(?P<value>[A-Za-z0-9+/]{{12,512}}=*+)",
        is_basic,
        folded=True,
    ),
    shape(  # of npm
        "authorization",
        rf"_auth(?={SPACE}?={SPACE}?\"?[a-z0-9+/]{{12}})",
        r"(?i:_auth)\s?=\s?\"?(?P<value>[A-Za-z0-9+/]{12,512}=*+)",
        is_basic,
        folded=True,
    ),
    shape(
        "api_key",
        rf"{_KEYS}(?={ANY_ASSIGNED}{QUOTE}?(?:base64:)?[a-z0-9_~+/=-]{{16}})",
        rf"(?i:{_KEYS}){ASSIGNED}{QUOTE}?"
        r"(?P<value>base64:[A-Za-z0-9+/]{40,88}=*|[A-Za-z0-9+/]{43}=|[A-Za-z0-9_~=-]{16,256})(?![\w.(\[/+])",
        is_opaque,
        folded=True,
    ),
    shape(
        "secret_key",
        rf"secret_?key_?base(?={ANY_ASSIGNED}{QUOTE}?[a-f0-9]{{30}})",
        rf"(?i:secret_?key_?base){ASSIGNED}{QUOTE}?(?P<value>[A-Fa-f0-9]{{30,256}})",
        folded=True,
    ),
    shape("api_key", r"[?&]key=(?=[A-Za-z0-9_-]{32})", r"[?&]key=(?P<value>[A-Za-z0-9_-]{32,128})", is_scattered),
    shape(
        "session",
        rf"{_SESSIONS}=(?=[a-z0-9%._~+/-]{{20}})",
        rf"(?i:{_SESSIONS})=(?P<value>(?:[A-Za-z0-9._~+/-]|%[0-9A-Fa-f]{{2}}){{20,}}+=*+)",
        is_session,
        folded=True,
    ),
    shape(
        "signature",
        r"x-(?:amz|goog)-signature=(?=[a-f0-9]{64})",
        r"(?i:x-(?:amz|goog)-signature)=(?P<value>[a-f0-9]{64,1024})",
        folded=True,
    ),
)

_OPTIONS: Final = "--(?:[a-z]{1,12}-){0,2}(?:password|passwd|passphrase|token|secret|api-?key|access-key|secret-key)"
_COMMANDS: Final = (
    shape(
        "password",
        rf"{_OPTIONS}(?= {{1,2}}[\"']?[!-~]{{6}})",
        rf"(?i:{_OPTIONS}) {{1,2}}[\"']?(?P<value>{VALUE}{{6,256}})",
        is_given_password,
        folded=True,
    ),
    shape(
        "password",
        "sshpass -p(?= ?['\"]?[!-~]{4})",
        rf"sshpass -p ?['\"]?(?P<value>{VALUE}{{4,256}})",
        _is_no_placeholder,
    ),
    shape(
        "password",
        r"curl(?=[ -~]{0,120} (?:-u|--user)[ =]?['\"]?[!-9;-~]{1,64}:[!-~]{4})",
        rf"curl[ -~]{{0,120}}? (?:-u|--user)[ =]?['\"]?[!-9;-~]{{1,64}}:(?P<value>{VALUE}{{4,256}})",
        is_given_password,
    ),
    shape(
        "password",
        "mysql(?=[a-z]{0,10} [ -~]{0,80}-p['\"]?[!-~]{6})",
        rf"mysql[a-z]{{0,10}} (?:[ -~]{{0,79}}? )?-p['\"]?(?P<value>{VALUE}{{6,256}})",
        is_given_password,
    ),
)

_IDENTIFIED: Final = rf"identified{SPACE}{{1,3}}(?:with{SPACE}{{1,3}}[a-z0-9_'\"]{{1,40}}{SPACE}{{1,3}})?by"
_SQL: Final = (
    shape(
        "password",
        rf"(?:password|passphrase|{_IDENTIFIED}|{_IDENTIFIED}{SPACE}password)(?={SPACE}{{1,3}}'[ -&(-~]{{4}})",
        rf"(?i:password|passphrase|{_IDENTIFIED}(?:\spassword)?)\s{{1,3}}'(?P<value>[^\x00-\x1f\x7f']{{4,256}})'",
        _is_not_a_word,
        folded=True,
    ),
)

_TAGS: Final = "(?:password|passwd|passphrase|pwd|secret|token|api_?key|accesskey|secretkey|privatekey)"
_SETTINGS: Final = f"(?:{NAMED}|token)"
_SAYS_VALUE: Final = rf"{QUOTE}[ ,]{{1,3}}{QUOTE}?(?:value|val|content){QUOTE}?"
_MARKUP: Final = (
    shape(
        "password",
        rf"{_TAGS}>(?=[!-;=-~]{{4}})",
        rf"(?i:{_TAGS}>)(?P<value>[^\x00-\x20\x7f<>]{{4,256}})</(?i:[\w:.-]{{0,40}}{_TAGS})>",
        _is_no_placeholder,
        folded=True,
    ),
    shape(  # `key="ApiKey" value="…"`, `{"name": "DB_PASSWORD", "value": "…"}`
        "password",
        rf"{_SETTINGS}(?={_SAYS_VALUE}{SPACE}?[:=]{SPACE}?{QUOTE}[!-~]{{4}})",
        rf"(?i:{_SETTINGS}{_SAYS_VALUE})\s?[:=]\s?{QUOTE}(?P<value>{VALUE}{{4,256}})",
        _is_not_a_word,
        folded=True,
    ),
    shape(  # `define('DB_PASSWORD', '…')`, `setProperty("password", "…")`
        "password",
        rf"{_SETTINGS}(?=['\"]{SPACE}?,{SPACE}?['\"][!-~]{{4}})",
        rf"(?i:{_SETTINGS})['\"]\s?,\s?['\"](?P<value>{VALUE}{{4,256}})['\"]\s?\)",
        is_password,
        folded=True,
    ),
    shape(  # `secret_key = b'…'`
        "password",
        rf"{NAMED}(?={SPACE}{{0,2}}[=:]{SPACE}{{0,2}}b['\"][ -~]{{4}})",
        rf"(?i:{NAMED})\s{{0,2}}[=:]\s{{0,2}}b['\"](?P<value>[^\x00-\x1f\x7f'\"]{{4,256}})['\"]",
        _is_no_placeholder,
        folded=True,
    ),
)

_FILES: Final = (
    shape(  # of wireless networks and of rclone
        "password",
        rf"(?:psk|pass)(?={ANY_ASSIGNED}{QUOTE}?[!-~]{{8}})",
        START + rf"(?i:psk|pass){ASSIGNED}{QUOTE}?(?P<value>{VALUE}{{8,256}})",
        is_spoken_password,
        folded=True,
    ),
    shape(  # .netrc, a name on each line
        "password",
        r"password(?=[ \t]{1,4}[!-~]{6})",
        r"(?i:password)[ \t]{1,4}(?P<value>[!-~]{6,128})(?=[ \t]{0,4}(?:\n|\Z|\\[nr]))",
        is_given_password,
        folded=True,
    ),
    shape(  # .pgpass
        "password",
        r":(?:543[0-9]|6432|\*):(?=[A-Za-z0-9_.*-]{1,63}:[A-Za-z0-9_.*-]{1,63}:[!-~]{4})",
        rf":(?:543[0-9]|6432|\*):[A-Za-z0-9_.*-]{{1,63}}:[A-Za-z0-9_.*-]{{1,63}}:(?P<value>(?:{VALUE}|\\[:\\]){{4,256}})",
        is_given_password,
    ),
    shape(
        "password",
        "oracle:thin:(?=[!-.0-~]{1,64}/[!-~]{3,64}@)",
        r"oracle:thin:[!-.0-~]{1,64}/(?P<value>[^\x00-\x20\x7f@/]{3,64})@",
        _is_no_placeholder,
    ),
)

_WORDS: Final = (
    "(?:passwort|kennwort|wachtwoord|l[öÖ]senord|passord|(?<![A-Za-z])(?:contrase[ñÑ]a|clave secreta|mot de passe|senha"
    "|parola|has[łŁ]o|heslo|jelsz[óÓ]|[şŞ]ifre|salasana|adgangskode|kata sandi|m[ậẬ]t kh[ẩẨ]u))"
)
_WORDS_IN_ASCII: Final = (
    r"(?:passwort|kennwort|wachtwoord|l\?senord|passord|contrase\?a|clave secreta|mot de passe|senha|parola|has\?o"
    r"|heslo|jelsz\?|\?ifre|salasana|adgangskode|kata sandi|m\?t kh\?u)"
)
_OTHER_SCRIPTS: Final = (
    "пароль", "Пароль", "κωδικός", "Κωδικός", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호",
    "كلمة المرور", "كلمة السر", "סיסמה", "पासवर्ड", "รหัสผ่าน",
)  # fmt: skip
# Without a question mark, which is also the image of every letter that is not ASCII.
_WITH_DIGIT: Final = "(?:[!->@-~]{6,20}[0-9]|[!->@-~]{1,5}[0-9][!->@-~]{5})"
_PROSE: Final = (
    shape(
        "password",
        rf"{_WORDS_IN_ASCII}(?={SPACE}{{0,3}}[:=?]{SPACE}{{0,3}}[!-~]{{6}})",
        rf"(?i:{_WORDS})\s{{0,3}}[:=：]\s{{0,3}}(?P<value>[!-~]{{6,128}})",
        is_given_password,
        folded=True,
    ),
    shape(  # anchored at the last two letters; the colon may be a fullwidth one
        "password",
        (rf"\?\?(?=[ \t]?[:=][ \t]{{0,3}}{_WITH_DIGIT})", rf"\?\?(?=\?{_WITH_DIGIT})"),
        rf"(?:{'|'.join(_OTHER_SCRIPTS)})(?:[ \t]?[:=][ \t]{{0,3}}|：)(?P<value>{_WITH_DIGIT}[!-~]{{0,128}})",
        is_given_password,
        back=tuple(sorted({len(word) - 2 for word in _OTHER_SCRIPTS})),
        apart=True,
    ),
    shape(
        "password",
        r"(?:password|passphrase|passcode|(?:api|access|secret) key)(?= (?:is|was|=|will be|set to):? [\"'`]?[!-~]{8})",
        r"(?i:password|passphrase|passcode|(?:api|access|secret) key) (?i:is|was|=|will be|set to):? [\"'`]?"
        r"(?P<value>[^\x00-\x20\x7f\"'`]{7,127}[^\x00-\x20\x7f\"'`.,:;!?)])",
        is_spoken_password,
        folded=True,
    ),
)

CONTEXTS: Final[tuple[Shape, ...]] = (*_HEADERS, *_COMMANDS, *_SQL, *_MARKUP, *_FILES, *_PROSE)
