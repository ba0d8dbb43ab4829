"""A program with blockers of twelve features, which an old jaxlib reads and runs after its expansions."""

from __future__ import annotations

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from corpus import ROOT
from release_environments import run_in

import vhlo_tools as vt

PROGRAM = ROOT / "tests" / "programs" / "expansion" / "many_blockers.mlir"
#: XLA of this release reads composites, and compiles none: they are expanded for the version before theirs.
RELEASE, TARGET = "jaxlib==0.4.26", "0.18.0"
EXACT = {
    "async",
    "buffers",
    "composite",
    "composite_regions",
    "dot_algorithm",
    "gather_scatter_batching_dims",
    "mesh_replica_groups",
    "tan",
    "variadic_collectives",
}
RELAXED = {"exponential_result_accuracy", "result_accuracy"}
#: Of custom calls that are gone with the buffers.
GONE = {"custom_call_dictionary_backend_config"}


def test_without_expansions_every_reason_is_said() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(PROGRAM, TARGET)
    assert {each.feature for each in refused.value.findings} == EXACT | RELAXED | GONE
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(PROGRAM, TARGET, expand=True)
    assert {each.feature for each in refused.value.findings} == RELAXED


@pytest.mark.one_python
def test_an_old_release_reads_and_runs_it() -> None:
    artifact = vt.serialize(PROGRAM, TARGET, expand=True, allow_relaxed=RELAXED)
    notes = [each for each in artifact.findings if each.level == "note"]
    assert {each.feature for each in notes} == EXACT | RELAXED
    assert all(each.location is not None and each.location.file == "model.py" for each in notes)
    assert [str(alias) for alias in artifact.aliases().aliases] == [
        str(alias) for alias in vt.serialize(PROGRAM).aliases().aliases
    ]
    script = Path(__file__).with_name("run_on_old_jaxlib.py")
    done = run_in(RELEASE, script, input=bytes(artifact))
    assert done.returncode == 0, done.stderr.decode()
    with np.load(io.BytesIO(done.stdout)) as archive:
        found = [archive[name] for name in archive.files]
    inputs = [
        np.arange(8, dtype=np.float32).reshape(2, 4) / 8,
        (np.arange(8).reshape(2, 4) / 4).astype(ml_dtypes.bfloat16),
    ]
    for one, other in zip(found, vt.run(artifact, inputs, engine="xla"), strict=True):
        # Two versions of XLA.
        np.testing.assert_allclose(one, other, rtol=1e-6)
