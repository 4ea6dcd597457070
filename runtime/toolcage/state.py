"""Where toolcage keeps what outlives one run: audit logs, the record of built images.

Decides the folder from the environment alone and touches no disk: whoever writes there makes the folder and checks
whose it is. `$TOOLCAGE_STATE_DIR` wins over the XDG state home, which wins over `~/.local/state`.
"""

from __future__ import annotations

import os
from pathlib import Path


def default_state_dir() -> Path:
    """`$TOOLCAGE_STATE_DIR`, else `$XDG_STATE_HOME/toolcage`, else `~/.local/state/toolcage`.

    A relative value of either variable is ignored, as the XDG specification asks: it would move with the caller's
    working directory.
    """
    own = os.environ.get("TOOLCAGE_STATE_DIR", "")
    if own.startswith("/"):
        return Path(own)
    xdg = os.environ.get("XDG_STATE_HOME", "")
    base = Path(xdg) if xdg.startswith("/") else Path.home() / ".local" / "state"
    return base / "toolcage"
