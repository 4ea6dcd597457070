"""Where the data folders are: `policies/` and `sandbox_images/`.

An installed wheel carries them under `toolcage/_shipped/`; an editable checkout has them at its root. The installed
copy wins, so that a package never reads the folder that a program happens to stand in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def shipped_dir(name: Literal["policies", "sandbox_images"]) -> Path:
    """The data folder `name`. Raises FileNotFoundError when the installation is incomplete."""
    package = Path(__file__).resolve().parent
    for candidate in (package / "_shipped" / name, package.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the data folder {name} is not part of this installation; reinstall toolcage")
