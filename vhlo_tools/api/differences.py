"""Differences between two programs in any supported format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.frontends import as_artifact, as_program
from vhlo_tools.artifact import DIFFERENCE_KINDS, Difference, Differences
from vhlo_tools.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from vhlo_tools.artifact import Artifact, DifferenceKind
    from vhlo_tools.program import Program, ProgramSource


def diff(
    before: ProgramSource,
    after: ProgramSource,
    *,
    locations: bool = False,
    ignore: Iterable[DifferenceKind] = (),
    names: tuple[str | None, str | None] = (None, None),
    provider: str | None = None,
    trusted: bool = False,
) -> list[Difference]:
    """Return the differences between two programs; an empty list if they are equal.

    Two artifacts are compared on their bytes, without MLIR, at the newer of their versions. Otherwise both programs are
    first written at the newest version of the library, so that differences in encoding between versions are ignored.

    Args:
        before: Anything that :func:`vhlo_tools.serialize` accepts.
        after: Anything that :func:`vhlo_tools.serialize` accepts.
        locations: Whether source locations are compared too.
        ignore: Kinds of differences to ignore, such as ``version``.
        names: The names of the programs in messages, by default their paths.
        provider: The bindings to use if they are needed.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`vhlo_tools.serialize`.

    Returns:
        The differences, by kind: versions only for two artifacts; ops by their positions in ``before``.

    Raises:
        InvalidProgramError: If one is not a valid program.
        MalformedArtifactError: If one is a damaged artifact, or one the installed library cannot read.
        UnsupportedFeatureError: If one contains something that no artifact can represent.
        ProviderError: If bindings are needed and none are installed.
        ValueError: If ``ignore`` contains an unknown kind.
    """
    # Imported here so that opening artifacts does not import the comparison.
    from vhlo_tools.artifact import diff_artifacts

    ignored = frozenset((ignore,) if isinstance(ignore, str) else ignore)
    if unknown := sorted(ignored.difference(DIFFERENCE_KINDS)):
        raise ValueError(f"{unknown[0]!r} is not a kind of difference: expected one of {', '.join(DIFFERENCE_KINDS)}")
    before, after = (
        as_program(source, name=name, provider=provider) for source, name in zip((before, after), names, strict=True)
    )
    sources = (before, after)
    artifacts = [as_artifact(source, name) for source, name in zip(sources, names, strict=True)]
    one, other = artifacts
    if one is None or other is None:
        found = _diff_programs(sources, artifacts, names, provider, locations=locations, trusted=trusted)
    elif one.version.minor_release == other.version.minor_release:
        found = diff_artifacts(one, other, locations=locations)
    else:
        found = [Difference("version", "", str(one.version), str(other.version))]
        newer = max(one.version, other.version)
        try:
            moved = [each if each.version == newer else each.retargeted(newer) for each in (one, other)]
            found += diff_artifacts(*moved, locations=locations)
        except UnsupportedFeatureError:
            # Ops that VHLO has removed, or attributes that only the library can convert.
            found += _diff_programs(sources, artifacts, names, provider, locations=locations, trusted=trusted)
    return Differences([each for each in found if each.kind not in ignored])


def _diff_programs(
    sources: tuple[ProgramSource, ProgramSource],
    artifacts: list[Artifact | None],
    names: tuple[str | None, str | None],
    provider: str | None,
    *,
    locations: bool,
    trusted: bool,
) -> list[Difference]:
    from vhlo_tools.artifact import diff_artifacts
    from vhlo_tools.conversion import newest_artifact
    from vhlo_tools.program import load_program

    programs = [
        load_program(source if artifact is None else artifact, name=name, provider=provider, trusted=trusted)
        for source, artifact, name in zip(sources, artifacts, names, strict=True)
    ]
    written = [newest_artifact(program, allow_other_dialects=True) for program in programs]
    found = diff_artifacts(written[0], written[1], locations=locations)
    changed = _changed_attributes(programs, artifacts)
    places = {each.path for each in found}
    merged = [*found, *(each for each in changed if each.path not in places)]
    return sorted(merged, key=lambda each: DIFFERENCE_KINDS.index(each.kind))


def _changed_attributes(programs: list[Program], artifacts: list[Artifact | None]) -> list[Difference]:
    """Return attributes that differ in the original programs but, because of conversion, not in their artifacts."""
    from vhlo_tools.conversion import changed_forms
    from vhlo_tools.program import names_in_utf8

    # Attributes in an artifact already have their final form.
    forms = []
    for program, artifact in zip(programs, artifacts, strict=True):
        with names_in_utf8(program.name):
            forms.append(changed_forms(program) if artifact is None else {})
    found = []
    for path in {**forms[0], **forms[1]}:
        before, after = forms[0].get(path), forms[1].get(path)
        if before != after:
            known = next(each for each in (before, after) if each is not None)
            texts = (known.comes_back if each is None else each.text for each in (before, after))
            found.append(Difference(_KINDS.get(known.holder, "op"), path, *texts))
    return found


# By the owner of the attribute.
_KINDS: Final[dict[str, DifferenceKind]] = {
    "argument": "argument attribute",
    "function": "function attribute",
    "result": "result attribute",
}
