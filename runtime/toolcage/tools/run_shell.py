"""`run_shell`: runs one bash command text in a cage, exactly as `bash -c` would, and hands back what it printed.

Restricts nothing and looks for no words: what the text may do is what the cage lets any program do. The body becomes
bash itself (`execve`), so signals, exit codes and output are bash's own and no process of ours stands between. bash
reads no login or start-up file and gets an environment that is a constant of this module. Files that it leaves in the
workspace come out as artifacts. Its mounts are `noexec`: a script that it wrote runs as `bash script.sh`.

There is no result document when all goes well, for there is no Python left to write one. With `session` isolation bash
is a child instead, because the process must live on: files stay for the next command, variables of bash do not.
"""

import os
import signal
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure

WORKSPACE: Final = "/workspace"
BASH: Final = "/usr/bin/bash"
MAX_CHARACTERS: Final = 32_000
"""At four bytes each, and with the NUL, just below the kernel's limit for one argument (128 KiB)."""

ENVIRONMENT: Final = {
    "HOME": WORKSPACE,
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "SHELL": BASH,
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108 - the cage's own tmpfs
}

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "command": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_CHARACTERS,
            "description": "A bash command line or script.",
        }
    },
    "required": ["command"],
    "additionalProperties": False,
}
_KINDS: Final = {"command": "shell"}


class RunShell(Tool):
    """Runs a bash command text."""

    name = "run_shell"
    description = (
        "Runs a bash command line or script in an isolated sandbox and returns what it printed. Use it to search, "
        "filter, compare, count or rearrange text and attached files with grep, sed, awk, jq, sort, find, diff or "
        "tar. Do not use it for arithmetic (use calculate_expression), for analysis that needs Python libraries (use "
        "execute_python), or to reach the network (unless hosts are named at the end of this text), the user's files "
        "or other programs: it cannot, and nothing can be installed. Input: `command`, one text for bash; attached "
        "files are in the current folder; run a script file as `bash FILE`. "
        "Output: stdout, stderr, exit code, and files written to the current folder as artifacts."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset[str]()
    image = "shell"
    isolation = "container"
    accepts_files = True

    def execute(self, command: str) -> Any:
        """Becomes bash and does not return. Raises ToolFailure where that is not possible."""
        text = _argument(command)
        if os.path.isdir(WORKSPACE):
            os.chdir(WORKSPACE)
        if self.context.get("session") is True and (pid := os.fork()) != 0:
            raise SystemExit(_exit_code(os.waitpid(pid, 0)[1]))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these two, and bash would inherit that
            signal.signal(number, signal.SIG_DFL)
        try:
            proxy = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
            os.execve(BASH, [b"bash", b"--noprofile", b"--norc", b"-c", text], ENVIRONMENT | proxy)  # noqa: S606 - its purpose
        except OSError as error:
            message = f"bash could not be started: {os.strerror(error.errno or 0)}"
            raise ToolFailure("shell.not_started", message, "The image of this tool must be one with bash.") from None


def _exit_code(status: int) -> int:
    """As bash itself tells how a command ended."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def _argument(command: str) -> bytes:
    if "\x00" in command:
        raise ToolFailure("shell.nul", "The command holds a NUL character.", "Write $'\\0' or printf '\\0' instead.")
    try:
        return command.encode("utf-8")
    except UnicodeEncodeError:
        message = "The command holds half of a surrogate pair, which is no text."
        raise ToolFailure("shell.text", message, "Write the character itself.") from None
