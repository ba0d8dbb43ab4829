"""A store watched: when its files leave their windows, and who reads them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES

import vhlo_tools as vt
from vhlo_tools.spec import known_jax_releases
from vhlo_tools.spec.releases import WindowName
from vhlo_tools.stores import Workers
from vhlo_tools.stores.watch import StoreFile, watch_store
from vhlo_tools.stores.windows import AT_REST, WINDOWS, jax_readers

TODAY = date(2026, 4, 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(folder / "new.mlirbc")
    vt.serialize(EXAMPLES / "saxpy.mlir", "0.9.0").save(folder / "old.mlirbc")
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(folder / "tan.mlirbc")
    (folder / "gelu.jax_export").write_bytes((EXAMPLES / "jax_store" / "gelu.jax_export").read_bytes())
    (folder / "text.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    (folder / "torn.mlirbc").write_bytes((folder / "new.mlirbc").read_bytes()[:60])
    (folder / "old.mlirbc.orig").write_bytes((folder / "old.mlirbc").read_bytes())
    return folder


def watched(store: Path, windows: Sequence[WindowName] = WINDOWS, jobs: int | None = None) -> dict[str, StoreFile]:
    with Workers(jobs=jobs) as workers:
        found = list(watch_store([str(store)], workers, windows=windows, today=TODAY))
    return {Path(each.path).name: each for each in found}


def test_what_is_said_of_each_file(store: Path) -> None:
    found = watched(store)
    old, export, text, torn = (found[name] for name in ("old.mlirbc", "gelu.jax_export", "text.mlir", "torn.mlirbc"))
    assert (old.kind, str(old.version), old.written) == ("portable-artifact", "0.9.0", date(2023, 3, 2))
    assert old.size == (store / "old.mlirbc").stat().st_size
    assert old.windows == (("backward", date(2023, 9, 2)), ("forward", date(2023, 4, 2)))
    assert (old.jax_version, old.calling_convention, old.error) == (None, None, None)
    assert (export.kind, str(export.version), export.calling_convention) == ("jax-export", "1.15.0", 10)
    assert dict(export.windows).keys() == {"backward", "forward", "jax-export"}
    assert (text.kind, text.version, text.windows, text.readers) == ("mlir-text", None, (), ())
    assert torn.error
    assert torn.version is None
    assert str(found["tan.mlirbc"].readable_since) == "1.4.0"


def test_the_window_that_ends_first_counts_whatever_its_name(store: Path) -> None:
    old = watched(store)["old.mlirbc"]
    assert old.leaves(WINDOWS) == ("forward", date(2023, 4, 2))
    assert old.leaves(["backward"]) == ("backward", date(2023, 9, 2))
    assert old.leaves(["jax-export"]) is None


def test_windows_that_do_not_count_are_not_shown(store: Path) -> None:
    found = watched(store, AT_REST)
    assert found["old.mlirbc"].windows == (("backward", date(2023, 9, 2)),)
    assert dict(found["gelu.jax_export"].windows).keys() == {"backward", "jax-export"}


def test_the_most_urgent_come_first_and_those_without_a_window_last(store: Path) -> None:
    names = list(watched(store))
    assert names[0] == "old.mlirbc"
    assert set(names[-2:]) == {"text.mlir", "torn.mlirbc"}
    # Of a window that only one of them has, that one.
    assert next(iter(watched(store, ["jax-export"]))) == "gelu.jax_export"


def test_readers_are_those_of_every_version_since(store: Path) -> None:
    found = watched(store)
    oldest = {
        name: next(each.oldest for each in found[name].readers if each.package == "jaxlib")
        for name in ("old.mlirbc", "tan.mlirbc")
    }
    newest = {each.newest for name in oldest for each in found[name].readers if each.package == "jaxlib"}
    assert oldest["old.mlirbc"] == "0.4.13"
    assert oldest["tan.mlirbc"] > oldest["old.mlirbc"]
    assert newest == {"0.9.2"}


def test_processes_of_its_own_find_the_same(store: Path) -> None:
    assert watched(store, jobs=2) == watched(store)


def test_readers_of_jax_are_those_until_today() -> None:
    releases = known_jax_releases()
    days = sorted({each.date for each in releases})
    assert jax_readers(releases, date(2000, 1, 1)) == ()
    for today in (days[0], days[len(days) // 2], days[-1]):
        out = [each.release for each in releases if each.date <= today]
        (readers,) = jax_readers(releases, today)
        assert (readers.package, readers.oldest, readers.newest) == ("jax", out[0], out[-1])
    (first,) = jax_readers(releases, days[0])
    assert first.oldest == releases[0].release
