"""Text that only a release of its time reads, as the artifact that this release writes of it."""

from __future__ import annotations

from vhlo_tools.errors import InvalidProgramError, ReleaseEnvironmentError
from vhlo_tools.files import Kind, Source, identify
from vhlo_tools.releases.confirming import process_of, specified_version
from vhlo_tools.releases.environments import PackageRelease


def read_in_time(program: object, release: str | None, name: str | None = None) -> Source:
    """Identify a program; MLIR text becomes the artifact that ``release`` writes of it, if one is given."""
    source = identify(program, name)
    if release is None or source.kind is not Kind.MLIR_TEXT or source.data is None:
        return source
    return identify(_written_by(release, bytes(source.data), source.name or "the text"), source.name)


def _written_by(release: str, text: bytes, name: str) -> bytes:
    """Let a release, such as ``jaxlib==0.4.20``, write MLIR text for its own version.

    What it writes is not trusted: the text may have taken the release over.
    """
    parsed = PackageRelease.of_reader(release)
    if not parsed.kind.writes:
        raise ReleaseEnvironmentError(f"{release} writes no artifacts: name a release of jaxlib or torch-mlir")
    process = process_of(str(parsed))
    version = specified_version(parsed) or process.describe().get("stablehlo")
    if version is None:
        raise ReleaseEnvironmentError(f"{release}: its StableHLO version is not known")
    answer = process.write([text], str(version), "text")
    if not answer.succeeded or len(answer.parts) != 1:
        raise InvalidProgramError(f"{release} does not read {name}: {answer.words or 'it wrote nothing'}")
    return bytes(answer.parts[0])
