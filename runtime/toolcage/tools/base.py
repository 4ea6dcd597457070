"""What a tool is: its declaration and its body, in one object that works on the host and in a cage.

The very same file is shipped into cages as `toolcage.tools.base`, so it imports the standard library only. An author
writes `execute` (or `_run`), or decorates a function with `@tool`; this module moves that body aside. What is left
under the public name runs the body inside a cage only: on the host it hands the call to the line (`_call_through`, set
by the runtime), and answers `denied` where there is no line to hand it to.

Trusts the author of a class that the host already imported: moving the body aside stops mistakes, it is no boundary
(the cage is). Deliberately makes no schema and reads no source: `describe` does the one, `shipping` the other. Every
cage loads it, so what most calls do not need (`inspect`, which `dataclasses` brings too) is imported where it is used.

    class Shout(Tool):                                  @tool
        name = "shout_text"                             def add_numbers(a: int, b: int) -> int:
        description = "Upper-cases a text."                 "Adds two whole numbers."
        parameters = {"text": "what to shout"}              return a + b
        def execute(self, text):
            return text.upper()

    StandardTool("count_words", "Counts the words of a text.", lambda text: len(text.split())).param("text", str, "…")
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, ClassVar, Final, overload

__all__ = ["StandardTool", "Tool", "ToolDefinitionError", "ToolFailure", "ToolResult", "tool"]

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)

# True in a cage only: the program that runs there sets it before any tool is imported.
_in_cage: bool = False
# The way to the line, set by the runtime on the host: (tool, arguments, body is async) -> result or an awaitable of it.
_call_through: Callable[[Tool, Mapping[str, Any], bool], Any] | None = None

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_CO_COROUTINE: Final = 0x80  # inspect.CO_COROUTINE
# Annotations whose JSON value is already what they promise, also where they are strings.
_UNTOUCHED: Final = (str, int, float, bool, dict, list, Any, "str", "int", "float", "bool", "dict", "list", "Any")


class ToolDefinitionError(ValueError):
    """For the developer: a tool is declared in a way that cannot be used."""


class ToolFailure(Exception):
    """Raised by a tool's body to end the call with a code and a hint of its own, without a traceback."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class ToolResult:
    """What a body may return instead of a plain value. Only these three fields ever leave a cage.

    The host's `toolcage.ToolResult` takes the same arguments and has many more fields.
    """

    __slots__ = ("data", "error", "success")

    def __init__(self, success: bool, data: Any = None, error: str | None = None) -> None:
        self.success = success
        self.data = data
        self.error = error

    def __repr__(self) -> str:
        return f"ToolResult(success={self.success!r}, data={self.data!r}, error={self.error!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not ToolResult:
            return NotImplemented
        return (self.success, self.data, self.error) == (other.success, other.data, other.error)

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __getitem__(self, key: str) -> Any:
        if key in ("success", "data", "error"):
            return getattr(self, key)
        if key == "result":
            return self.data
        raise KeyError(key)


class Tool:
    """Base class of a tool: class attributes (or properties) declare it, `execute` or `_run` is its body.

    `parameters` is a JSON Schema object, or a mapping from name to schema fragment, or from name to description; where
    it is absent it comes from `args_schema` (a pydantic model) or from the body's annotations and docstring. `kinds`,
    `effects`, `resources`, `image`, `isolation`, `wall_s` (seconds), `idempotent`, `accepts_files`, `file_uses`
    and `effects_need` mean what they mean in a `ToolDeclaration`. `ships` names further standard-library-only modules
    that the body needs in the cage.
    `context` holds what the operator and the line tell a body in the cage; on the host it is empty.

    Raises: ToolDefinitionError when a class defines both `execute` and `_run`.
    """

    name: str = ""
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    args_schema: Any = None
    kinds: Mapping[str, str] = _NOTHING
    effects: Iterable[str] = ()
    resources: Mapping[str, str] = _NOTHING
    image: str = "python"
    isolation: str = "container"
    wall_s: float = 10.0
    idempotent: bool = False
    accepts_files: bool = False
    file_uses: Mapping[str, str] = _NOTHING
    effects_need: Mapping[str, Iterable[str]] = _NOTHING
    ships: tuple[str, ...] = ()
    context: Mapping[str, Any] = _NOTHING

    _body_slot: ClassVar[Any] = None
    _function: Callable[..., Any] | None = None
    _init: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = [attribute for attribute in ("execute", "_run") if attribute in cls.__dict__]
        if len(own) == 2:
            raise ToolDefinitionError(f"{cls.__qualname__} defines both execute and _run; keep exactly one")
        if own:
            body = cls.__dict__[own[0]]
            cls._body_slot = body
            # Both names, so that neither reaches the body on the host, and super().execute() works in a cage.
            cls.execute = cls._run = _guarded(body)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **kwargs: Any) -> Tool:
        """Remembers the constructor's arguments: the cage builds the same tool from them."""
        made = object.__new__(cls)
        object.__setattr__(made, "_init", (args, kwargs))
        return made

    def execute(self, /, *positional: Any, **arguments: Any) -> Any:
        """The result of a call through the line. Takes keywords, or one mapping. Authors override this."""
        raise ToolDefinitionError(f"{type(self).__qualname__} has no body; define execute(...) or _run(...)")

    _run = execute


def _guarded(body: Any) -> Any:
    """The public method that stands where the author wrote `body`."""

    @functools.wraps(getattr(body, "__func__", body))
    def execute(self: Tool, /, *positional: Any, **arguments: Any) -> Any:
        if _in_cage:
            bound = body.__get__(self, type(self))
            if len(positional) == 1 and not arguments and isinstance(positional[0], Mapping):
                return bound(**positional[0])
            return bound(*positional, **arguments)
        return _through(self, _one_mapping(self, positional, arguments))

    @functools.wraps(getattr(body, "__func__", body))
    async def execute_async(self: Tool, /, *positional: Any, **arguments: Any) -> Any:
        import inspect

        answer = execute(self, *positional, **arguments)
        return await answer if inspect.isawaitable(answer) else answer

    return execute_async if _is_coroutine_function(getattr(body, "__func__", body)) else execute


def _is_coroutine_function(body: Any) -> bool:
    """`inspect.iscoroutinefunction`, without the import where the answer stands in a plain function's code."""
    if type(body) is FunctionType and not vars(body):
        return bool(body.__code__.co_flags & _CO_COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(body)


def _one_mapping(tool: Tool, positional: tuple[Any, ...], arguments: dict[str, Any]) -> Mapping[str, Any]:
    if not positional:
        return arguments
    if len(positional) == 1 and isinstance(positional[0], Mapping) and not arguments:
        return dict(positional[0])
    raise TypeError(f"tool {tool.name}: pass the arguments as keywords, or as one mapping")


def _through(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    """The call handed to the line; `denied` where there is none."""
    is_async = _is_coroutine_function(body_of(tool))
    if _call_through is not None:
        return _call_through(tool, arguments, is_async)
    denied = ToolResult(
        False,
        None,
        f"denied: {tool.name} was called outside a session, and a tool's body only runs in a cage; "
        "call it inside `with runtime.session(...)`, or use session.call",
    )
    # A class with an async body has an async method already; a function's tool has to answer something to await.
    return _answer(denied) if is_async and tool._function is not None else denied


async def _answer(result: ToolResult) -> ToolResult:
    return result


class _FunctionTool(Tool):
    """A tool whose body is a function; what `@tool` makes. Calling it goes the same way as `execute`."""

    def __init__(self, function: Callable[..., Any], name: str, description: str) -> None:
        self._function = function
        self.name = name
        self.description = description
        functools.update_wrapper(self, function, assigned=("__module__", "__qualname__", "__doc__"), updated=())

    def execute(self, /, **arguments: Any) -> Any:
        return body_of(self)(**arguments)

    def __call__(self, /, *positional: Any, **arguments: Any) -> Any:
        if positional:
            import inspect

            bound = inspect.signature(body_of(self)).bind(*positional, **arguments)
            arguments = dict(bound.arguments)
        return self.execute(**arguments)


class StandardTool(_FunctionTool):
    """A tool put together step by step: `StandardTool(name, description, function).param(…).param(…)`.

    The body is the third argument, or is attached by `.body(function)`. Every method returns the tool itself.
    """

    def __init__(self, name: str, description: str, function: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.description = description
        self._function = function
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        # A full schema from the start, that .param() fills: no parameter means none, not "ask the signature".
        self.parameters = {"type": "object", "properties": self._properties, "required": self._required}

    def param(
        self,
        name: str,
        type_: Any,
        description: str = "",
        required: bool = True,
        default: Any = None,
        enum: Iterable[Any] | None = None,
    ) -> StandardTool:
        """Adds one parameter. `type_` is a JSON type name, a Python type, or a schema fragment.

        `default=None` means that an absent argument stays absent; any other default makes the parameter optional.
        Raises: ToolDefinitionError for a parameter named twice or a type that has no schema.
        """
        from toolcage.tools.annotations import fragment_of

        if name in self._properties:
            raise ToolDefinitionError(f"parameter {name!r} of {self.name} is declared twice")
        fragment = fragment_of(type_, where=f"parameter {name!r} of {self.name}")
        if description:
            fragment["description"] = description
        if enum is not None:
            fragment["enum"] = list(enum)
        if default is not None:
            fragment["default"] = default
        elif required:
            self._required.append(name)
        self._properties[name] = fragment
        return self

    def body(self, function: Callable[..., Any]) -> StandardTool:
        """Attaches the function that runs in the cage. Works as a decorator."""
        self._function = function
        return self


def body_of(tool: Tool) -> Callable[..., Any]:
    """The author's own function or method, bound, ready to be called with keywords (in a cage).

    Raises: ToolDefinitionError when the tool has none.
    """
    if tool._function is not None:
        return tool._function
    slot = type(tool)._body_slot
    if slot is None or isinstance(tool, _FunctionTool):
        raise ToolDefinitionError(f"tool {tool.name or type(tool).__qualname__} has no body; define execute or _run")
    bound: Callable[..., Any] = slot.__get__(tool, type(tool)) if hasattr(slot, "__get__") else slot
    return bound


def takes_json(tool: Tool, body: Callable[..., Any]) -> bool:
    """Whether the body takes every argument as JSON has it. False also where its annotations have to be asked."""
    if (tool.parameters is None and tool.args_schema is not None) or hasattr(body, "__wrapped__"):
        return False
    try:
        hints = dict(getattr(body, "__annotations__", {}))
    except NameError:  # from Python 3.14 on: written with a name that is not there yet
        return False
    hints.pop("return", None)
    return all(hint in _UNTOUCHED for hint in hints.values())


def declaration_of(tool: Tool) -> dict[str, Any]:
    """The declaration as plain JSON data: what the host must know about the tool, and all that a cage tells about it.

    `parameters` is always one object schema with `additionalProperties: false`.
    Raises: ToolDefinitionError where something is missing, misnamed or cannot be put in a schema.
    """
    from toolcage.tools.describe import declaration

    declared: dict[str, Any] = declaration(tool, body_of(tool))
    return declared


@overload
def tool(function: Callable[..., Any], /) -> _FunctionTool: ...
@overload
def tool(
    name: str | None = None,
    /,
    *,
    description: str = "",
    args_schema: Any = None,
    parameters: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] = _NOTHING,
    effects: Iterable[str] = (),
    resources: Mapping[str, str] = _NOTHING,
    image: str = "python",
    isolation: str = "container",
    wall_s: float = 10.0,
    idempotent: bool = False,
    accepts_files: bool = False,
    file_uses: Mapping[str, str] = _NOTHING,
    ships: tuple[str, ...] = (),
) -> Callable[[Callable[..., Any]], _FunctionTool]: ...
def tool(
    name: str | Callable[..., Any] | None = None,
    /,
    *,
    description: str = "",
    args_schema: Any = None,
    parameters: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] = _NOTHING,
    effects: Iterable[str] = (),
    resources: Mapping[str, str] = _NOTHING,
    image: str = "python",
    isolation: str = "container",
    wall_s: float = 10.0,
    idempotent: bool = False,
    accepts_files: bool = False,
    file_uses: Mapping[str, str] = _NOTHING,
    ships: tuple[str, ...] = (),
) -> Any:
    """Makes a tool of a function: `@tool`, `@tool("name")`, `@tool("name", args_schema=Model)`.

    Without a name the function's own is taken; without a description, the docstring's text before its parameters.
    """

    def decorate(function: Callable[..., Any]) -> _FunctionTool:
        made = _FunctionTool(function, name if isinstance(name, str) else function.__name__, description)
        made.parameters, made.args_schema = parameters, args_schema
        made.kinds, made.effects, made.resources = kinds, effects, resources
        made.image, made.isolation, made.wall_s = image, isolation, wall_s
        made.idempotent, made.accepts_files, made.ships = idempotent, accepts_files, ships
        made.file_uses = file_uses
        return made

    return decorate(name) if callable(name) else decorate
