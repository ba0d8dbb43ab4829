"""Artifacts that released jaxlibs read and run."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ml_dtypes  # noqa: F401  # names its element types to numpy
import numpy as np

import vhlo_tools as vt
from support.release_environments import run_in

SCRIPTS = Path(__file__).parents[1] / "releases"
#: Seconds for one process; XLA of some releases waits forever for a device that failed.
TIMEOUT = 120

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ReleaseRun:
    """What a release made of an artifact."""

    results: list[list[Array]] | None  # the results of each device; ``None`` if it did not run the artifact
    failed: Literal["", "read", "compile", "run", "process"] = ""  # the step that failed
    error: str = ""  # what the release said


def run_by_release(release: str, artifact: vt.Artifact, inputs: Sequence[Sequence[Array]]) -> ReleaseRun:
    """Run an artifact by a released jaxlib, such as ``jaxlib==0.4.26``, with the inputs of each device, a replica."""
    named = {
        # As `.npy` does not know the element types of `ml_dtypes`.
        f"{device} {number} {array.dtype}": np.array(array, order="C").view(f"u{array.itemsize}")
        for device, arrays in enumerate(inputs)
        for number, array in enumerate(arrays)
    }
    given = io.BytesIO()
    np.savez(given, artifact=np.frombuffer(bytes(artifact), np.uint8), **named)  # type: ignore[arg-type]
    done = run_in(release, SCRIPTS / "run_artifact.py", input=given.getvalue(), timeout=TIMEOUT)
    if done.returncode:
        return ReleaseRun(None, "process", done.stderr.decode(errors="replace"))
    with np.load(io.BytesIO(done.stdout)) as archive:
        found = {name: archive[name] for name in archive.files}
    if "failed" in found:
        return ReleaseRun(None, str(found["failed"]), str(found["error"]))  # type: ignore[arg-type]
    results: list[list[Array]] = [[] for _ in inputs]
    for name, array in found.items():
        device, _, dtype = name.split()
        results[int(device)].append(array.view(np.dtype(dtype)))
    return ReleaseRun(results)


def run_sharded_by_release(
    release: str, devices: int, programs: Mapping[str, tuple[vt.Artifact, Sequence[Array]]], *, shardy: bool = True
) -> dict[str, Array]:
    """Run artifacts with shardings by a released jaxlib, with Shardy one from 0.4.35 on, on several devices.

    Args:
        release: The release.
        devices: The number of devices.
        programs: Each artifact by a name, with its inputs as whole values.
        shardy: Whether Shardy partitions them, or GSPMD.

    Returns:
        For each name the results as whole values (``name/0``, ``name/1``, ...) and the shardings of inputs and results
        (``name/shardings``), or what the release said of the program (``name/error``).
    """
    given: dict[str, Any] = {"devices": np.array(devices), "shardy": np.array(shardy)}
    for name, (artifact, inputs) in programs.items():
        given[name] = np.frombuffer(bytes(artifact), np.uint8)
        given |= {f"{name}/{number}": each for number, each in enumerate(inputs)}
    archive = io.BytesIO()
    np.savez(archive, **given)
    done = run_in(release, SCRIPTS / "run_sharded_artifacts.py", input=archive.getvalue(), timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr.decode()
    with np.load(io.BytesIO(done.stdout)) as results:
        return {name: results[name] for name in results.files}
