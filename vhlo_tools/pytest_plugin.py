"""A pytest plugin: the fixture ``vhlo_check``, which fails a test if a consumer cannot read its program.

pytest loads the plugin wherever the package is installed, so it imports nothing of the package until a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.gate import Gate, Verdict

__all__ = ["VhloCheck", "pytest_addoption", "vhlo_check"]


def pytest_addoption(parser: pytest.Parser) -> None:
    meaning = "the target of programs passed to vhlo_check: a version, a consumer, or a name from the settings"
    group = parser.getgroup("vhlo", "programs for consumers of StableHLO")
    group.addoption("--vhlo-target", action="append", default=[], metavar="TARGET", help=f"{meaning}; may be repeated")
    parser.addini("vhlo_target", type="linelist", default=[], help=meaning)


@pytest.fixture
def vhlo_check(request: pytest.FixtureRequest) -> VhloCheck:
    """Check programs for their consumers: ``vhlo_check(program, target=None)`` fails the test and lists all reasons.

    Targets are, in this order of precedence: the arguments, ``--vhlo-target``, ``vhlo_target`` in the settings of
    pytest, the settings of ``vhlo check``, whose named targets, levels and baseline always apply.
    """
    return VhloCheck(request.config, request.node.nodeid)


class VhloCheck:
    """The value of the fixture ``vhlo_check``.

    Args:
        config: The settings of pytest.
        test: The name of the test, used for programs without a name.
    """

    def __init__(self, config: pytest.Config, test: str) -> None:
        self._config = config
        self._test = test

    def __call__(
        self,
        program: Any,
        target: str | Iterable[str] | None = None,
        *,
        readable_by: str | Iterable[str] = (),
        name: str | None = None,
        allow_other_dialects: bool | None = None,
        legalize: bool | None = None,
        provider: str | None = None,
    ) -> list[Finding]:
        """Fail the test unless ``program`` can be written for every target, and read by every reader.

        Args:
            program: Anything that ``vhlo_tools.check`` accepts: an ``ir.Module``, text, bytes, a path, the result of
                lowering ``jax.jit``. For a file, the overrides of the settings and the baseline apply as well.
            target: One target, or several.
            readable_by: One consumer, or several, that must be able to read an artifact unchanged.
            name: The name of the program in reports, by default its path, or the name of the test.
            allow_other_dialects: Whether ops of dialects beside StableHLO may remain, by default as in the settings.
            legalize: Whether ops that no artifact can contain may be legalized, by default as in the settings.
            provider: The bindings to use if they are needed.

        Returns:
            The findings that do not fail the test: warnings and notes.
        """
        __tracebackhide__ = True
        from vhlo_tools.errors import VhloToolsError
        from vhlo_tools.gate import verdict_lines

        path = _file_of(program)
        shown = name or path or self._test
        problem: str | None = None
        verdicts: tuple[Verdict, ...] = ()
        try:
            gate = self._gate(_texts(target), _texts(readable_by), allow_other_dialects, legalize, provider)
            questions = gate.questions(path or "-")
            if questions:
                verdicts = gate.judge(program, questions, name=shown, path=path)
            else:
                problem = "expected a target: give one, or --vhlo-target, or vhlo_target in the settings of pytest"
        except VhloToolsError as error:
            problem = f"{shown}: {error}"
        except OSError as error:
            problem = f"{error.filename or shown}: {error.strerror or error}"
        refused = [verdict for verdict in verdicts if not verdict.ok]
        if refused:
            problem = "\n".join(line for verdict in refused for line in verdict_lines(shown, verdict))
        if problem is not None:
            # Outside the except blocks, so that pytest does not show the traceback of a handled error.
            pytest.fail(problem, pytrace=False)
        return [finding for verdict in verdicts for finding in verdict.new]

    def _gate(
        self,
        targets: tuple[str, ...],
        readers: tuple[str, ...],
        allow_other_dialects: bool | None,
        legalize: bool | None,
        provider: str | None,
    ) -> Gate:
        from pathlib import Path

        from vhlo_tools.gate import Baseline, Gate, load_settings

        if not targets and not readers:
            targets = tuple(self._config.getoption("--vhlo-target") or self._config.getini("vhlo_target"))
        settings = load_settings(self._config.rootpath).with_command_line(
            {}, target=targets, readable_by=readers, allow_other_dialects=allow_other_dialects, legalize=legalize
        )
        baseline = Baseline.read(Path(settings.baseline)) if settings.baseline is not None else None
        return Gate(settings, baseline, provider=provider)


def _file_of(program: Any) -> str | None:
    from os import PathLike, fspath
    from pathlib import Path

    if isinstance(program, PathLike):
        return str(fspath(program))
    # A string without a line break may name a file; if no such file exists it is a program.
    is_name = isinstance(program, str) and "\n" not in program and "\0" not in program and len(program) < 4096
    return program if is_name and Path(program).exists() else None


def _texts(value: str | Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
