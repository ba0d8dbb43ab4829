"""Checks of whole stores from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from os import PathLike, fspath
from typing import TYPE_CHECKING

from vhlo_tools.files import is_path, place
from vhlo_tools.gate.evaluation import Gate
from vhlo_tools.gate.settings import Settings
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.gate.report_model import Answer
    from vhlo_tools.stores import AnyExecutor

_Path = str | PathLike[str]
_Target = str | Version


def check_store(
    paths: _Path | Sequence[_Path],
    target: _Target | Sequence[_Target] = (),
    *,
    readable_by: _Target | Sequence[_Target] = (),
    executor: AnyExecutor | None = None,
    jobs: int | None = None,
    exclude: Sequence[str] = (),
    require_manifest: bool = False,
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Iterator[Answer]:
    """Check which programs of a store cannot be written for targets, or read by consumers, and why.

    The work proceeds as the returned iterator is consumed. With an executor, files are found meanwhile, and memory does
    not grow with the store. Settings files are not read: :class:`vhlo_tools.gate.Gate` takes their settings.

    >>> import vhlo_tools as vt
    >>> for answer in vt.check_store("store", "1.13.0", jobs=4):  # doctest: +SKIP
    ...     for verdict, finding in answer.findings:
    ...         print(answer.path, verdict.question, finding.feature, finding.message)

    Args:
        paths: Files, folders, globs and URLs.
        target: The versions or consumers that programs must be writable for, in the target grammar.
        readable_by: The consumers that must be able to read the files unchanged.
        executor: The executor of the work: processes, threads, or other machines that see the same files, among them
            the client of a Dask cluster, a ``distributed.Client``.
        jobs: Without an executor, the most processes; they are started only where they save time. By default this one.
        exclude: Patterns of files and folders to leave out, as in ``.gitignore``.
        require_manifest: Whether an artifact or a jax.export file without a manifest beside it has an error.
        as_of: The day from which windows in targets count back, by default today.
        provider: The bindings to use if they are needed.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.

    Yields:
        The answer of each program, in the order in which they are found: ``ok``, the ``findings``, each with the
        verdict that it belongs to, or the ``error`` for which the program could not be checked.

    Raises:
        SettingsError: If a path matches no file.
        WorkerError: If a process of the executor crashes, which its owner alone can replace, or if the cluster cannot
            be used.
        UnknownTargetError: If a target is unknown.
        InvalidVersionError: If a target looks like a version but is not valid.
        ValueError: If there is neither a target nor a consumer.
    """
    settings = Settings(
        target=_texts(target),
        readable_by=_texts(readable_by),
        exclude=tuple(exclude),
        require_manifest=require_manifest,
        as_of=as_of,
    )
    if not settings.target and not settings.readable_by:
        raise ValueError("expected a target, or readable_by")
    gate = Gate(settings, provider=provider, trusted=trusted)
    listing = gate.listing(_places(paths))
    # What is wrong with a target is said before any program is read.
    gate.scope(listing)
    return gate.answers(listing, lambda path: None, jobs=jobs or 1, executor=executor)


def _texts(targets: _Target | Sequence[_Target]) -> tuple[str, ...]:
    return tuple(map(str, [targets] if isinstance(targets, str | Version) else targets))


def _places(paths: _Path | Sequence[_Path]) -> tuple[str, ...]:
    given: Sequence[_Path] = [paths] if isinstance(paths, str | PathLike) or is_path(paths) else paths
    # A UPath is no PathLike.
    return tuple(fspath(each) if isinstance(each, str | PathLike) else str(place(each)) for each in given)
