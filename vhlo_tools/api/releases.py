"""Real releases: a matrix of those that write and those that read, and confirmations that one reads a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.conversion import resolve_target, retarget, serialize
from vhlo_tools.api.frontends import as_artifact
from vhlo_tools.api.running import load_executable
from vhlo_tools.errors import ReleaseEnvironmentError, VhloToolsError
from vhlo_tools.releases import PackageRelease, download_of, environment, silent

if TYPE_CHECKING:
    from vhlo_tools.compat import AllowRelaxed, Expand
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.releases import Confirmation, Download, Matrix, MatrixProgram, Say
    from vhlo_tools.verification import Drawing, Tolerance
    from vhlo_tools.version import Version


def downloads(releases: Iterable[str]) -> tuple[Download, ...]:
    """Return what making the environments of releases, such as ``jaxlib==0.4.31``, would download; none is made.

    Raises ``ReleaseEnvironmentError`` if a release does not exist, or not for a Python of this machine, or is of a
    package that reads no artifacts; ``MissingExtraError`` if an environment must be made, and there is no uv.
    """
    named = [str(PackageRelease.of_reader(release)) for release in releases]
    return tuple(download_of(release) for release in dict.fromkeys(named))


def confirm(
    program: ProgramSource,
    release: str,
    *,
    target: str | None = None,
    expand: Expand = False,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
    say: Say = silent,
) -> Confirmation:
    """Let a real release read a program, in a process that stays for the next one.

    >>> confirmation = vt.confirm("model.mlirbc", "jaxlib==0.4.31")  # doctest: +SKIP
    >>> print(confirmation)  # doctest: +SKIP
    jaxlib==0.4.31 reads model.mlirbc

    Args:
        program: Anything that :func:`serialize` accepts. An artifact is read as it is, unless ``target`` is given;
            other programs are written for ``target``, by default for the release.
        release: The release, such as ``jaxlib==0.4.31``: an environment of it is made on first use, and kept.
        target: The target to write the program for first.
        expand: As for :func:`serialize`, as are the next five.
        allow_relaxed: The features that may be rewritten with something given up.
        allow_signature_change: Whether that may change the types of arguments and results.
        name: The name of the program in messages, by default its path.
        provider: The bindings to use.
        trusted: Whether MLIR may parse bytecode directly in this process.
        say: Is told if an environment is made.

    Returns:
        Whether it reads it, and what it says otherwise; it is true or false accordingly.

    Raises:
        DowngradeError: If the program needs features newer than the target.
        ReleaseEnvironmentError: If the release cannot be had or started, or does not answer within two minutes.
        MissingExtraError: If its environment must be made, and there is no uv.
        VhloToolsError: If the program is not valid.
    """
    from vhlo_tools.releases import confirm_by

    artifact = as_artifact(program, name)
    options: Any = {"expand": expand, "allow_relaxed": allow_relaxed, "provider": provider, "trusted": trusted}
    options["allow_signature_change"] = allow_signature_change
    if artifact is None:
        artifact = serialize(program, target or release, name=name, **options)
    elif target is not None:
        artifact = retarget(artifact, target, **options)
    install_releases([release], say)
    return confirm_by(release, artifact)


def matrix(
    programs: Mapping[str, ProgramSource] | Sequence[ProgramSource],
    *,
    producers: Sequence[str],
    consumers: Sequence[str],
    target: str | None = None,
    run: bool = True,
    drawing: Drawing | None = None,
    tolerance: Tolerance | None = None,
    jobs: int = 1,
    timeout: float = 120.0,
    provider: str | None = None,
    trusted: bool = False,
    say: Say = silent,
) -> Matrix:
    """Let real releases write programs, and others read and run what they wrote, beside what the specification says.

    Every release has an environment of its own, which ``uv`` makes on first use and which is kept. A producer is given
    the program as an artifact of a version that it should know, and writes it; a consumer reads it, and runs it where
    it can: jaxlib and TensorFlow on XLA, torch-mlir on its reference interpreter, IREE compiled for this CPU. The
    results are compared with those of :func:`run`.

    Args:
        programs: Anything that :func:`serialize` accepts, by name; of a list, paths are names, and others get numbers.
        producers: The releases that write, such as ``jaxlib==0.4.31`` or ``tensorflow==2.21.0``.
        consumers: The releases that read.
        target: The target that producers write for, or their own version if that is older; by default their own.
        run: Whether artifacts are run, or only read.
        drawing: The parameters of random inputs.
        tolerance: The tolerance for floats.
        jobs: How many releases work at once.
        timeout: The limit in seconds for one artifact in one release.
        provider: The bindings that read the programs and compute the expected results.
        trusted: As for :func:`serialize`.
        say: Is told the progress, in lines.

    Returns:
        The matrix. What a release refuses, or dies of, is in it and raises nothing.

    Raises:
        ReleaseEnvironmentError: If a release cannot be had or started, or a producer writes no artifacts.
        MissingExtraError: If an environment must be made, and there is no uv.
        UnknownTargetError: If ``target`` is none.
        VhloToolsError: If a program is not valid.
    """
    from vhlo_tools.releases import build_matrix

    if not isinstance(programs, Mapping):
        programs = {_name_of(each, number): each for number, each in enumerate(programs)}
    writers, readers = _releases(producers), _releases(consumers)
    for release in writers:
        if not PackageRelease.parse(release).kind.writes:
            raise ReleaseEnvironmentError(f"{release} writes no artifacts: it can be a consumer only")
    version = resolve_target(target, provider=provider).version if target is not None else None
    install_releases([*writers, *readers], say)
    prepared = [
        _prepared(name, program, run=run, drawing=drawing, provider=provider, trusted=trusted)
        for name, program in programs.items()
    ]
    return build_matrix(
        prepared, writers, readers, target=version, tolerance=tolerance, run=run, jobs=jobs, timeout=timeout, say=say
    )


def install_releases(releases: Sequence[str], say: Say = silent, *, versions: Sequence[Version] = ()) -> None:
    """Make the environments of releases where there are none; ``say`` is told before what that downloads.

    A release older than all ``versions``, of which it is to confirm something, would be asked nothing: it is a
    ``SettingsError``.
    """
    if versions:
        from vhlo_tools.releases import refuse_idle_releases

        refuse_idle_releases(releases, versions)
    needed = [each for each in downloads(releases) if each.size != 0]
    for each in needed:
        size = "of unknown size" if each.size is None else f"at most {each.size / 1e6:.0f} MB"
        say(f"{each.release}: an environment is made once; downloads {size}")
    if len(needed) > 1:
        total = sum(each.size or 0 for each in needed) / 1e6
        say(f"{len(needed)} environments in all; downloads at most {total:.0f} MB")
    for each in needed:
        environment(str(each.release), say)


def _name_of(program: ProgramSource, number: int) -> str:
    """Return the path of a program in a list, or its number."""
    path = isinstance(program, str | PathLike) and "\n" not in str(program)
    return str(program) if path else f"program {number}"


def _releases(names: Iterable[str]) -> tuple[str, ...]:
    """Return releases in their canonical spelling, each once."""
    return tuple(dict.fromkeys(str(PackageRelease.of_reader(name)) for name in names))


def _prepared(
    name: str, program: ProgramSource, *, run: bool, drawing: Drawing | None, provider: str | None, trusted: bool
) -> MatrixProgram:
    from vhlo_tools.releases import MatrixProgram, evaluate
    from vhlo_tools.verification import Drawing as AnyDrawing

    artifact = as_artifact(program, name) or serialize(
        program, name=name, allow_other_dialects=True, provider=provider, trusted=trusted
    )
    oldest = artifact.requirements().downgradable_to
    # At the oldest version that has all of it.
    with suppress(VhloToolsError):
        artifact = artifact.retargeted(oldest) if oldest < artifact.version else artifact
    if not run:
        return MatrixProgram(name, artifact, None, "runs were not asked for")
    try:
        executable = load_executable(artifact, name=name, provider=provider, trusted=True)
        return MatrixProgram(name, artifact, evaluate(executable, drawing or AnyDrawing()))
    except VhloToolsError as error:
        return MatrixProgram(name, artifact, None, f"not run: {error}")
