"""jax.export files, read with our own reader and with jax itself."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import jax
import jax.export
import numpy as np
import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.files import decode_jax_export, recognise
from vhlo_tools.files.jax_export import parts_of

DATA = (EXAMPLES / "symbolic_export.jax_export").read_bytes()


def test_what_jax_reads_is_what_we_read() -> None:
    exported = jax.export.deserialize(bytearray(DATA))
    ours = decode_jax_export(DATA)
    assert ours.function_name == exported.fun_name
    assert ours.platforms == exported.platforms
    assert ours.calling_convention_version == exported.calling_convention_version
    assert ours.kept_arguments == exported.module_kept_var_idx
    assert bytes(ours.module) == exported.mlir_module_serialized


@pytest.mark.parametrize("platforms", [["cpu"], ["cpu", "cuda"]])
def test_exports_made_now(platforms: list[str]) -> None:
    def scale(x: jax.Array, unused: jax.Array, y: jax.Array) -> jax.Array:
        return x * y

    argument = jax.ShapeDtypeStruct((4,), np.float32)
    exported = jax.export.export(jax.jit(scale), platforms=platforms)(argument, argument, argument)
    serialized = exported.serialize()
    ours = decode_jax_export(serialized)
    assert ours.platforms == tuple(platforms)
    assert ours.kept_arguments == exported.module_kept_var_idx == (0, 2)
    # The object, its bytes and the artifact inside are the same program.
    artifacts = [vt.serialize(each, "1.0.0") for each in (exported, serialized, exported.mlir_module_serialized)]
    assert artifacts[0] == artifacts[1] == artifacts[2]


def test_truncated_and_damaged_files_are_refused_or_read() -> None:
    chance = random.Random(0)
    for length in range(0, len(DATA), 7):
        try_it(DATA[:length])
    for _ in range(2000):
        damaged = bytearray(DATA)
        damaged[chance.randrange(min(len(DATA), 400))] = chance.randrange(256)
        try_it(bytes(damaged))


def try_it(data: bytes) -> None:
    try:
        recognise(data)
        decode_jax_export(data)
    except (vt.InvalidProgramError, vt.MalformedArtifactError):
        pass


@pytest.mark.parametrize("root", [0, 1, 4, len(DATA) - 3, len(DATA), 2**32 - 1])
def test_a_root_outside_the_file(root: int) -> None:
    with pytest.raises((vt.InvalidProgramError, vt.MalformedArtifactError)):
        vt.open_artifact(struct.pack("<I", root) + DATA[4:])


@pytest.mark.parametrize(("release", "counts"), [("0.7.2", "short"), ("0.8.2", "both"), ("0.9.2", "wide")])
def test_how_a_file_says_the_number_of_devices(release: str, counts: str) -> None:
    """With another field for it since jax 0.9, and with both in between."""
    path = Path(__file__).parents[1] / "artifact" / "jax_exports" / f"{release}.small.jax_export"
    found = [id_ for id_, _ in parts_of(decode_jax_export(path.read_bytes())) if "device_count" in id_]
    assert found == [f"{counts}_device_count{'s' * (counts == 'both')}"]
