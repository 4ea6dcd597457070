"""Facts of a shell text: its plain words, if it is nothing but words, and labels for what else it does.

The labels are for people and logs. No rule trusts them: there are a hundred ways to write each of them differently, and
the shell tool runs its text in a cage, where nothing depends on how it looks. What may be trusted is `argv`: it exists
only when the text is one command of literal words, without anything that a shell would expand or act upon.

`environment_name` says which variables make a loader, an interpreter or a tool run other code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.types import Facts

Label = Literal[
    "sequence", "pipe", "background", "redirect", "here_document", "substitution", "expansion", "glob", "brace",
    "group",
    "function", "comment", "assignment", "escape", "control", "unterminated",
]  # fmt: skip
MAX_READ: Final = 64 * 1024

_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_./:,@%+=\-]+", re.ASCII)
_SETS: Final = r"(?:export|setenv|set|(?:env|declare|typeset)(?:\s+-\S+)*)\s+[\"']?"
_ASSIGNMENT: Final = re.compile(
    rf"(?:(?<=[\s;&|(`])|\A)(?:{_SETS})?([A-Za-z_][A-Za-z0-9_]{{0,64}})(?:\+?=|(?<=setenv)\s)", re.ASCII
)
_VALUE: Final = re.compile(r"\"[^\"]{0,2000}\"?|'[^']{0,2000}'?|[^\s;&|]{0,2000}")
_LOADER_PREFIXES: Final = (
    "LD_", "DYLD_", "PYTHON", "GIT_", "NPM_CONFIG_", "NODE_", "PERL5", "RUBY", "JAVA_TOOL", "_JAVA", "JDK_JAVA",
    "BASH_FUNC_",
    "GCONV", "MALLOC_", "GLIBC_", "PIP_", "UV_", "CARGO_", "DOTNET_", "COREHOST_", "PHP", "LUA_", "R_PROFILE",
    "R_ENVIRON",
)  # fmt: skip
_LOADER_NAMES: Final = frozenset(
    {
        "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "PATH", "CDPATH", "ZDOTDIR",
        "EDITOR",
        "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "SHELL", "HOME", "NLSPATH", "LOCPATH",
        "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN", "TERMINFO", "TERMCAP", "CLASSPATH", "JAVA_OPTS", "MAVEN_OPTS",
        "GRADLE_OPTS", "CC", "CXX", "LD", "AR", "MAKEFLAGS", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE",
        "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES",
        "KUBECONFIG", "DOCKER_HOST", "DOCKER_CONFIG", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SUDO_ASKPASS",
    }
)  # fmt: skip

# What a *text* may not set, since only a loader or an interpreter reads it: `IFS=`, `PATH=` and `CC=` are everyday
# shell.
_TEXT_LOADERS: Final = re.compile(
    r"LD_(?!BIND_|DEBUG\Z|SHOW_AUXV|TRACE_|VERBOSE|WARN).*|DYLD_.*|BASH_FUNC_.*|BASH_ENV"
    r"|PYTHON(?:STARTUP|HOME|INSPECT|BREAKPOINT)|PERL5DB|GCONV_PATH|GLIBC_TUNABLES|LESSOPEN|GIT_SSH(?:_COMMAND)?"
    r"|GIT_EXTERNAL_DIFF|PROMPT_COMMAND"
)
# Options for an interpreter: what sizes its memory or turns warnings off is everyday, what names code to load is not.
_OPTIONS: Final = {
    "PYTHONWARNINGS": r"[A-Za-z_]\w*:[^:]*:[A-Za-z_]\w*\.",
    "NODE_OPTIONS": r"-r\b|--(?:require|import|loader|experimental-loader|inspect|env-file|eval|openssl-config"
    r"|conditions)",
    "RUBYOPT": r"-\S*[rI]",
    "PERL5OPT": r"-\S*[mMId]",
    "JAVA": r"-(?:javaagent|agent|Xbootclasspath|Xrun|cp|classpath)|-D(?:java\.|com\.sun\.)\S*="
    r"|--(?:module|class|patch|upgrade)|-XX:\S*=|@",
}
_JAVA_OPTIONS: Final = re.compile(r"_?JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellFacts(Facts):
    """`argv` None = more than one command of literal words. `variables`: names that the text assigns, upper case as
    given; `loaders`: those of them that would load or run other code."""

    kind: Literal["shell"] = "shell"
    argv: tuple[str, ...] | None = None
    labels: frozenset[Label] = frozenset()
    variables: frozenset[str] = frozenset()
    loaders: frozenset[str] = frozenset()
    utf8_bytes: int = 0
    has_nul: bool = False


def read(text: str) -> ShellFacts:
    """The facts of `text`. Never refuses; a text beyond MAX_READ characters has facts of its beginning only."""
    looked_at = text[:MAX_READ]
    words, labels = _lex(looked_at)
    assigned = [(match[1], _value(looked_at, match.end())) for match in _ASSIGNMENT.finditer(looked_at)]
    variables = frozenset(name for name, _ in assigned)
    if variables:
        labels = labels | {"assignment"}
    return ShellFacts(
        argv=tuple(words) if words and not labels and len(text) <= MAX_READ else None,
        labels=labels,
        variables=variables,
        loaders=frozenset(name for name, value in assigned if _loads(name, value)),
        utf8_bytes=len(text.encode("utf-8", "surrogatepass")),
        has_nul="\x00" in text,
    )


def _value(text: str, start: int) -> str:
    match = _VALUE.match(text, start)
    return match.group() if match else ""


def _loads(name: str, value: str) -> bool:
    """Whether a text that sets the variable makes a program load other code. What a shell would put into the value
    counts as naming some."""
    if _TEXT_LOADERS.fullmatch(name):
        return True
    named = _OPTIONS.get("JAVA" if _JAVA_OPTIONS.fullmatch(name) else name)
    return named is not None and (re.search(named, value) is not None or any(sign in value for sign in "$`\\"))


def environment_name(name: str) -> bool:
    """Whether a variable of this name changes which code, library, certificate or program is used: it is never taken
    from input. `*_PROXY` too, in either case."""
    upper = name.upper()
    return upper in _LOADER_NAMES or upper.startswith(_LOADER_PREFIXES) or upper.endswith(("_PROXY", "_OPTIONS"))


def is_plain_value(word: str) -> bool:
    """Whether a word can stand in an argument vector as data: it cannot be taken for an option and holds no control."""
    return bool(word) and not word.startswith("-") and word.isprintable()


_OPERATORS: Final[dict[str, Label]] = {
    ";": "sequence", "\n": "sequence", "\r": "sequence", "&": "background", "|": "pipe", "<": "redirect",
    ">": "redirect", "`": "substitution", "$": "expansion", "*": "glob", "?": "glob", "[": "glob", "]": "glob",
    "{": "brace", "}": "brace", "(": "group", ")": "group", "!": "expansion", "~": "expansion", "#": "comment",
    "^": "pipe", "\\": "escape",
}  # fmt: skip


def _lex(text: str) -> tuple[list[str], frozenset[Label]]:
    """Words and labels in one pass. A word is exact only while there are no labels."""
    words: list[str] = []
    labels: set[Label] = set()
    word: list[str] = []  # its pieces; an empty piece makes a word too
    position, end = 0, len(text)
    while position < end:
        plain = _PLAIN_WORD.match(text, position)
        if plain is not None:
            word.append(plain.group())
            position = plain.end()
            continue
        character = text[position]
        if character in " \t":
            if word:
                words.append("".join(word))
            word.clear()
            position += 1
        elif character in "'\"":
            inner, position, found = _quoted(text, position)
            word.append(inner)
            labels |= found
        else:
            labels |= _label(text, position)
            word.append(character)
            position += 1
    if word:
        words.append("".join(word))
    return words, frozenset(labels)


def _label(text: str, position: int) -> set[Label]:
    two = text[position : position + 2]
    if two in ("$(", "<(", ">("):
        return {"substitution"}
    if two == "<<":
        return {"here_document"}
    if two in ("&&", "||"):
        return {"sequence"}
    if two == "()":
        return {"function"}
    character = text[position]
    if character in _OPERATORS:
        return {_OPERATORS[character]}
    return set() if character.isprintable() and not character.isspace() else {"control"}


def _quoted(text: str, start: int) -> tuple[str, int, set[Label]]:
    """What stands between quotes, where they end, and what a shell would still do inside."""
    quote = text[start]
    end = text.find(quote, start + 1)
    if end < 0:
        return text[start + 1 :], len(text), {"unterminated"}
    inner = text[start + 1 : end]
    labels: set[Label] = set()
    if quote == '"':
        labels |= {"substitution"} if "`" in inner or "$(" in inner else set()
        labels |= {"expansion"} if "$" in inner or "!" in inner else set()
        labels |= {"escape"} if "\\" in inner else set()
    if not inner.isprintable():
        labels.add("control")
    return inner, end + 1, labels
