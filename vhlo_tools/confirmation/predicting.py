"""Predict by the specification whether a release writes a program, and whether it reads an artifact."""

from __future__ import annotations

from vhlo_tools.artifact import Artifact, other_dialects
from vhlo_tools.environments import PackageRelease
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_jax_releases, known_releases, newest_version
from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class Prediction:
    positive: bool | None  # the release can; None if the specification cannot say
    reasons: tuple[str, ...] = ()  # why not, or why it cannot say


def specified_version(release: PackageRelease) -> Version | None:
    """The version in ``dialect_specs/releases.toml``."""
    package, version = release.package, str(release.version)
    if package == "jax":
        # jax reads what its jaxlib does.
        package, version = "jaxlib", next((each.jaxlib for each in known_jax_releases() if each.release == version), "")
    if package == "tensorflow-cpu":
        package = "tensorflow"
    found = (each for each in known_releases() if (each.package, each.release) == (package, version))
    return next((each.stablehlo for each in found), None)


def predict_writing(program: Artifact, version: Version | None) -> Prediction:
    if version is None:
        return Prediction(None, ("its StableHLO version is not known",))
    if dialects := other_dialects(program):
        return Prediction(None, (f"it depends on other dialects: {', '.join(sorted(dialects))}",))
    if version.minor_release > newest_version():
        return Prediction(None, (f"StableHLO {version} is newer than the specification",))
    found = [each for each in program.requirements().findings(version) if each.level == "error"]
    return Prediction(not found, tuple(dict.fromkeys(each.message for each in found)))


def predict_reading(artifact: Artifact, version: Version | None) -> Prediction:
    if version is None:
        return Prediction(None, ("its StableHLO version is not known",))
    found = [each for each in artifact.requirements().reader_findings(version) if each.level == "error"]
    reasons = tuple(dict.fromkeys(each.message for each in found))
    if dialects := other_dialects(artifact):
        # They promise nothing: some are not known to every release, and bytes of some are read by their own only.
        return Prediction(None, (*reasons, f"it depends on other dialects: {', '.join(sorted(dialects))}"))
    return Prediction(not found, reasons)
