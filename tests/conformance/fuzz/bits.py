"""Bits of ten artifacts, flipped one by one: each is decoded or refused with a place, and nothing takes long."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import File, decode, print_program
from vhlo_tools.spec import minimum_version, newest_version

ROOT = Path(__file__).parents[3]
SLOWEST = 1.0

#: Ten artifacts of all versions of the format: the program and the version it is written at.
SUBJECTS = (
    ("examples/saxpy.mlir", "0.9.0"),
    ("examples/saxpy.mlir", "1.17.0"),
    ("tests/programs/features/tan.mlir", "1.4.0"),
    ("tests/programs/features/gather_scatter_batching_dims.mlir", "1.1.0"),
    ("tests/programs/features/dot_algorithm.mlir", "1.6.0"),
    ("tests/programs/features/uniform_quantized_per_axis.mlir", "0.18.0"),
    ("tests/programs/features/mixed_precision_reduction.mlir", "0.17.0"),
    ("tests/programs/features/composite.mlir", "0.19.0"),
    ("tests/programs/features/mesh_replica_groups.mlir", "1.16.0"),
    ("tests/programs/features/f8E4M3FNUZ_f8E5M2FNUZ.mlir", "0.12.0"),
)


@dataclass
class Outcome:
    """What became of the flips of one artifact."""

    decoded: int = 0  # how many were decoded whole
    refused: int = 0  # how many were refused
    nowhere: list[int] = field(default_factory=list)  # bits whose refusal did not say where
    slow: list[int] = field(default_factory=list)  # bits that took too long
    longest: float = 0.0  # the longest time, in seconds


def subject(program: str, version: str) -> bytes:
    """Return one of :data:`SUBJECTS` as bytes."""
    return bytes(vt.serialize(ROOT / program, version))


def decode_whole(data: bytes) -> File:
    """Decode every part of ``data``, down to the fields of attributes and types."""
    file = decode(data)
    file.load()
    for index in range(len(file.attributes)):
        file.decode("attribute", index)
    for index in range(len(file.types)):
        file.decode("type", index)
    return file


def take_apart(data: bytes) -> None:
    """Decode every part of ``data``, and do what the commands do."""
    file = decode_whole(data)
    print_program(file, debug_info=True)
    artifact = Artifact(data)
    artifact.inventory()
    artifact.stripped()
    requirements = artifact.requirements()
    for version in (minimum_version(), newest_version()):
        requirements.findings(version)
        requirements.reader_findings(version)
        with suppress(vt.DowngradeError, vt.UnsupportedFeatureError):
            bytes(artifact.retargeted(version))
    for answer in ("features", "downgradable_to", "expandable_to", "notes", "contradiction"):
        getattr(requirements, answer)


def flip(data: bytes, bits: Iterable[int]) -> Outcome:
    """Take ``data`` apart with each of ``bits`` flipped by itself."""
    outcome = Outcome()
    for bit in bits:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        started = time.perf_counter()
        try:
            take_apart(bytes(damaged))
            outcome.decoded += 1
        except vt.MalformedArtifactError as error:
            outcome.refused += 1
            if error.section is None or error.offset is None:
                outcome.nowhere.append(bit)
        seconds = time.perf_counter() - started
        outcome.longest = max(outcome.longest, seconds)
        if seconds > SLOWEST:
            outcome.slow.append(bit)
    return outcome


def bits_of(data: bytes, share: float, seed: int) -> Iterator[int]:
    """Yield a share of the bits of ``data``, the same for the same seed."""
    chance = random.Random(seed)
    return (bit for bit in range(8 * len(data)) if share >= 1 or chance.random() < share)


def flip_all(share: float, seed: int) -> bool:
    """Flip a share of the bits of all artifacts, print a line for each, and tell whether all is as it must be."""
    good = True
    for program, version in SUBJECTS:
        data = subject(program, version)
        outcome = flip(data, bits_of(data, share, seed))
        good &= not (outcome.nowhere or outcome.slow)
        print(
            f"{Path(program).stem}@{version}: {len(data)} bytes, {outcome.decoded} decoded, {outcome.refused} refused, "
            f"longest {1000 * outcome.longest:.1f} ms, slow {outcome.slow}, without a place {outcome.nowhere}",
            flush=True,
        )
    return good
