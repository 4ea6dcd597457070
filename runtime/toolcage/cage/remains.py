"""A container of a cage that did not come up, kept in mind until it is known to be gone.

An engine that stops answering while a container is made may have made it, or may still be making it, and cannot be
asked to remove it. Whoever started the cage is told (`OnRemains`), and asks again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from toolcage.cage.engine import Engine, EngineSilent
from toolcage.errors import EngineError

SETTLE_S: Final = 60.0
"""How long an engine may still be making a container after it was heard of last."""


class Remains:
    """One container, by its name or id. `made`: the engine said that it made it."""

    def __init__(self, engine: Engine, container: str, made: bool) -> None:
        self._engine = engine
        self._container = container
        self._made = made
        self._since = time.monotonic()

    def destroy(self) -> bool:
        """Whether it is gone for good. Raises EngineError when the engine does not say."""
        return self._engine.remove(self._container) or self._made or time.monotonic() - self._since > SETTLE_S


OnRemains = Callable[[Remains], None]


def clear(engine: Engine, container: str, made: bool, failure: BaseException, on_remains: OnRemains | None) -> None:
    """Removes what a failed creation left, or tells `on_remains` of it. Never raises for the engine's sake."""
    if not made and isinstance(failure, EngineError) and not isinstance(failure, EngineSilent):
        return  # a refusal: nothing was made
    remains = Remains(engine, container, made)
    try:
        gone = remains.destroy()
    except EngineError:
        gone = False
    if not gone and on_remains is not None:
        on_remains(remains)
