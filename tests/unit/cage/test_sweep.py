"""Orphans: a container is one when its runtime is provably gone or its lease is over, never otherwise."""

import time
from pathlib import Path

from toolcage.cage import sweep
from toolcage.cage.live import Owner
from toolcage.cage.spec import LABEL_HOST, LABEL_LEASE, LABEL_RUNTIME

US = Owner(host="a" * 32, runtime="b" * 32)
OTHER = "c" * 32


def labels(*, host: str = US.host, runtime: str = OTHER, lease_in_s: float = 600) -> dict[str, str]:
    return {LABEL_HOST: host, LABEL_RUNTIME: runtime, LABEL_LEASE: str(int(time.time() + lease_in_s))}


def test_a_container_of_a_runtime_that_lives_is_no_orphan_and_is_one_once_it_ended(tmp_path: Path) -> None:
    with sweep.alive(tmp_path, OTHER):
        assert not sweep.is_orphan(labels(), tmp_path, US)
    assert sweep.is_orphan(labels(), tmp_path, US)


def test_a_lock_file_that_nobody_holds_any_more_does_not_protect(tmp_path: Path) -> None:
    (tmp_path / "alive").mkdir()
    (tmp_path / "alive" / OTHER).touch()
    assert sweep.is_orphan(labels(), tmp_path, US)


def test_our_own_and_another_host_s_containers_are_no_orphans(tmp_path: Path) -> None:
    assert not sweep.is_orphan(labels(runtime=US.runtime), tmp_path, US)
    assert not sweep.is_orphan(labels(host="d" * 32), tmp_path, US)


def test_a_lease_that_is_over_by_the_margin_makes_an_orphan_whoever_made_it(tmp_path: Path) -> None:
    assert sweep.is_orphan(labels(host="d" * 32, lease_in_s=-sweep.LEASE_MARGIN_S - 5), tmp_path, US)
    assert not sweep.is_orphan(labels(host="d" * 32, lease_in_s=-1), tmp_path, US)


def test_a_label_that_is_no_runtime_id_is_never_used_as_a_path(tmp_path: Path) -> None:
    assert not sweep.is_orphan(labels(runtime="../../etc/passwd"), tmp_path, US)
    assert not sweep.is_orphan({LABEL_HOST: US.host}, tmp_path, US)


def test_a_host_keeps_its_name_and_mends_a_torn_one(tmp_path: Path) -> None:
    first = sweep.host_id(tmp_path)
    assert sweep.host_id(tmp_path) == first
    (tmp_path / "host-id").write_text("torn")
    mended = sweep.host_id(tmp_path)
    assert len(mended) == 32
    assert sweep.host_id(tmp_path) == mended
