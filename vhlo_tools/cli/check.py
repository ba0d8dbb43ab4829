"""``vhlo check``: reports which programs a consumer cannot read, and why."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vhlo_tools import api
from vhlo_tools.cli import options
from vhlo_tools.cli.display import Progress, echo, has_colours, shown_progress, window_width
from vhlo_tools.cli.helping import command
from vhlo_tools.compat import expansion_flag
from vhlo_tools.errors import SettingsError
from vhlo_tools.files import NO_CACHE, write_atomically
from vhlo_tools.gate import (
    COMMAND_LINE,
    FORMATS,
    Gate,
    KeyPlace,
    Summary,
    bytes_of,
    load_settings,
    page_of,
    read_levels,
    read_patterns,
    render,
    render_statistics,
    wrapped,
)
from vhlo_tools.printable import json_text, printable
from vhlo_tools.spec import Feature, explanation_of, known_explanations, known_features

if TYPE_CHECKING:
    from vhlo_tools.artifact import Artifact
    from vhlo_tools.files import Buffer
    from vhlo_tools.findings import Finding
    from vhlo_tools.gate import Answer, Baseline, Levels, Listing, Renderer, Scope, Settings

#: The folder of findings of earlier runs, in the folder of the settings.
_CACHE: Final = ".vhlo-cache"
#: Seconds.
_NOTICED: Final = 0.1
#: The seconds after which a log says that the run goes on.
_LONG: Final = 5.0


_settings_options = options.several(
    click.option("--config", metavar="FILE", help="The settings file to read, instead of those found."),
    click.option("--isolated", is_flag=True, help="Read no settings file."),
    click.option("--show-settings", is_flag=True, help="Show the settings, and their values for each PATH."),
    click.option(
        "--settings-schema",
        "schema_of",
        type=click.Choice(["vhlo-tools.toml", "pyproject.toml"]),
        is_flag=False,
        flag_value="vhlo-tools.toml",
        help="Print the JSON schema of settings, by default in vhlo-tools.toml, for editors.",
    ),
    click.option("--exclude", multiple=True, metavar="PATTERN", help="Files to exclude, as in .gitignore."),
    click.option(
        "--force-exclude/--no-force-exclude",
        default=None,
        help="Whether --exclude also applies to files that are named individually.",
    ),
    *(
        click.option(f"--{level}", multiple=True, metavar="FEATURE", help=f"{what} May be a glob or a kind.")
        for level, what in (
            ("deny", "Make findings of a feature errors."),
            ("warn", "Make findings of a feature warnings."),
            ("allow", "Drop findings of a feature, and count them."),
        )
    ),
    click.option(
        "--require-manifest/--no-require-manifest",
        default=None,
        help="Whether an artifact or a jax.export file without a manifest beside it has an error.",
    ),
    click.option(
        "--max-device-memory",
        metavar="SIZE",
        help="The most memory that a program may need on each device of --confirm-with, such as 16GiB.",
    ),
    click.option(
        "--against",
        metavar="REV",
        help="Check only programs that are new or changed since a revision of git, and compare with it.",
    ),
    click.option(
        "--same-aliases-as",
        "reference",
        metavar="FILE",
        help="Of one program: make aliases and donors of FILE that it has lost or changed errors.",
    ),
    click.option("--baseline", metavar="FILE", help="Ignore the known findings in FILE."),
    click.option("--update-baseline", is_flag=True, help="Write the findings to the baseline."),
    click.option("--fail-on-stale", is_flag=True, help="Exit with 1 if a known finding does not occur any more."),
    options.jobs_option("The most processes, by default one for each core; few programs are checked in one."),
    options.dask_option,
    click.option("--cache-dir", metavar="DIR", help="Keep findings in DIR, by default .vhlo-cache."),
    click.option("--no-cache", is_flag=True, envvar=NO_CACHE, help="Neither use nor keep findings of other runs."),
    click.option(
        "--fail-on-unrecognised", is_flag=True, help="Exit with 2 if a folder has files that are no programs."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print findings only, in text."),
    click.option("--statistics", is_flag=True, help="Print the number of findings of each feature instead."),
    click.option(
        "--show-files",
        is_flag=True,
        help="Print which files would be checked and which are no programs, and stop.",
    ),
    click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings."),
)


@command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--target",
    multiple=True,
    metavar="TARGET",
    help="A version (1.9.0), a consumer (jaxlib==0.4.31), a window (12w), a comma list, or a name from the settings. "
    "May be repeated.",
)
@click.option(
    "--readable-by",
    multiple=True,
    metavar="READER",
    help="A consumer that must read the file unchanged. May be repeated.",
)
@click.option("--explain", metavar="FEATURE", help="Describe a feature: its first version and its remedy.")
@click.option(
    "--allow-other-dialects/--refuse-other-dialects",
    default=None,
    help="Whether programs may contain ops of dialects other than StableHLO.",
)
@click.option(
    "--legalize/--no-legalize",
    default=None,
    help="Whether ops that no artifact can represent are rewritten to StableHLO, or rejected.",
)
@click.option(
    "--expand/--no-expand",
    default=None,
    help="Whether features newer than a target may be rewritten, where the program computes the same.",
)
@options.confirm_option
@options.read_with_option
@options.allow_relaxed_option
@click.option("--allow-signature-change/--no-allow-signature-change", default=None, help=options.SIGNATURE_CHANGE_HELP)
@_settings_options
@options.as_of_option
@options.provider_option
@options.trusted_option
@click.option("--output-format", "--format", type=click.Choice(FORMATS), help="By default text.")
@options.result_option()
def check(
    paths: tuple[str, ...],
    explain: str | None,
    config: str | None,
    isolated: bool,
    show_settings: bool,
    schema_of: str | None,
    deny: tuple[str, ...],
    warn: tuple[str, ...],
    allow: tuple[str, ...],
    reference: str | None,
    update_baseline: bool,
    fail_on_stale: bool,
    fail_on_unrecognised: bool,
    jobs: int | None,
    dask: str | None,
    cache_dir: str | None,
    no_cache: bool,
    quiet: bool,
    statistics: bool,
    show_files: bool,
    exit_zero: bool,
    provider: str | None,
    trusted: bool,
    output: str | None,
    **given: Any,
) -> int:
    """Check that programs can be written for every TARGET, or read by every READER.

    A PATH is a file, a folder, or a glob. Values that are not given are read from the settings: the nearest
    vhlo-tools.toml, or pyproject.toml with a table [tool.vhlo-tools], from the working directory upwards. Exit code 0:
    no blocking findings; 1: blocking findings; 2: bad settings, a bad target, or a file that cannot be read.
    """
    if explain is not None:
        _explain(explain, given["output_format"] or "text")
        return 0
    if schema_of is not None:
        from vhlo_tools.gate import settings_schema

        click.echo(json_text(settings_schema(project=schema_of == "pyproject.toml"), indent=2))
        return 0
    if config is not None and isolated:
        raise click.UsageError("--config and --isolated exclude each other: give only one")
    settings = load_settings(config=Path(config) if config is not None else None, isolated=isolated)
    given["exclude"] = read_patterns(list(given["exclude"]), KeyPlace(COMMAND_LINE, "exclude"))
    settings = settings.with_command_line(_levels(deny=deny, warn=warn, allow=allow), paths=paths, **given)
    if show_settings:
        return _show(settings, provider)
    if show_files:
        return _show_files(settings)
    if settings.confirm_with and not any(targets or readers for targets, readers in settings.questions()):
        # A release that is to read what is written for it.
        settings = replace(settings, target=settings.confirm_with)
    if not settings.paths or not any(targets or readers for targets, readers in settings.questions()):
        raise click.UsageError(
            "expected a PATH, and --target or --readable-by, here or in the settings; or --explain FEATURE"
        )
    if statistics and settings.output_format not in ("text", "json"):
        raise click.UsageError("--statistics prints text or json: give --output-format json, or text")
    if output is not None:
        options.check_output(output, force=True, binary=False)
    if settings.max_device_memory is not None:
        try:
            bytes_of(settings.max_device_memory)
        except SettingsError as error:
            raise click.BadParameter(str(error), param_hint="--max-device-memory") from error
        if not any("@" in each for each in settings.confirm_with):
            raise click.UsageError(
                "--max-device-memory is for a device: expected --confirm-with libtpu==0.0.52@v5e, for one"
            )
    if settings.require_manifest and options.STANDARD in settings.paths:
        raise click.UsageError("--require-manifest is for files: a manifest is beside a file, and - is stdin")
    if update_baseline and settings.against is not None:
        raise click.UsageError("--update-baseline needs the findings of all programs: leave out --against")
    gate = Gate(settings, _baseline(settings, update_baseline), provider=provider, trusted=trusted)
    renderer = render_statistics if statistics else render
    if settings.confirm_with:
        api.install_releases(settings.confirm_with, _say)
    if settings.read_with is not None:
        options.install_reader(settings.read_with)
    lost = [] if reference is None else _lost(gate, reference, provider)
    kept = _kept(settings, cache_dir, no_cache=no_cache)
    with options.cluster(dask) as client:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        work: Any = {"jobs": jobs or cores, "executor": client}
        named = None if output == options.STANDARD else output
        # Where the user has named the folder, findings are kept however brief the run is.
        summary = _report(gate, work, kept, named, renderer, lost, quiet=quiet, brief=cache_dir is None)
    if gate.baseline is not None and update_baseline:
        gate.baseline.write()
        _say(f"the findings were written to {gate.baseline.path}")
    stale = gate.baseline is not None and not update_baseline and _say_stale(gate.baseline)
    if summary.states["unreadable"] or (fail_on_unrecognised and summary.others):
        return 2
    if exit_zero or update_baseline:
        return 0
    return int(bool(summary.states["blocked"]) or (stale and fail_on_stale))


def _levels(**features: tuple[str, ...]) -> Levels:
    given: dict[str, str] = {}
    for level, names in features.items():
        for name in names:
            if given.setdefault(name, level) != level:
                raise click.UsageError(f"--{given[name]} and --{level} of {name!r} exclude each other: give only one")
    return read_levels(given, KeyPlace(COMMAND_LINE))


def _show(settings: Settings, provider: str | None) -> int:
    if settings.output_format not in ("text", "json"):
        raise click.UsageError("--show-settings prints text or json: give --output-format json, or text")
    # Imported here, as are the next, because few runs ask for it.
    from vhlo_tools.cli import check_settings

    gate = Gate(settings, provider=provider)
    files = gate.files(settings.paths) if settings.source("paths") == COMMAND_LINE else []
    lines = map(printable, check_settings.lines(gate, files))
    options.show(settings.output_format, check_settings.as_json(gate, files), lines)
    return 0


def _show_files(settings: Settings) -> int:
    if not settings.paths:
        raise click.UsageError("expected a PATH, here or in the settings")
    others: list[str] = []
    files = Gate(settings).files(settings.paths, others.append)
    options.show(settings.output_format, {"files": files, "unrecognised": others}, files)
    for each in others if settings.output_format != "json" else ():
        _say(f"{each} is no program")
    return 0


def _baseline(settings: Settings, update: bool) -> Baseline | None:
    if settings.baseline is None:
        if update:
            raise click.UsageError("expected --baseline FILE, here or in the settings, for --update-baseline")
        return None
    from vhlo_tools.gate import Baseline

    path = Path(settings.baseline)
    return Baseline(path) if update and not path.exists() else Baseline.read(path)


def _kept(settings: Settings, folder: str | None, *, no_cache: bool) -> Path | None:
    """Return the folder of the findings of other runs; ``None`` to use and keep none."""
    if folder is not None and no_cache:
        raise click.UsageError("--cache-dir and --no-cache exclude each other: give only one")
    if no_cache:
        return None
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise click.UsageError(f"--cache-dir {folder}: expected a folder, found a file")
    return settings.folder / _CACHE if folder is None else Path(folder)


def aliased_artifact(source: str, provider: str | None, read_with: str | None = None) -> Artifact:
    program, name = options.read_program(source)
    if read_with is not None:
        # Imported here because few runs read text of other years.
        from vhlo_tools.releases import read_in_time

        program = read_in_time(program, read_with, name)
    return api.aliased_artifact(program, name=name, provider=provider)


def lost_aliases(artifact: Artifact, reference: Artifact) -> list[Finding]:
    # Imported here because few runs compare them.
    from vhlo_tools.aliasing import compare_aliases

    return compare_aliases(artifact.declared_aliases(), reference.declared_aliases())


def _lost(gate: Gate, reference: str, provider: str | None) -> list[Finding]:
    """Return errors for the aliases of ``reference`` that the program has not, before anything is printed."""
    files = gate.files(gate.settings.paths)
    if len(files) != 1 or options.STANDARD in (*files, reference):
        raise click.UsageError(
            f"--same-aliases-as compares one file with another: found {len(files)} programs, and {reference}"
        )
    found = lost_aliases(*(aliased_artifact(each, provider, gate.settings.read_with) for each in (files[0], reference)))
    return [replace(each, level="error") for each in found]


def _report(
    gate: Gate,
    work: Any,
    kept: Path | None,
    output: str | None,
    renderer: Renderer,
    lost: list[Finding],
    *,
    quiet: bool,
    brief: bool,
) -> Summary:
    """Write the report to ``output``; other messages go to stderr. Findings of other runs are ``kept`` in a folder.

    The program has the findings ``lost`` as well.
    """
    against = gate.settings.against
    listing = gate.listing(gate.settings.paths)
    if not listing.head():
        _say("no programs to check: all are excluded")
    shown = output is None
    looks: Any = {"quiet": quiet, "colour": shown and has_colours(), "width": window_width() if shown else None}

    def write(scope: Scope, answers: Iterator[Answer], found: Listing | None = None) -> Summary:
        answers = gate.with_findings(answers, lost) if lost else answers
        return _written(gate.settings.output_format, renderer, output, scope, answers, found)

    if against is None:
        # Others begin while files are being found; here, their number says how many processes are worth while.
        found = listing if work["executor"] is not None else None
        listed = [] if found is not None else list(listing)
        scope = replace(gate.scope(found or [each.path for each in listed]), others=lambda: listing.others, **looks)
        if brief and found is None and gate.fits_inline(listed):
            return write(scope, gate.check_inline(listed))
        # Imported here because a brief run does without.
        from vhlo_tools.gate import FindingsCache

        return write(scope, gate.answers(found or listed, _read_standard, cache=FindingsCache(kept), **work), found)
    from vhlo_tools.gate import FindingsCache, Revision, changes_since

    paths = [each.path for each in listing]
    with Revision(against) as revision:
        since = changes_since(revision, paths, gate.settings.paths)
        changes = since.changed
        changed = [each.path for each in changes]
        looks |= {"paths": changed, "against": against, "unchanged": len(paths) - len(changed)}
        looks["deleted"] = [each for each in since.deleted if not gate.settings.is_excluded(each)]
        answers = gate.answers_against(revision, changes, _read_standard, cache=FindingsCache(kept), **work)
        return write(replace(gate.scope(paths), others=lambda: listing.others, **looks), answers)


def _written(
    output_format: str,
    renderer: Renderer,
    output: str | None,
    scope: Scope,
    answers: Iterator[Answer],
    listing: Listing | None = None,
) -> Summary:
    summary = Summary()
    # On a terminal that shows the report, programs are its progress.
    shows_report = output is None and sys.stdout is not None and sys.stdout.isatty()
    with shown_progress(bar=not shows_report, soon=_LONG) as progress:
        if listing is None:
            progress.expect(len(scope.paths), len(scope.paths))
        counted = summary.counting(_advancing(answers, progress, listing))
        # File names may contain bytes that are not text.
        pieces = (each.encode("utf-8", "backslashreplace") for each in renderer(output_format, scope, counted))
        if output is not None:
            write_atomically(Path(output), pieces, force=True)
        else:
            for piece in _grouped(pieces):
                click.echo(piece, nl=False)
    if output is not None:
        _say(f"{summary}{scope.left_out}; the result is in {output}")
    summary.others = scope.others()
    return summary


def _advancing(answers: Iterable[Answer], progress: Progress, files: Listing | None) -> Iterator[Answer]:
    """Report progress, for which every file counts the same."""
    for answer in answers:
        yield answer
        if files is not None:
            progress.expect(files.number, files.number, more=not files.is_complete)
        progress.advance(1, ok=answer.ok)


def _grouped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join pieces for less than a noticeable time: writing each at once takes longer than a check."""
    held, since = list[bytes](), time.monotonic()
    for piece in pieces:
        held.append(piece)
        if time.monotonic() - since >= _NOTICED:
            yield b"".join(held)
            held, since = [], time.monotonic()
    yield b"".join(held)


def _read_standard(path: str) -> Buffer | None:
    return options.read_input(path)[0] if path == options.STANDARD else None


def _say_stale(baseline: Baseline) -> bool:
    """Name the known findings that do not occur any more, and return whether there are any."""
    stale = baseline.stale()
    for identity, count in stale:
        times = f" ({count} times)" if count > 1 else ""
        what = f"{identity.feature} in {identity.path or identity.op or identity.file}"
        _say(
            f"note: {baseline.path} is stale: {identity.file} for {identity.target} no longer has {what}{times}; "
            f"--update-baseline removes it"
        )
    return bool(stale)


def _say(message: str) -> None:
    echo(f"vhlo: {message}", err=True)


# Output of ``vhlo check --explain``: descriptions of features as text of 80 columns


def _explain(name: str, output_format: str) -> None:
    if output_format not in ("text", "json"):
        raise click.UsageError("--explain prints text or json: give --output-format json, or text")
    features = {each.id: each for each in known_features()}
    explanation = explanation_of(name)
    if explanation is None and name not in features:
        from difflib import get_close_matches

        near = [each.id for each in features.values() if name.lower() in f"{each.id} {each.title}".lower()]
        others = [each.id for each in known_explanations()]
        near += [each for each in others if name.lower() in each]
        near = list(dict.fromkeys([*near, *get_close_matches(name.lower(), [*features, *others])]))
        hint = f"did you mean {', '.join(near)}?" if near else "`vhlo spec list` shows all features"
        raise click.UsageError(f"{name!r} is not a feature: {hint}")
    if explanation is not None:
        # Findings of an id that is not a feature of a version.
        lines = [f"{name} ({explanation.level})", *wrapped(explanation.text, "  "), *_page_lines(name)]
        options.show(output_format, {**asdict(explanation), "id": name, "page": page_of(name)}, lines)
    else:
        feature = features[name]
        as_json = {**asdict(feature), "introduced": str(feature.introduced), "page": page_of(name)}
        options.show(output_format, as_json, [*feature_lines(feature), *_page_lines(name)])


def _page_lines(name: str) -> list[str]:
    page = page_of(name)
    return wrapped(f"page: {page}" if page.startswith("http") else f"page: {page} of the site", "  ")


def feature_lines(feature: Feature) -> Iterator[str]:
    yield f"{feature.id} ({feature.kind}), since StableHLO {feature.introduced}"
    yield from wrapped(feature.title, "  ")
    for label, names in (("on the ops", feature.ops), ("of VHLO", feature.names)):
        if names:
            yield from wrapped(f"{label}: {', '.join(names)}", "  ")
    yield from wrapped(f"For older consumers: {feature.remedy}.", "  ")
    if feature.inexpressible:
        yield from wrapped(f"It cannot be expanded: {feature.inexpressible}.", "  ")
    for each in feature.expansions:
        said = f"{expansion_flag(feature, each)} rewrites it, for consumers of {each.to} or later"
        said += f", and gives up {each.gives_up}" if each.gives_up else ""
        yield from wrapped(f"{said}. It does not apply to {each.limits}." if each.limits else f"{said}.", "  ")
