"""P41 to P46: that there is no way out and none in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcage.cage.properties.model import Finding, Seen, found, not_applicable

_SLOWEST_NAMES_S: Final = 5.0
"""For four names: a resolver that waits for an answer takes that long for each."""


def judge(seen: Seen) -> Iterator[Finding]:
    inside = seen.inside
    reached = {target: answer for target, answer in inside["reached"].items() if not isinstance(answer, str)}
    outside = {target for target in reached if not target.startswith("127.")}
    others = [name for name in ("udp", "ipv6", "ipv6 metadata") if not isinstance(inside["reached_other"][name], str)]
    resolved = [name for name, answer in inside["names"].items() if not isinstance(answer, str)]
    problems = [*others, *resolved]
    problems += [] if inside["interfaces"] == ["lo"] else [f"interfaces {inside['interfaces']}"]
    problems += [] if inside["routes"] in ([], "ENOENT") else [f"{len(inside['routes'])} routes"]
    problems += [] if inside["names_s"] < _SLOWEST_NAMES_S else [f"names fail after {inside['names_s']:.1f} s"]
    udp, ipv6 = (inside["reached_other"][name] for name in ("udp", "ipv6"))
    yield found("P41", problems, f"only lo, no route, UDP {udp}, IPv6 {ipv6}, names fail in {inside['names_s']:.2f} s")
    yield found("P42", sorted(reached), f"{len(inside['reached'])} addresses and ports were tried in vain")
    mode = (seen.container.get("HostConfig") or {}).get("NetworkMode")
    told = "network mode none: a namespace of its own with nothing but lo, shared with no container"
    yield found("P43", sorted(outside) if mode == "none" else f"network mode {mode}", told)
    values = sorted(set(inside["route_localnet"]))
    yield found("P44", [] if values in ([], ["0"]) else values, f"route_localnet {values or 'not visible, only lo'}")
    abstract = {name: inside["reached_other"][name] for name in ("abstract", "abstract containerd")}
    yield found("P45", [name for name, answer in abstract.items() if not isinstance(answer, str)], abstract)
    yield not_applicable("P46", "no portal: a cage that is measured has no grant, so nothing leads out of it")
