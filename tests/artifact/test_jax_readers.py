"""Which releases of jax read the files of others, and wrote them, as they were tried (tests/conformance)."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer, first_writer
from vhlo_tools.cli.main import main
from vhlo_tools.compat import resolve_target
from vhlo_tools.integrations import jax as vhlo_jax
from vhlo_tools.spec import known_jax_export_parts, known_jax_releases, known_releases
from vhlo_tools.stores import MigrationRecord

FILES = Path(__file__).with_name("jax_exports")
#: Each file is named by the release that wrote it: the first and the last release that call it, and the first that
#: writes files of its form.
READERS = {
    "0.4.30.small": ("0.4.30", "0.11.0", "0.4.30"),
    # Without the artifact, whose locations jaxlib 0.4.36 is the first to read, jax 0.4.35 would read it.
    "0.6.2.named": ("0.4.36", "0.11.0", "0.4.35"),
    "0.6.2.tiny": ("0.5.1", "0.11.0", "0.5.1"),
    "0.7.2.small": ("0.4.36", "0.11.0", "0.7.0"),
    "0.7.2.sharded": ("0.7.0", "0.11.0", "0.7.0"),
    "0.7.2.keyed": ("0.7.0", "0.11.0", "0.7.0"),
    "0.8.2.small": ("0.4.36", "0.12.0.1", "0.8.2"),
    # Shardings that XLA alone understands expired with 0.11.1.
    "0.8.2.sharded": ("0.7.0", "0.11.0", "0.8.2"),
    "0.9.0.sharded": ("0.7.0", "0.12.0.1", "0.8.2"),
    "0.9.2.small": ("0.8.2", "0.12.0.1", "0.9.1"),
    "0.10.2.sharded": ("0.8.2", "0.12.0.1", "0.10.0"),
    "0.12.0.small": ("0.8.2", "0.12.0.1", "0.12.0"),
}


def opened(name: str) -> JaxContainer:
    return JaxContainer.open(FILES / f"{name}.jax_export")


@pytest.mark.whole_data("the releases that write and read these files are those of the whole table")
@pytest.mark.parametrize("name", READERS)
def test_readers_and_the_first_writer(name: str) -> None:
    container = opened(name)
    oldest, newest, writer = READERS[name]
    readers = container.readers()
    found = first_writer(container.export)
    assert found is not None
    assert (readers[0].release, readers[-1].release, found.release) == (oldest, newest, writer)
    # Those between read it too.
    releases = known_jax_releases()
    assert readers == releases[releases.index(readers[0]) : releases.index(readers[-1]) + 1]


@pytest.mark.parametrize("name", READERS)
def test_moving_the_artifact_does_not_renew_the_file(name: str) -> None:
    container = opened(name)
    before = first_writer(container.export)
    for version in ("1.12.0", "1.22.0"):
        moved = container.retargeted(vt.Version(version))
        assert moved.version == vt.Version(version)
        assert first_writer(moved.export) == before


def test_every_release_of_the_data_is_known_with_its_jaxlib() -> None:
    libraries = {each.release: each for each in known_releases() if each.package == "jaxlib"}
    for release in known_jax_releases():
        assert abs((libraries[release.jaxlib].date - release.date).days) < 10, release
        target = resolve_target(str(release), pytest.fail)
        assert target.version == libraries[release.jaxlib].stablehlo
        assert [str(each) for each in target.consumers] == [str(release)]
    assert known_jax_releases()[0].date == date(2024, 6, 18)
    telling = {part for each in known_jax_releases() for part in each.always}
    assert telling >= {"short_device_count", "both_device_counts", "wide_device_count"}
    assert {part.step for part in known_jax_export_parts()} == {"load", "call"}


@pytest.mark.whole_data("the releases that write and read these files are those of the whole table")
@pytest.mark.parametrize(
    ("name", "reader", "said"),
    [
        ("0.9.2.small", "jax==0.7.2", "jax 0.7.2 loads the file and fails to call it: it has the number of devices"),
        ("0.9.2.small", "jaxlib==0.7.2", "jax 0.8.2 is the first to read it"),
        ("0.9.2.small", "jax==0.8.3,jax==0.7.2", "jax 0.7.2 loads the file and fails to call it"),
        ("0.7.2.small", "jax==0.12.0", "jax 0.12.0 refuses the file: .*jax 0.11.0 is the last to read it"),
        ("0.12.0.small", "jax==0.8.1", "jax 0.8.1 refuses the file: it has the serialization version 12"),
        ("0.6.2.named", "jax==0.4.34", "jax 0.4.34 refuses the file: it has a named tuple"),
        ("0.6.2.tiny", "jax==0.5.0", "jax 0.5.0 refuses the file: it has an argument or a result of type f8_e8m0fnu"),
        ("0.7.2.keyed", "jax==0.5.3", "jax 0.5.3 refuses the file: it has an argument or a result of type key<fry>"),
        ("0.7.2.sharded", "jax==0.6.2", "jax 0.6.2 loads the file and fails to call it: it has ops or attributes of"),
        ("0.4.30.small", "jaxlib==0.4.29", "jaxlib==0.4.29 reads no jax.export files: jax 0.4.30 is the first"),
        # The newest release of that day was jaxlib 0.11.1.
        ("0.7.2.small", "2026-08-17", "jax 0.11.1 refuses the file"),
    ],
)
def test_a_reader_refuses_a_file_for_what_is_around_the_artifact(
    name: str, reader: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = FILES / f"{name}.jax_export"
    with pytest.raises(vt.UnsupportedFeatureError, match="cannot be read by") as refused:
        vt.require(path, reader)
    found = [each for each in refused.value.findings if each.feature.startswith("jax_export_")]
    assert any(re.search(said, each.message) for each in found), found
    assert all(each.remedy for each in found)
    with pytest.raises(vt.UnsupportedFeatureError):
        vt.require(path.read_bytes(), reader)
    assert main(["check", str(path), "--readable-by", reader]) == 1
    # Lines are wrapped.
    assert re.search(said, " ".join(capsys.readouterr().out.split()))
    # A StableHLO version names no jax, and who takes the artifact out needs none.
    version = resolve_target(reader, pytest.fail).version
    if version >= opened(name).version:
        vt.require(path, version)
        vt.require(vt.open_artifact(path), reader)


def test_the_findings_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "jax_export_wide_device_count"]) == 0
    assert "refuses a jax.export file for what is around the artifact" in capsys.readouterr().out


@pytest.mark.whole_data("the releases that write and read these files are those of the whole table")
def test_inspect_says_who_wrote_and_who_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(FILES / "0.9.2.small.jax_export"), "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["written_by"] == {"since": "0.9.1", "date": "2026-02-28"}
    assert report["readable_by"] == {"oldest": "0.8.2", "newest": "0.12.0.1"}


def test_a_file_that_the_target_cannot_read_is_moved_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = FILES / "0.9.2.small.jax_export", tmp_path / "moved.jax_export"
    moved = vhlo_jax.retarget(path, "jax==0.7.2")
    (warning,) = moved.findings
    assert (warning.feature, warning.level) == ("jax_export_wide_device_count", "warning")
    assert vhlo_jax.retarget(path, "jax==0.8.3").findings == vhlo_jax.retarget(path, "1.12.1").findings == ()
    assert main(["retarget", str(path), "--target", "jax==0.7.2", "-o", str(out)]) == 0
    assert "fails to call it" in capsys.readouterr().err
    assert JaxContainer.open(out).version == moved.version


def test_a_file_that_the_target_cannot_read_is_not_migrated(tmp_path: Path) -> None:
    for name in ("0.9.2.small", "0.7.2.small"):
        (tmp_path / f"{name}.jax_export").write_bytes((FILES / f"{name}.jax_export").read_bytes())

    def migrated(target: str) -> dict[str, MigrationRecord]:
        return {Path(each.path).name: each for each in vt.migrate(tmp_path, target)}

    before = (tmp_path / "0.9.2.small.jax_export").read_bytes()
    records = migrated("jax==0.7.1")
    assert records["0.7.2.small.jax_export"].status == "moved"
    blocked = records["0.9.2.small.jax_export"]
    assert (blocked.status, blocked.findings[0].feature) == ("blocked", "jax_export_wide_device_count")
    assert "whatever the version of its artifact" in str(blocked.reason)
    assert (tmp_path / "0.9.2.small.jax_export").read_bytes() == before
    assert {each.status for each in migrated("1.5.0").values()} == {"moved"}


@pytest.mark.whole_data("the releases that write and read these files are those of the whole table")
def test_store_status_judges_the_file_and_keeps_its_date(tmp_path: Path) -> None:
    path = tmp_path / "f.jax_export"
    path.write_bytes((FILES / "0.9.2.small.jax_export").read_bytes())

    def status() -> vt.StoreFile:
        (found,) = vt.store_status(tmp_path, as_of=date(2026, 11, 1))
        return found

    before = status()
    assert before.written == date(2026, 2, 28)
    assert dict(before.windows)["jax-export"] == date(2026, 8, 28)
    assert [str(each) for each in before.readers] == ["jax 0.8.2 to 0.12.0.1"]
    JaxContainer.open(path.read_bytes()).retargeted(vt.Version("1.22.0")).save(path, force=True)
    after = status()
    assert (after.written, dict(after.windows)["jax-export"]) == (before.written, date(2026, 8, 28))
    assert dict(after.windows)["backward"] > dict(before.windows)["backward"]
    assert after.readers == before.readers
