"""What we write for a release is read by that release, and means the same to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import EXAMPLES
from environments import run_in

import vhlo_tools as vt

pytestmark = pytest.mark.releases

READER = Path(__file__).with_name("read_artifact.py")
RELEASES = ("jaxlib==0.4.31", "jaxlib==0.4.35", "jaxlib==0.5.3", "jaxlib==0.8.3")
PORTABLE = ("saxpy.mlir", "convnet.bc", "symbolic_export.jax_export", "transformer_step.mlir")
MIXED = ("sharded_matmul.mlir", "custom_calls.mlir")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("example", PORTABLE)
def test_a_release_reads_what_is_written_for_it(example: str, release: str) -> None:
    artifact = vt.serialize(EXAMPLES / example, release)
    read = run_in(release, READER, input=bytes(artifact))
    assert read.returncode == 0, read.stderr.decode()
    # What the release understood, as text of its own, is the program that we understand; aliases and all.
    understood = vt.deserialize(vt.serialize(read.stdout.decode()))
    assert str(understood) == str(vt.deserialize(artifact))
    expected = 25 if example == "transformer_step.mlir" else 0
    assert str(understood).count("tf.aliasing_output") == expected


@pytest.mark.parametrize("example", MIXED)
def test_other_dialects_are_read_since_the_version_that_brought_them(example: str) -> None:
    new = vt.serialize(EXAMPLES / example, "jaxlib==0.8.3", allow_other_dialects=True)
    assert not new.findings
    read = run_in("jaxlib==0.8.3", READER, input=bytes(new))
    assert read.returncode == 0, read.stderr.decode()
    understood = vt.deserialize(vt.serialize(read.stdout.decode(), allow_other_dialects=True))
    assert str(understood) == str(vt.deserialize(new))
    old = vt.serialize(EXAMPLES / example, "jaxlib==0.5.3", allow_other_dialects=True)
    assert [finding.level for finding in old.findings] == ["warning"]
    assert run_in("jaxlib==0.5.3", READER, input=bytes(old)).returncode != 0


def test_a_release_chokes_on_the_range_locations_that_the_library_leaves_in() -> None:
    """The reason why we make them plain."""
    kept = bytes(vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0"))
    relabelled = kept.replace(b"StableHLO_v1.9.0", b"StableHLO_v1.7.8")
    read = run_in("jaxlib==0.4.35", READER, input=relabelled)
    assert read.returncode != 0
    assert b"unknown attribute code: 22" in read.stderr
