"""What a release says of itself, or what is found by giving it artifacts to read and write."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PathDistribution
from itertools import pairwise
from pathlib import Path
from typing import Final

from packaging.specifiers import SpecifierSet

import vhlo_tools as vt
from vhlo_tools.artifact import other_dialects
from vhlo_tools.files import decode_jax_export, parts_of
from vhlo_tools.releases import PackageRelease, ReleaseProcess, environment, oldest_python
from vhlo_tools.spec import known_jax_releases, known_versions, newest_version

ROOT: Final = Path(__file__).resolve().parents[1]
CORPUS: Final = ROOT / "tests" / "artifacts" / "corpus.zip"
FEATURES: Final = ROOT / "tests" / "programs" / "features"
_UNTOLD: Final = "it may be"
JAX_SESSION: Final = ROOT / "tests" / "releases" / "jax_session.py"


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found of a release that reads artifacts."""

    stablehlo: str  # its StableHLO version
    minimum: str  # the oldest version that it writes, or reads where it writes none
    python: str  # the Python versions that it supports
    windows: dict[str, str]  # its own answers for readers of 4 and of 12 weeks ago, by name
    probed: bool  # whether the versions were found by trying
    doubts: tuple[str, ...] = ()  # what did not fit together, for a person to look at


@dataclass(frozen=True, slots=True)
class JaxFacts:
    """What was found of a release of jax."""

    jaxlib: str  # the release of jaxlib that was installed with it
    serialization_version: int  # the version of the format that it records
    calling_convention: int  # the version of the calling convention that it writes
    always: tuple[str, ...]  # the parts of its files that tell releases apart
    doubts: tuple[str, ...] = ()  # what did not fit together, for a person to look at


class Probing(Exception):  # noqa: N818 - it says why there are no facts
    """A release that reads no artifacts, or cannot be asked."""


def probe(requirement: str) -> Facts:
    """Ask a release what it is, and try what it does not say.

    Raises:
        Probing: If it reads no artifacts.
        ReleaseEnvironmentError: If it cannot be installed or started.
    """
    python = _requires_python(requirement)
    with ReleaseProcess(requirement) as process:
        about = process.describe()
        windows = {name: about["windows"][name] for name in about["windows"]}
        if about["stablehlo"]:
            doubts = _doubts(process, vt.Version(about["stablehlo"]))
            return Facts(about["stablehlo"], about["minimum"] or "0.9.0", python, windows, False, doubts)
        newest, oldest, doubts = _tried(process)
        return Facts(str(newest), str(oldest), python, windows, True, doubts)


def _doubts(process: ReleaseProcess, said: vt.Version) -> tuple[str, ...]:
    """Compare what a release says with what it reads: at its own version, and newer by a feature that it lacks."""
    newest, _, doubts = _tried(process)
    doubts = tuple(each for each in doubts if not each.startswith(_UNTOLD))
    if newest.minor_release > said.minor_release:
        doubts = (*doubts, f"it says {said}, and reads what {newest} brought")
    return doubts


@cache
def _samples() -> dict[vt.Version, list[tuple[str, bytes]]]:
    """Return real artifacts by the version since which they are read, at most twelve of each.

    They are those of the corpus, and of the features that the installed library has.
    """
    found: dict[vt.Version, list[tuple[str, bytes]]] = {}
    for artifact in (*_of_features(), *_of_corpus()):
        requirements = artifact.requirements()
        of_version = found.setdefault(requirements.readable_since.minor_release, [])
        odd = bool(other_dialects(artifact) or requirements.contradiction)
        odd = odd or bool(requirements.reader_findings(newest_version()))
        # Readers of 0.19 and before take what those of 0.20 refuse, and those of 1.20 take again.
        odd = odd or any(each.id == "mixed_f8_convolution" for each in requirements.features)
        if len(of_version) < 12 and not odd:
            of_version.append((artifact.name, bytes(artifact)))
    return {version: samples for version, samples in found.items() if samples}


def _of_features() -> Iterator[vt.Artifact]:
    for path in sorted(FEATURES.glob("*.mlir")):
        with contextlib.suppress(vt.InvalidProgramError):  # newer than the library
            artifact = vt.serialize(path)
            yield vt.retarget(artifact, artifact.requirements().downgradable_to)


def _of_corpus() -> Iterator[vt.Artifact]:
    with zipfile.ZipFile(CORPUS) as archive:
        for name in sorted(each for each in archive.namelist() if each.endswith(".mlirbc")):
            yield vt.open_artifact(archive.read(name), name=name)


def _tried(process: ReleaseProcess) -> tuple[vt.Version, vt.Version, tuple[str, ...]]:
    """Return the newest and the oldest version of which a release reads artifacts, and what did not fit together."""
    read: dict[vt.Version, int] = {}
    for version, samples in _samples().items():
        read[version] = sum(process.read(data).succeeded for _, data in samples)
    tested = sorted(read)
    newest = next((before for before, version in pairwise(tested) if not read[version]), tested[-1])
    if not read[tested[0]]:
        raise Probing(f"{process.release} reads none of the artifacts of {tested[0]}")
    doubts = [
        f"it reads {number} of {len(_samples()[version])} artifacts that need {version}"
        for version, number in sorted(read.items())
        if number != (len(_samples()[version]) if version <= newest else 0)
    ]
    # Versions that brought nothing that a reader notices cannot be told from those before.
    first = next((version for version in tested if version > newest), None)
    untold = [each.version for each in known_versions() if newest < each.version < (first or newest_version())]
    if untold:
        doubts.append(f"{_UNTOLD} {', '.join(map(str, untold))}: no artifact tells")
    return newest, tested[0], tuple(doubts)


def _requires_python(requirement: str) -> str:
    """Return the Python versions of the release's own metadata."""
    release = PackageRelease.parse(requirement)
    site = next((environment(requirement).parents[1] / "lib").glob("python3*/site-packages"))
    name = (release.kind.installed or release.package).replace("-", "_")
    folder = next(each for each in site.glob("*.dist-info") if each.name.lower().startswith(f"{name}-"))
    found = PathDistribution(folder).metadata["Requires-Python"]
    if found:
        return str(SpecifierSet(found))
    major, minor = oldest_python(requirement)
    return f">={major}.{minor}"


def probe_jax(requirement: str) -> JaxFacts:
    """Let a release of jax export functions, and read what it wrote.

    Raises:
        Probing: If it exports nothing.
        ReleaseEnvironmentError: If it cannot be installed or started.
    """
    with ReleaseProcess(requirement) as process:
        jaxlib = process.describe()["packages"]["jaxlib"]
    telling = {part for each in known_jax_releases() for part in each.always}
    with tempfile.TemporaryDirectory() as place:
        command = [str(environment(requirement)), "-I", str(JAX_SESSION), "write", place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        files = [decode_jax_export(path.read_bytes()) for path in sorted(Path(place).glob("*.jax_export"))]
    if not files:
        raise Probing(f"{requirement} exports nothing: {done.stderr.strip()[-300:]}")
    versions = {(each.serialization_version, each.calling_convention_version) for each in files}
    parts = {id_ for each in files for id_, _ in parts_of(each)}
    doubts = [] if len(versions) == 1 else [f"its files have several versions: {sorted(versions)}"]
    serialization, calling = max(versions)
    return JaxFacts(jaxlib, serialization, calling, tuple(sorted(parts & telling)), tuple(doubts))
