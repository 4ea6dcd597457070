"""`execute_python`: runs one program in a cage, as Python itself would run it, and hands back its last expression.

Restricts nothing: what the program may do is what the cage lets any program do. It runs as a fresh `__main__` in
`/workspace`, its output streams as it is written, an error of its own prints an ordinary traceback and ends with exit
code 1, `sys.exit` codes are kept, and a bare `await` works. Files that it leaves in the workspace come out as
artifacts; so do open matplotlib figures and what the last value shows in a notebook (`displayed`). With `session`
isolation the interpreter outlives the program: `__main__`, its variables, the event loop and the current folder stay
for the next one, and figures are closed once they are saved.

Trusts nothing about the program or its objects: calling `repr` on its value is calling the program again, in the
cage.
"""

import ast
import io
import json
import linecache
import math
import os
import sys
import traceback
import types
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.displayed import save_displayed

WORKSPACE: Final = "/workspace"
FILENAME: Final = "program.py"
MAX_VALUE_BYTES: Final = 16 * 1024
MAX_REPR_CHARACTERS: Final = 4 * 1024
MAX_DEPTH: Final = 20
MAX_FIGURES: Final = 20
EXACT_INTEGER: Final = 2**53
FONT_LISTS: Final = "/usr/share/toolcage/matplotlib"

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "minLength": 1,
            "maxLength": 262144,
            "description": "A Python program. Print what you want to see, or end with an expression.",
        }
    },
    "required": ["code"],
    "additionalProperties": False,
}
_KINDS: Final = {"code": "python"}
_CO_COROUTINE: Final = 0x80  # inspect.CO_COROUTINE


class ExecutePython(Tool):
    """Runs a Python program and returns the value of its last expression."""

    name = "execute_python"
    description = (
        "Runs a Python program in an isolated sandbox and returns what it printed and the value of its last "
        "expression. Use it to transform or analyse data, to compute what takes more than one expression, or to "
        "make a file or plot. Do not use it for a single calculation (use calculate_expression) or to reach the "
        "network (unless hosts are named at the end of this text), the user's files or a database: it cannot; pass "
        "data in the program or as attached files. "
        "Input: `code`, one program; attached files are in the current folder. Output: the last expression's value (as "
        "JSON, or its repr; a table or image also as value.html or value.png), stdout, stderr, exit code, and files "
        "written to the current folder as artifacts."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset[str]()
    isolation = "container"
    accepts_files = True
    ships = ("toolcage.tools.displayed",)

    def execute(self, code: str) -> Any:
        """The value of the last expression of `code`. Raises SystemExit where the program ends with an exit code."""
        if "\x00" in code:
            raise ToolFailure(
                "python.nul", "The program holds a NUL character.", "Write \\x00 in the program instead."
            )
        notebook = _notebook(kept=self.context.get("session") is True)
        notebook.programs += 1
        if notebook.programs == 1:
            _prepare()
        name = notebook.filename
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        # No modification time: linecache then never looks for such a file and drops nothing.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        try:
            program, last = _compiled(code, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise _ended_by(error) from None
        value = _run(program, last, notebook)
        _save_figures(close=notebook.kept)
        _flush()
        return value


class _Notebook:
    """What programs of one interpreter share: their module and, where several await, their event loop."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        self.programs = 0
        self.main = types.ModuleType("__main__")
        self.main.__dict__["__builtins__"] = __builtins__
        self.runner: Any = None

    @property
    def filename(self) -> str:
        """A name of its own for each program, so that a traceback shows the lines of the one it came from."""
        return FILENAME if self.programs == 1 else f"<program {self.programs}>"

    def awaited(self, coroutine: Any) -> Any:
        import asyncio  # a tenth of a fresh interpreter's start: only for programs that await

        if not self.kept:
            return asyncio.run(coroutine)
        if self.runner is None:
            self.runner = asyncio.Runner()
        return self.runner.run(coroutine)


_kept: list[_Notebook] = []


def _notebook(*, kept: bool) -> _Notebook:
    """The session's, or one for this program alone."""
    if not kept:
        return _Notebook(kept=False)
    if not _kept:
        _kept.append(_Notebook(kept=True))
    return _kept[0]


def _prepare() -> None:
    """Where Python would have the program: its folder, its name, its settings."""
    if os.path.isdir(WORKSPACE):
        os.chdir(WORKSPACE)
    sys.path.insert(0, os.getcwd())
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "Agg")
    _lay_out_font_list(os.environ.get("MPLCONFIGDIR", ""))


def _compiled(code: str, name: str) -> tuple[types.CodeType, types.CodeType | None]:
    """The program, and its last statement on its own where that is an expression."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        final = tree.body.pop()
        assert isinstance(final, ast.Expr)
        last = compile(ast.Expression(final.value), name, "eval", flags)
    return compile(tree, name, "exec", flags), last


def _run(program: types.CodeType, last: types.CodeType | None, notebook: _Notebook) -> Any:
    main = sys.modules["__main__"] = notebook.main
    codes = [program] if last is None else [program, last]
    try:
        if any(code.co_flags & _CO_COROUTINE for code in codes):
            value = notebook.awaited(_evaluated_async(codes, main.__dict__))
        else:
            for code in codes:
                value = eval(code, main.__dict__)  # noqa: S307 - running it is the tool's purpose, in a cage
        if last is None:
            return None
        portable = _portable(value)
        save_displayed(value)
        return portable
    except SystemExit as error:
        _save_figures(close=notebook.kept)
        _flush()
        raise SystemExit(_exit_code(error.code)) from None
    except BaseException as error:  # noqa: BLE001 - the program's outermost frame
        raise _ended_by(error) from None


async def _evaluated_async(codes: list[types.CodeType], names: dict[str, Any]) -> Any:
    """Both parts in one event loop, so that tasks begun in the program are there for its last expression."""
    value = None
    for code in codes:
        value = eval(code, names)  # noqa: S307 - as above
        if code.co_flags & _CO_COROUTINE:
            value = await value
    return value


def _exit_code(code: object) -> int:
    """As the interpreter does: None is 0, a number itself, anything else is printed and 1."""
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFF
    print(code, file=sys.stderr, flush=True)
    return 1


def _ended_by(error: BaseException) -> SystemExit:
    """Prints the traceback as Python would, without the frames of this module, and ends with 1."""
    _flush()
    trace = error.__traceback__
    while trace is not None and not _is_program(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    try:
        traceback.print_exception(type(error), error.with_traceback(trace), trace, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the program may have replaced stderr, or its error cannot be shown
        os.write(2, f"{type(error).__name__}\n".encode("utf-8", "backslashreplace"))
    _flush()
    return SystemExit(1)


def _is_program(filename: str) -> bool:
    return filename == FILENAME or filename.startswith("<program ")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112 - the program may have closed or replaced it
            continue


# --- the value -----------------------------------------------------------------------------------------------------


def _portable(value: Any) -> Any:
    """The value itself where JSON gives back exactly the same, else the beginning of its repr."""
    if _exact(value, MAX_DEPTH):
        try:
            if len(json.dumps(value)) <= MAX_VALUE_BYTES:
                return value
        except (ValueError, RecursionError):
            pass  # refers to itself
    if type(value) is str:
        return value[:MAX_REPR_CHARACTERS] + "…"
    text = repr(value)
    return text if len(text) <= MAX_REPR_CHARACTERS else text[:MAX_REPR_CHARACTERS] + "…"


def _exact(value: Any, depth: int) -> bool:
    """Exact types only: a subclass may carry more than JSON does, or answer differently each time."""
    kind = type(value)
    if value is None or kind is bool:
        return True
    if kind is str:
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if kind is int:
        return bool(-EXACT_INTEGER <= value <= EXACT_INTEGER)
    if kind is float:
        return bool(math.isfinite(value))
    if depth == 0 or kind not in (list, dict) or len(value) > MAX_VALUE_BYTES:
        return False
    if kind is dict:
        return all(type(key) is str and _exact(key, 0) and _exact(item, depth - 1) for key, item in value.items())
    return all(_exact(item, depth - 1) for item in value)


# --- figures -------------------------------------------------------------------------------------------------------


def _lay_out_font_list(folder: str) -> None:
    """matplotlib's list of fonts, where the image has one. It would make and write the same at its first import, which
    takes longer than to draw a small figure; it looks for it only where it may write."""
    if not folder or os.path.exists(folder) or not os.path.isdir(FONT_LISTS):
        return
    os.makedirs(folder, mode=0o700)
    for name in os.listdir(FONT_LISTS):
        with open(os.path.join(FONT_LISTS, name), "rb") as source, open(os.path.join(folder, name), "wb") as target:
            target.write(source.read())


def _save_figures(*, close: bool) -> None:
    """Open matplotlib figures become files of the workspace, if the program drew any and saved no such picture itself.
    A file of the program's own is never overwritten. `close` is for a session, whose next program draws others."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    try:
        for number in pyplot.get_fignums()[:MAX_FIGURES]:
            picture = io.BytesIO()
            pyplot.figure(number).savefig(picture, format="png")
            if not _is_saved(picture.getvalue()):
                with open(_free_name(), "xb") as handle:
                    handle.write(picture.getvalue())
        if close:
            pyplot.close("all")
    except Exception as error:  # noqa: BLE001 - the program's own objects; the rest of its result stands
        print(f"a figure could not be saved: {type(error).__name__}", file=sys.stderr)


def _is_saved(picture: bytes) -> bool:
    for entry in os.scandir("."):
        if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_size == len(picture):
            with open(entry.path, "rb") as handle:
                if handle.read() == picture:
                    return True
    return False


def _free_name() -> str:
    place = 1
    while os.path.lexists(f"figure_{place}.png"):
        place += 1
    return f"figure_{place}.png"
