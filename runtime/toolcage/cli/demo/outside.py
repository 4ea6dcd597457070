"""What the demo starts beside the cages, for the researcher alone: a wiki and a letterbox on loopback.

Only where a step of that role is played, and ended with the demo on every path. Where the wiki cannot be had, the
researcher's policy is not loaded and `why_not` says why: each of the rows shows it, and the demo does not pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock, verify
from toolcage.cli.demo import wiki
from toolcage.cli.demo.letterbox import Letter, Letterbox
from toolcage.cli.demo.step import Step
from toolcage.errors import ImageError
from toolcage.state import default_state_dir

POLICY: Final = Path(__file__).with_name("researcher.yaml")
_RESOURCES: Final = """\
endpoints:
  en: {{url: "{api}"}}
mailboxes:
  research:
    address: research@example.com
    smtp: {{host: 127.0.0.1, port: {port}, tls: none}}
"""


@dataclass(slots=True, kw_only=True)
class Outside:
    """`policies` and `resources` belong to what is there; both are empty where nothing is."""

    policies: tuple[Path, ...] = ()
    resources: str = ""
    _letterbox: Letterbox | None = None
    _wiki: wiki.Wiki | None = None
    _absent: str | None = None
    _started: bool = field(default=False)

    def why_not(self, step: Step) -> str | None:
        """Why this step cannot be shown, None when it can be. Waits for the wiki when a step needs it."""
        if step.role != "researcher":
            return None
        if self._wiki is not None and not self._started and self._absent is None:
            try:
                self._wiki.start()
                self._started = True
            except wiki.WikiUnavailable as unavailable:
                self._absent = str(unavailable)
        return self._absent

    def letters(self) -> Sequence[Letter]:
        """What the letterbox has got."""
        return () if self._letterbox is None else self._letterbox.letters


@contextlib.contextmanager
def outside(steps: Iterable[Step]) -> Iterator[Outside]:
    """What these steps need, from its start to its end. The wiki is being made meanwhile."""
    if all(step.role != "researcher" for step in steps):
        yield Outside()
        return
    if (absent := wiki.absent() or _image_absent()) is not None:
        yield Outside(_absent=absent)
        return
    with Letterbox() as letterbox, wiki.Wiki() as encyclopaedia:
        resources = _RESOURCES.format(api=encyclopaedia.api, port=letterbox.port)
        yield Outside(policies=(POLICY,), resources=resources, _letterbox=letterbox, _wiki=encyclopaedia)


def _image_absent() -> str | None:
    """Why the image of the researcher's tools cannot be used, None when it can be."""
    engine = Engine.connect()
    try:
        verify(engine, ImageLock.load(default_state_dir()).resolve("web"))
    except ImageError as error:
        return str(error)
    finally:
        engine.close()
    return None
