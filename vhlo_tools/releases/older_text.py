"""Text that only a release of its time reads, as the artifact that this release writes of it."""

from __future__ import annotations

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidProgramError, ReleaseEnvironmentError
from vhlo_tools.releases.confirming import process_of, specified_version
from vhlo_tools.releases.environments import PackageRelease


def artifact_of_text(release: str, text: bytes, name: str) -> Artifact:
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
    return Artifact(answer.parts[0], name=name)
