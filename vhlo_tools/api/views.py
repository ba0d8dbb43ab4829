"""Views of programs: graphs, and pages of HTML."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from vhlo_tools.api.aliases import aliased_artifact
from vhlo_tools.api.checking import Checked, prepare_check
from vhlo_tools.api.conversion import resolve_target
from vhlo_tools.api.differences import diff
from vhlo_tools.errors import (
    DowngradeError,
    InvalidInputError,
    InvalidProgramError,
    LayoutError,
    UnsupportedFeatureError,
    VhloToolsError,
)
from vhlo_tools.files import Kind, Place, Url, identify, is_path, is_saved_model, place
from vhlo_tools.printable import printable
from vhlo_tools.spec import minimum_version
from vhlo_tools.stores import AT_REST
from vhlo_tools.viewing import MOST_BOXES, dot_lines, mermaid_lines, picture_of, program_graph, svg_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vhlo_tools.artifact import Artifact
    from vhlo_tools.files import Source
    from vhlo_tools.program import CheckOptions, ProgramSource
    from vhlo_tools.releases import Say
    from vhlo_tools.stores import StoreFile
    from vhlo_tools.version import Version
    from vhlo_tools.viewing import Page, Picture

# Graphs of programs, written down for other tools to draw, or drawn

GraphLanguage = Literal["dot", "mermaid", "svg"]


def _svg(picture: Picture) -> Iterator[str]:
    # Imported here because the others do without.
    from vhlo_tools.viewing import layout_worker

    engine = layout_worker()
    if engine is None:
        raise LayoutError(
            "elkjs, which lays graphs out, is not in this checkout: fetch it with `python scripts/page_assets.py`, "
            "which needs npm; or write the graph as DOT or Mermaid"
        )
    return svg_lines(picture, engine.decode())


_WRITERS: Final = {"dot": dot_lines, "mermaid": mermaid_lines, "svg": _svg}

#: The languages that a graph can be written in.
GRAPH_LANGUAGES: Final = tuple(_WRITERS)


def draw_graph(
    program: ProgramSource,
    language: GraphLanguage = "svg",
    *,
    function: str | None = None,
    max_nodes: int | None = MOST_BOXES,
    name: str | None = None,
    provider: str | None = None,
) -> str:
    """Return the graph of a program as text in a language of graphs, or as a picture.

    Ops are folded by function, region, source line and position; what was introduced after the oldest version with
    guarantees is marked, with its version.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts; an artifact needs no MLIR.
        language: ``dot``, which Graphviz draws; ``mermaid``, a flowchart for Markdown; ``svg``, a picture, which needs
            the extra ``svg``.
        function: The name of the function to draw; by default all.
        max_nodes: The most nodes, arguments not counted: groups of ops are unfolded while there is room, outer ones
            first. ``None`` unfolds all.
        name: The name of the program in messages, by default its path.
        provider: The bindings to use if they are needed.

    Raises:
        InvalidInputError: If the language is not known, or the program has no such function.
        InvalidProgramError: If it is not a valid program.
        LayoutError: If the picture cannot be laid out.
        MalformedArtifactError: If it is a damaged artifact.
        MissingExtraError: If the extra is not installed.
        UnsupportedFeatureError: If it contains something that no artifact can represent.

    >>> import vhlo_tools as vt
    >>> vt.draw_graph("examples/saxpy.mlir", "mermaid").splitlines()[0]
    'flowchart TB'
    """
    write = _WRITERS.get(language)
    if write is None:
        raise InvalidInputError(f"{language!r} is not a language of graphs; expected one of {', '.join(_WRITERS)}")
    graph = program_graph(aliased_artifact(program, name=name, provider=provider))
    return "\n".join([*write(picture_of(graph, function=function, most=max_nodes)), ""])


# Pages to look at: a program with its time line and its graph; two programs side by side; a store

#: How a Parquet file begins, in which commands that work on stores write their results.
_PARQUET: Final = b"PAR1"


def report(
    program: ProgramSource,
    other: ProgramSource | None = None,
    *,
    target: str | Version | None = None,
    as_of: date | None = None,
    other_name: str | None = None,
    compile_for: str | Sequence[str] = (),
    say: Say | None = None,
    **options: Unpack[CheckOptions],
) -> Page:
    """Return a page to look at: one HTML file, which asks nothing of any network.

    Of a program it has the versions that brought what is in it, the releases that read it, what blocks where and what
    an expansion would do; the graph of its ops, folded by function, region and source line; its constants, inputs,
    outputs and aliases; and the findings. Of two programs it has the differences, side by side. Of a store it has the
    files by the releases that read them, their windows over time, and what blocks most.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts. An artifact is read from its bytes, without MLIR;
            of other programs, an artifact of the newest version is shown. Or the path of a folder, which is a store; or
            of results that ``vhlo migrate``, ``vhlo store status`` or ``vhlo verify`` wrote as Parquet.
        other: A program to compare the first with.
        target: The consumer that the findings of a program are about, in the target grammar, or the one that files of a
            store are to be for; by default the oldest version, so that everything that is newer is listed.
        as_of: The day for which the page is made, and from which windows in ``target`` count back; by default today.
        other_name: The name of the other program, by default its path.
        compile_for: A release with a device, or several, whose compilers are to say what they make of one program, as
            :func:`compile_for` does.
        say: Is told if an environment of a release is made.
        options: As for :func:`vhlo_tools.check`.

    Returns:
        The page; :meth:`Page.save` writes it.

    Raises:
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnsupportedFeatureError: If no artifact can represent it; the findings say why.
        MigrationError: If there is no file in a store.
        ResultsError: If results are damaged.
        MissingExtraError: If results are to be read, and pyarrow is not installed.
        InvalidInputError: If it is no program that is to be compiled.
        ReleaseEnvironmentError: If a release of ``compile_for`` cannot be had.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
    """
    today = as_of or date.today()
    resolved = minimum_version()
    if target is not None:
        resolved = resolve_target(str(target), as_of=as_of, provider=options.get("provider")).version
    releases = [compile_for] if isinstance(compile_for, str) else compile_for
    where = place(program) if other is None and is_path(program) else None
    is_results = isinstance(where, Path) and _is_results(where)
    if releases and (other is not None or is_results or (where is not None and _is_store(where))):
        raise InvalidInputError("one program can be compiled for a device: found two programs, a store, or results")
    if other is not None:
        return _difference(program, other, (options.get("name"), other_name), today, options)
    if is_results:
        from vhlo_tools.stores import summarize_results
        from vhlo_tools.viewing import assembled, results_contents

        summary = summarize_results(str(where)).as_json()
        return assembled("store", results_contents(summary, name=options.get("name") or str(where), today=today))
    if where is not None and _is_store(where):
        return _store(str(where), options.get("name") or str(where), resolved, today)
    # Imported here, as are others, because few calls make pages.
    from vhlo_tools.viewing import assembled, program_contents

    # Read once: the page is about the bytes that it describes.
    source = identify(program, options.get("name"))
    checked = _shown(source, options)
    assert checked.artifact is not None
    contents = program_contents(
        checked.artifact,
        checked.findings(resolved),
        name=options.get("name"),
        target=None if target is None else resolved,
        target_text="" if target is None else str(target),
        today=today,
        source=_of_source(source),
        devices={release: _on_device(checked.artifact, release, say) for release in releases},
    )
    return assembled("program", contents)


def _on_device(artifact: Artifact, release: str, say: Say | None) -> Iterable[tuple[str, str]]:
    # Imported here because a browser has none of it.
    from vhlo_tools.api.compiling import compile_for
    from vhlo_tools.releases import silent

    try:
        return tuple(compile_for(artifact, release, target=release.partition("@")[0], say=say or silent).facts())
    except (DowngradeError, InvalidProgramError, UnsupportedFeatureError) as error:
        return (("is not compiled", printable(str(error))),)


def _of_source(source: Source) -> list[tuple[str, str]]:
    """Return what is said of a program that is no artifact yet: what it is, and that its readers are still open."""
    from vhlo_tools.artifact import NOT_WRITTEN, inspect_bytes, inspect_folder, outline

    if source.kind in (Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT):
        return []
    if source.kind is Kind.SAVED_MODEL:
        return [*islice(outline(inspect_folder(Path(str(place(str(source.given)))))), 2)]
    if source.data is None:
        return [("is", "a program in Python, not written yet"), NOT_WRITTEN]
    return [*islice(outline(inspect_bytes(source.data, source.name or "the program")), 2)]


def _shown(program: ProgramSource, options: Any) -> Checked:
    """Return a program with an artifact of it."""
    checked = prepare_check(program, **options)
    if checked.artifact is None:
        name = options.get("name") or "the program"
        raise UnsupportedFeatureError(f"{name} cannot be shown: no artifact can represent it", checked.general)
    return checked


def _difference(
    one: ProgramSource, other: ProgramSource, names: tuple[str | None, str | None], today: date, options: Any
) -> Page:
    from vhlo_tools.viewing import assembled, difference_contents

    if (release := options.get("read_with")) is not None:
        from vhlo_tools.releases import read_in_time

        one, other = (read_in_time(each, release, name) for each, name in zip((one, other), names, strict=True))
    found = diff(one, other, names=names, provider=options.get("provider"), trusted=options.get("trusted", False))
    first, second = (
        _shown(each, {**options, "name": name}).artifact for each, name in zip((one, other), names, strict=True)
    )
    assert first is not None
    assert second is not None
    shown = names[0] or first.name, names[1] or second.name
    return assembled("difference", difference_contents((first, second), found, names=shown, today=today))


# Both ask with `os.path`, for a program may be given as text, and a `Path` raises for one that is too long.


def _is_store(where: Place) -> bool:
    if isinstance(where, Url):
        return where.is_prefix
    return os.path.isdir(where) and not is_saved_model(where)  # noqa: PTH112


def _is_results(where: Path) -> bool:
    if os.path.isfile(where):  # noqa: PTH113
        with where.open("rb") as file:
            return file.read(len(_PARQUET)) == _PARQUET
    if not os.path.isdir(where):  # noqa: PTH112
        return False
    found = False
    for each in where.rglob("*"):
        if each.is_file():
            # A store is known by its first program.
            if each.suffix != ".parquet":
                return False
            found = True
    return found


def _store(where: str, name: str, target: Version, today: date) -> Page:
    # What works on stores needs more than the standard library, and programs are shown where there is no more.
    from vhlo_tools.api.stores import store_status
    from vhlo_tools.viewing import assembled, store_contents

    others: list[str] = []
    files = [*store_status(where, windows=AT_REST, as_of=today, others=others.append)]
    features = Counter[str]()
    for each in files:
        features.update(_blocking(each, target))
    return assembled("store", store_contents(files, features, name=name, today=today, others=len(others)))


def _blocking(file: StoreFile, target: Version) -> frozenset[str]:
    """Return the features that keep a file from a target; none if it cannot be read, or only by its framework."""
    # Imported here because programs need none of it.
    from vhlo_tools.api.frontends import FRONTENDS

    if file.error is not None or file.kind in FRONTENDS:
        return frozenset()
    try:
        # As `vhlo check` finds it.
        found = prepare_check(file.path).findings(target)
    except (OSError, VhloToolsError):
        # Read a moment ago: whoever changed it meanwhile is not held up.
        return frozenset()
    return frozenset(each.feature for each in found if each.level == "error")
