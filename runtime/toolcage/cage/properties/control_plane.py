"""P55 to P60: what stands between a call and the engine. Judged from the engine's words, or tried on the engine."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from toolcage.cage import attest, sweep
from toolcage.cage.bundle import COMMAND
from toolcage.cage.engine import Engine
from toolcage.cage.live import CageRecipe, LiveCage, Owner
from toolcage.cage.pool import Pool, PoolBusy, PoolTerms
from toolcage.cage.properties.model import Finding, Seen, found, not_applicable
from toolcage.cage.spec import LABEL_LEASE, container_config, users_under
from toolcage.errors import EngineError, EngineUnfitError

_ONE_PLACE: Final = PoolTerms(min_idle=0, max_cages=1, max_waiting=0, max_wait_s=1.0)
_NOBODYS: Final = f"sha256:{'0' * 64}"


def judge(seen: Seen, seccomp: str, words: tuple[str, ...]) -> Iterator[Finding]:
    """P57, P59, P60 of a live cage. `words` stood in the call's arguments."""
    told = json.dumps(seen.container)
    yield found("P57", [word for word in words if word in told], "no word of the call is in the configuration")
    image, name = seen.container.get("Image"), str((seen.container.get("Config") or {}).get("Image"))
    problems = [] if image in seen.accepted_ids else [f"image {image}"]
    problems += [] if name.startswith("sha256:") else [f"named {name}"]
    yield found("P59", problems, f"made from {image}, by digest")
    config = seen.container.get("Config") or {}
    user = str(config.get("User")).split(":")[0]
    if not user.isdigit() or int(user) not in users_under(seen.engine):
        yield found("P60", f"user {user!r}", "")
        return
    requested = container_config(seen.spec, uid=int(user), command=COMMAND, labels={}, seccomp=seccomp)
    differences = attest.differences(requested, seen.container, seen.accepted_ids)
    yield found("P60", differences, f"{len(requested) + len(requested['HostConfig'])} fields are as requested")


def crowd(engine: Engine, recipe: CageRecipe, owner: Owner) -> Finding:
    """P55: one place, no queue, and two who want it."""
    pool = Pool(engine, owner, _ONE_PLACE, lambda _text: None)
    try:
        cage = pool.take(recipe)
        try:
            second = pool.take(recipe)
        except PoolBusy:
            return found("P55", "", "with every place taken and the queue full, the answer is busy")
        else:
            pool.give_back(second)
            return found("P55", "two calls had the one place", "")
        finally:
            pool.give_back(cage)
    except EngineUnfitError as error:
        return not_applicable("P55", f"no call gets a cage here: {error}")
    finally:
        pool.close()


def orphan(engine: Engine, recipe: CageRecipe) -> Finding:
    """P56: a cage whose runtime is gone is removed by the next one to start; a living runtime's is not."""
    host = secrets.token_hex(16)
    dead, alive = secrets.token_hex(16), secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder, sweep.alive(Path(folder), alive):
        uid = secrets.choice(users_under(engine.recent_info()))
        owners = [Owner(host=host, runtime=name) for name in (dead, alive)]
        cages = [LiveCage.create(engine, recipe, uid=uid, owner=owner) for owner in owners]
        swept = sweep.sweep(engine, Path(folder), Owner(host=host, runtime=secrets.token_hex(16)))
        left = [engine.inspect(cage.container) is not None for cage in cages]
        lease = cages[0].recipe.lease_s
        for cage in cages:
            cage.destroy()
    problems = [] if cages[0].container in swept and left == [False, True] else [f"left {left}, swept {len(swept)}"]
    return found("P56", problems, f"removed by label {LABEL_LEASE.split('.')[0]}.*; each has a lease of {lease:g} s")


def absent(engine: Engine) -> list[Finding]:
    """P58, and the rest of P59: without an engine, or without the image, there is an error and nothing else."""
    try:
        Engine("unix:///nonexistent/docker.sock").info()
        answered = "something answered"
    except EngineError as error:
        answered, told = "", str(error)
    missing = found("P58", answered, "" if answered else told)
    try:
        engine.remove(engine.create({"Image": _NOBODYS, "Cmd": ["x"]}, f"toolcage-{secrets.token_hex(6)}"))
    except EngineError:
        return [missing]
    return [missing, found("P59", "an image that is not there was used", "")]
