"""Whether an engine can confine a cage as asked, by what it says of itself. Pure, but for raising.

`inspect` repeats a limit that was asked for even where nothing enforces it: a rootless engine without cgroup v2 makes
containers with 256 MiB written on them that may fill the host. So the engine's own word on each limit is a condition of
every cage, and silence counts as no. The engine is trusted to tell the truth; `toolcage attest` measures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcage.cage.spec import CageSpec
from toolcage.errors import EngineUnfitError

ENFORCED: Final[Mapping[str, str]] = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processors"}
"""Fields of the engine's `info`, and what each says is limited."""
_INSTALL: Final = {
    "runsc": "install gVisor (https://gvisor.dev/docs/user_guide/install/), run `runsc install` and restart the engine",
}


def require(info: Mapping[str, Any], spec: CageSpec) -> None:
    """Raises EngineUnfitError that says what is lacking and what the operator must do."""
    lacking = [what for name, what in ENFORCED.items() if info.get(name) is not True]
    if lacking:
        raise EngineUnfitError(
            "engine.unfit",
            f"the engine enforces no limit on {', '.join(lacking)}, so no cage is made; enable the cgroup controllers "
            "memory, pids and cpu (a rootless engine needs cgroup v2 with them delegated), or use another engine",
        )
    if not any("seccomp" in str(option) for option in info.get("SecurityOptions") or ()):
        raise EngineUnfitError(
            "engine.unfit", "the engine has no seccomp, so no cage is made; use a kernel and an engine with it"
        )
    if spec.runtime is not None and spec.runtime not in (info.get("Runtimes") or {}):
        has = ", ".join(sorted(info.get("Runtimes") or {})) or "none"
        how = _INSTALL.get(spec.runtime, "register it in the engine's configuration and restart the engine")
        raise EngineUnfitError(
            "engine.no_runtime",
            f"a grant asks for the runtime `{spec.runtime}`, which the engine does not have (it has: {has}); {how}, or "
            "take `runtime` out of the grant's sandbox",
        )
