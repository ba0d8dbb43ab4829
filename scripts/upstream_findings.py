"""What upstream should know: list the findings, reproduce them on released packages, and write their page.

python scripts/upstream_findings.py list                      lists the findings
python scripts/upstream_findings.py show ID                   prints a reproducer as a program of its own
python scripts/upstream_findings.py run ID...                 reproduces findings on the releases that they are shown on
python scripts/upstream_findings.py run --release jaxlib==0.12.0.1 ID...    or on another release
python scripts/upstream_findings.py run --installed ID...     or on the provider of this environment
python scripts/upstream_findings.py write                     writes docs/upstream-findings.md; --check compares

``run`` without ids runs all findings. It says of each ``reproduced``, ``mended`` or ``changed``, and exits with 0 if
all were reproduced, 1 if one is mended, and 2 if one has changed. ``--record`` writes what was found, with the date, to
``tests/findings/results.toml``, of which the page is made. Each release is installed once in an environment of its own
(``scripts/environments.py``).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from packaging.requirements import Requirement
from packaging.version import Version
from support.corpus import ROOT
from support.reproductions import (
    FOLDER,
    GROUPS,
    INSTALLED,
    Answer,
    Finding,
    Result,
    installed_release,
    known_findings,
    known_results,
    run,
    standalone,
)

PAGE = ROOT / "docs" / "upstream-findings.md"
RESULTS = FOLDER / "results.toml"
HEAD = """\
# What became of each finding on which release, and when; written by `scripts/upstream_findings.py run --record`.
#
# outcome  reproduced: it ended as the finding says; mended: as it should; changed: neither.
# seen     how it ended, for each variant of the reproducer.
"""
INTRODUCTION = """\
# What upstream should know

You maintain StableHLO, MLIR's bytecode, XLA, torch-mlir, jax or TensorFlow. This page lists what this project has met
there and works around. Each finding has a command that reproduces it on a named release, in a clone of this project:

<!-- not run: installs releases -->
```sh
./scripts/test --version    # once: makes the environment .venv
.venv/bin/python scripts/upstream_findings.py run {example}
.venv/bin/python scripts/upstream_findings.py show {example}    # the same as a program of its own
```

The command installs the release in an environment of its own, runs the reproducer in a process with limits, and prints
`reproduced`, `mended`, or `changed` with what was seen. `--release jaxlib==0.12.0.1` takes another release, and
`--installed` the provider of the environment. The functions that a reproducer calls are in
[`tests/findings/session.py`](../tests/findings/session.py). The dates are those of the last recorded runs, all made on
Linux on x86-64.

This page is written from [data](../tests/findings/README.md) by `scripts/upstream_findings.py write`. Tests run the
reproducers on the release that each is shown on, and on the installed one, and fail if a release mends something whose
workaround could go.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(description="what upstream should know")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the findings")
    shown = commands.add_parser("show", help="print a reproducer as a program of its own")
    shown.add_argument("id", choices=known_findings(), metavar="ID")
    running = commands.add_parser("run", help="reproduce findings")
    running.add_argument("ids", nargs="*", metavar="ID", help="findings, all by default")
    places = running.add_mutually_exclusive_group()
    places.add_argument(
        "--release", help="a release, such as jaxlib==0.12.0.1, in place of the one that it is shown on"
    )
    places.add_argument("--installed", action="store_true", help="the provider that is installed beside this Python")
    running.add_argument("--record", action="store_true", help="record the results, with the date")
    writing = commands.add_parser("write", help="write the page")
    writing.add_argument("--check", action="store_true", help="exit with 1 if the page is not what the data gives")
    given = parser.parse_args(arguments)
    if given.command == "list":
        print("\n".join(f"{each.id}: {each.title} ({each.library})" for each in known_findings().values()))
        return 0
    if given.command == "show":
        print(standalone(known_findings()[given.id]), end="")
        return 0
    if given.command == "run":
        if unknown := sorted(set(given.ids) - set(known_findings())):
            parser.error(f"no finding {unknown[0]!r}; `list` lists them")
        return run_and_tell(given.ids, INSTALLED if given.installed else given.release, record=given.record)
    return write(check=given.check)


def run_and_tell(ids: Sequence[str], place: str | None, *, record: bool) -> int:
    """Run findings on a release, or each on its own, tell what became of them, and return the exit code."""
    chosen = [each for each in known_findings().values() if not ids or each.id in ids]
    wanted = [(each, place or each.release) for each in chosen if is_of(each, place)]
    answers = run(wanted)
    for answer in answers:
        on = (installed_release(answer.finding.package) or "") if answer.release == INSTALLED else answer.release
        print(f"{answer.finding.id} on {on}: {answer.outcome} ({answer.seen})")
        if answer.outcome == "mended":
            print(f"  the workaround is in {answer.finding.workaround}")
    if record:
        write_results(answers)
    outcomes = {answer.outcome for answer in answers}
    return 2 if "changed" in outcomes else int("mended" in outcomes)


def is_of(finding: Finding, place: str | None) -> bool:
    """Return whether a finding is about the package of a release, or about one that is installed."""
    if place is None:
        return True
    if place == INSTALLED:
        return installed_release(finding.package) is not None
    return Requirement(place).name == finding.package


def write_results(answers: Iterable[Answer]) -> None:
    """Write results with today's date, in place of those of the same findings and releases."""
    by_run = {(each.finding, each.release): each for each in (known_results() if RESULTS.exists() else ())}
    for answer in answers:
        release = installed_release(answer.finding.package) if answer.release == INSTALLED else answer.release
        assert release is not None
        found = Result(answer.finding.id, release, answer.outcome, answer.seen, date.today())
        by_run[found.finding, found.release] = found
    order = {each: number for number, each in enumerate(known_findings())}
    kept = [each for each in by_run.values() if each.finding in order]
    kept.sort(key=lambda each: (order[each.finding], _age(each.release)))
    partial = RESULTS.with_suffix(".partial")
    partial.write_text("\n".join(_lines(kept)))
    partial.replace(RESULTS)


def _lines(results: Iterable[Result]) -> Iterator[str]:
    yield HEAD
    for each in results:
        yield "[[result]]"
        # TOML has the escapes of JSON.
        yield from (f"{key} = {json.dumps(getattr(each, key))}" for key in ("finding", "release", "outcome", "seen"))
        yield f"date = {each.date}"
        yield ""


def _age(release: str) -> tuple[str, Version]:
    (specifier,) = Requirement(release).specifier
    return Requirement(release).name, Version(specifier.version)


def write(*, check: bool) -> int:
    """Write the page, or compare it, and return the exit code."""
    after = page()
    if check:
        return int(not PAGE.exists() or PAGE.read_text() != after)
    PAGE.write_text(after)
    return 0


def page() -> str:
    """Return the page."""
    findings = list(known_findings().values())
    parts = [INTRODUCTION.format(example=findings[0].id), "## All findings\n", "\n".join(_table(findings)) + "\n"]
    for group, title in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_section(each) for each in findings if each.group == group]
    return "\n".join(parts)


def _table(findings: Iterable[Finding]) -> Iterator[str]:
    yield "| finding | library | shown on | run on | in the newest release that was tried |"
    yield "|---|---|---|---|---|"
    for each in findings:
        shown = _result(each, each.release)
        newest = max(_results(each), key=lambda result: _age(result.release))
        yield (
            f"| [{each.title}](#{each.id.lower()}) | {each.library} | `{each.release}` | {shown.date} | "
            f"{newest.outcome} (`{newest.release}`) |"
        )


def _section(finding: Finding) -> str:
    results = _results(finding)
    lines = [
        f"### {finding.id}\n",
        f"**{finding.title}**\n",
        f"`python scripts/upstream_findings.py run {finding.id}`\n",
        f"- What happens: {finding.happens}.",
        f"- Expected: {finding.expected}.",
        f"- Library: {finding.library}; likely place: {finding.where}.",
        f"- The reproducer ends with: {', '.join(finding.ends)}.",
        *([f"- Forms: {', '.join(f'`{each.name}`' for each in finding.variants)}."] if finding.variants else []),
        *([f"- Written by `{finding.writer}`."] if finding.writer else []),
        *([f"- Read by `{finding.reader}`."] if finding.reader else []),
        *([f"- Run by this command alone, not by the tests: {finding.by_hand}."] if finding.by_hand else []),
        "- Runs: " + "; ".join(f"`{each.release}`, {each.date}: {_told(finding, each)}" for each in results) + ".",
        f"- Workaround here: [`{finding.workaround}`](../{finding.workaround})"
        f"{f', which stays because {finding.kept}' if finding.kept else ''}.\n",
        "```text",
        *(f"# V = {each.code!r}" for each in finding.variants),
        *([f"# {finding.writer}:\n{finding.writer_code.strip()}\n# {finding.release}:"] if finding.writer else []),
        finding.code.strip(),
        *([f"# {finding.reader}:\n{finding.reader_code.strip()}"] if finding.reader else []),
        "```\n",
    ]
    return "\n".join(lines)


def _told(finding: Finding, result: Result) -> str:
    """Return an outcome in words; what an older release does not do is not mended there."""
    if result.outcome != "reproduced" and _age(result.release) < _age(finding.release):
        return "not there, or not to be tried"
    return result.outcome if result.outcome != "changed" else f"changed ({result.seen})"


def _results(finding: Finding) -> list[Result]:
    return [each for each in known_results() if each.finding == finding.id]


def _result(finding: Finding, release: str) -> Result:
    try:
        return next(each for each in _results(finding) if each.release == release)
    except StopIteration:
        raise SystemExit(f"{finding.id} was never run on {release}: run it with --record") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
