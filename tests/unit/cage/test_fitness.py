"""An engine that cannot confine a cage makes none, whatever its `inspect` repeats."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from toolcage.cage.fitness import ENFORCED, require
from toolcage.cage.spec import MAPPED_USERS, MIB, USERS, CageSpec, users_under
from toolcage.errors import EngineUnfitError

SPEC = CageSpec(image_id="sha256:0", isolation="container", memory_bytes=256 * MIB, cpus=1, pids=64, tmp_bytes=64 * MIB)
FIT: dict[str, Any] = {
    **dict.fromkeys(ENFORCED, True), "SecurityOptions": ["name=seccomp,profile=default"], "Runtimes": {"runc": {}},
}  # fmt: skip


def test_an_engine_that_enforces_every_limit_is_fit() -> None:
    require(FIT, SPEC)
    require({**FIT, "Runtimes": {"runsc": {}}}, dataclasses.replace(SPEC, runtime="runsc"))


@pytest.mark.parametrize("name", ENFORCED)
@pytest.mark.parametrize("said", [False, None])
def test_a_limit_that_the_engine_does_not_say_it_enforces_is_no_limit(name: str, said: bool | None) -> None:
    with pytest.raises(EngineUnfitError, match=ENFORCED[name]) as unfit:
        require({**FIT, name: said}, SPEC)
    assert unfit.value.code == "engine.unfit"
    assert "cgroup v2" in str(unfit.value)


@pytest.mark.parametrize("options", [[], None, ["name=apparmor"]])
def test_an_engine_without_seccomp_is_unfit(options: list[str] | None) -> None:
    with pytest.raises(EngineUnfitError, match="no seccomp"):
        require({**FIT, "SecurityOptions": options}, SPEC)


@pytest.mark.parametrize(("runtime", "told"), [("runsc", "runsc install"), ("kata", "register it")])
def test_a_runtime_that_the_engine_lacks_is_named_with_what_to_do(runtime: str, told: str) -> None:
    with pytest.raises(EngineUnfitError, match=f"`{runtime}`") as unfit:
        require(FIT, dataclasses.replace(SPEC, runtime=runtime))
    assert unfit.value.code == "engine.no_runtime"
    assert told in str(unfit.value)
    assert "(it has: runc)" in str(unfit.value)


@pytest.mark.parametrize(
    ("options", "users"),
    [
        (["name=seccomp,profile=default"], USERS),
        (["name=seccomp,profile=default", "name=userns"], MAPPED_USERS),
        (["name=seccomp,profile=default", "name=rootless"], MAPPED_USERS),
        (None, USERS),
    ],
)
def test_a_cages_users_are_above_those_of_the_host_or_among_the_mapped_ones(
    options: list[str] | None, users: range
) -> None:
    assert users_under({"SecurityOptions": options}) is users


def test_no_user_of_a_cage_is_root_or_nobody_or_outside_the_65536_that_a_remapping_has() -> None:
    assert MAPPED_USERS[0] > 0
    assert MAPPED_USERS[-1] < 65_534
    assert USERS[0] > 65_534
