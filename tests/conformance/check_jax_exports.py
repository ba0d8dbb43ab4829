"""Files of each release of jax, loaded and called by other releases, beside what the toolkit predicts.

``check_jax_exports.py [--readers N] [--folder FOLDER]``: each release writes the functions of
``tests/releases/jax_session.py``; their artifacts are moved to the oldest version that they can have, and to the newest
that any release reads; then N other releases (by default five; ``all`` for every one) load and call the files as they
were written, and as they were moved. What the releases do is compared with the readers that the toolkit predicts.

An environment of each release is made where there is none, and kept (scripts/environments.py). A run that was
interrupted continues in the same folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.release_environments import run_in  # noqa: E402

from vhlo_tools.artifact import JaxContainer, container_findings  # noqa: E402
from vhlo_tools.compat import resolve_target  # noqa: E402
from vhlo_tools.errors import VhloToolsError  # noqa: E402
from vhlo_tools.spec import known_jax_releases, newest_version  # noqa: E402

SESSION = ROOT / "tests" / "releases" / "jax_session.py"
RELEASES = [each.release for each in known_jax_releases()]


def write_files(release: str, folder: Path) -> None:
    """Write the files of a release, and those with moved artifacts."""
    done = folder / "written"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    session = run_in(f"jax=={release}", SESSION, "write-all", folder)
    if session.returncode:
        raise SystemExit(f"jax {release} cannot write: {session.stderr.decode()}")
    for path in sorted(folder.glob("*.jax_export")):
        if path.suffixes != [".jax_export"]:
            continue
        container = JaxContainer.open(path)
        oldest = max(artifact.requirements().downgradable_to for artifact in container.artifacts)
        for name, version in (("down", oldest), ("up", newest_version())):
            container.retargeted(version).save(folder / f"{path.stem}.{name}.jax_export", force=True)
    done.touch()


def readers_of(writer: str, number: int | None) -> list[str]:
    """Return the releases that read the files of ``writer``: its neighbours, the first, the last, and one between."""
    others = [release for release in RELEASES if release != writer]
    if number is None or number >= len(others):
        return others
    at = RELEASES.index(writer)
    near = [RELEASES[index] for index in (at - 1, at + 1, at - 3, at + 3) if 0 <= index < len(RELEASES)]
    far = [others[0], others[-1], others[(at * 7 + 11) % len(others)], *others]
    chosen = dict.fromkeys([*near[:2], *far[:3], *near[2:], *far])
    return list(chosen)[:number]


def outcomes(reader: str, files: Sequence[Path], folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield each file with what happened: ``called``, or the step that failed, and its error."""
    results = folder / f"results.{reader}.jsonl"
    known = {}
    if results.exists():
        known = {entry["file"]: entry for entry in map(json.loads, results.read_text().splitlines())}
    waiting = [file for file in files if str(file) not in known]
    while waiting:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
            listed.write("".join(f"{file}\n" for file in waiting))
            listed.flush()
            session = run_in(f"jax=={reader}", SESSION, "try", listed.name)
        entries = [json.loads(line) for line in session.stdout.decode().splitlines()]
        if len(entries) < len(waiting):
            # The process ended over the next file.
            last = session.stderr.decode().strip().splitlines()[-1:] or [f"exit code {session.returncode}"]
            entries.append({"file": str(waiting[len(entries)]), "outcome": "crash", "error": last[0]})
        with results.open("a") as out:
            out.writelines(f"{json.dumps(entry)}\n" for entry in entries)
        known |= {entry["file"]: entry for entry in entries}
        waiting = waiting[len(entries) :]
    for file in files:
        yield file, known[str(file)]["outcome"], known[str(file)].get("error", "")


def predicted(container: JaxContainer, reader: str) -> str:
    """Return the reason why ``reader`` does not call the function, as the toolkit has it; empty if it does."""
    target = resolve_target(f"jax=={reader}", lambda: sys.exit("no target here needs a library"))
    found = [
        *container.artifacts[0].requirements().reader_findings(target.version),
        *container_findings(container.export, target.consumers),
    ]
    return "; ".join(each.message for each in found if each.level == "error")


def main() -> int:
    """Run the campaign; return 1 if a prediction differs from what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--readers", default="5", help="how many releases read the files of each, or all")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "jax_exports")
    options = parser.parse_args()
    number = None if options.readers == "all" else int(options.readers)
    files: dict[str, list[Path]] = {}
    for release in RELEASES:
        try:
            write_files(release, options.folder / release)
        except VhloToolsError as error:
            raise SystemExit(f"a file of jax {release} cannot be moved: {error}") from error
        files[release] = sorted((options.folder / release).glob("*.jax_export"))
        print(f"jax {release} wrote {len(files[release])} files, the moved ones included", flush=True)
    containers = {file: JaxContainer.open(file) for each in files.values() for file in each}
    differences, counts = [], Counter[tuple[bool, str]]()
    for reader in RELEASES:
        read = [file for writer in RELEASES if reader in readers_of(writer, number) for file in files[writer]]
        for file, outcome, problem in outcomes(reader, read, options.folder):
            reason = predicted(containers[file], reader)
            counts[not reason, outcome] += 1
            if (outcome == "called") != (not reason):
                named = file.relative_to(options.folder)
                differences.append(f"{named} by jax {reader}: {outcome} {problem}; predicted: {reason or 'called'}")
        print(f"jax {reader} read {len(read)} files", flush=True)
    for (callable_, outcome), count in sorted(counts.items()):
        print(f"predicted to be {'called' if callable_ else 'refused'}: {outcome} {count}")
    print(*differences, sep="\n")
    print(f"{sum(counts.values())} cases, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
