"""Where and when something was measured, written beside every figure."""

from __future__ import annotations

import datetime
import os
import platform
from typing import Any


def machine() -> dict[str, Any]:
    """Date, cores, kernel, Python and the load at this moment: figures of a busy machine are ratios, not times."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }
