"""A bar for many calls, where a person watches: on standard error, so that a program's output stays its own.

Decides only whether to show one. `rich` draws it, and is loaded when it is needed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def bar(total: int, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """What to call when one of `total` is done, from any thread. `wanted` None: a bar on a terminal, else nothing."""
    if wanted is False or (wanted is None and not _watched()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("calls", total=total)
        yield lambda: shown.advance(task)


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
