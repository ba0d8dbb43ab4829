"""``stablehlo-translate``: serialize to portable artifacts, deserialize, and evaluate programs.

Source: ``stablehlo/tools/StablehloTranslateMain.cpp`` in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vhlo_tools.bindings import MlirSession
from vhlo_tools.upstream.arguments import Arguments, Option, UsageError, help_text, parse_arguments
from vhlo_tools.upstream.guard import note, reading
from vhlo_tools.upstream.sources import STANDARD, SourceText
from vhlo_tools.upstream.text import PRINTING, parse, printed, settings_of
from vhlo_tools.upstream.tool import COMMON, IGNORED, Job, Output, Streams, has_answered, process, reported

_TRANSLATIONS: Final = (
    Option("serialize", "Serialize StableHLO program into a portable artifact"),
    Option("deserialize", "Deserialize a portable artifact into a StableHLO program"),
    Option("interpret", "Interpreter for StableHLO"),
)
_OWN: Final = (
    Option("target", "Target version for serialization; current is that of the library", "value", "version"),
    Option("strip-debuginfo", "Strip debug info from all operations"),
    Option("allow-other-dialects", "Allow mixed dialect in serialization"),
    Option("print-stablehlo-version", "When deserializing a portable artifact, print the StableHLO version"),
    Option("args", "Arguments to pass to the interpreter: [dense<1> : tensor<2xi32>, ...]", "value", "attributes"),
    Option("probe-output-dir", "Directory for storing instrumented tensor values", "value", "folder"),
    Option("interpreter-print-dense", "Print interpreter results as dense attributes"),
    Option("error-diagnostics-only", "Filter all non-error diagnostics", is_hidden=True),
)
_OPTIONS: Final = {
    "Translations, exactly one of which is required": _TRANSLATIONS,
    "General options": (*_OWN, *COMMON),
    "Printing": PRINTING,
    "Options without effect": IGNORED,
}
#: The header of a portable artifact.
_VERSION: Final = re.compile(rb"ML\xefR.StableHLO_v(\d+)\.(\d+)\.(\d+)\0", re.DOTALL)
_ARGUMENTS: Final = "--args=[dense<1> : tensor<2xi32>, ...]"


def run_translate(arguments: Sequence[str], streams: Streams, *, program: str = "vhlo translate") -> int:
    return reported(program, streams, lambda toolbox: _Translator(toolbox, streams, program).run(arguments))


class _Translator:
    def __init__(self, toolbox: MlirSession, streams: Streams, program: str) -> None:
        self._toolbox = toolbox
        self._streams = streams
        self._program = program
        self._arguments = Arguments()

    def run(self, given: Sequence[str]) -> int:
        arguments = self._arguments = parse_arguments(given, _OPTIONS)
        if has_answered(self._toolbox, arguments, self._streams, self._help, {}):
            return 0
        wanted = [name for name in arguments.values if name in _WORK and arguments.flag(name)]
        if not wanted:
            raise UsageError(f"expected a translation: {', '.join(f'--{each.name}' for each in _TRANSLATIONS)}")
        return process(self._toolbox, arguments, self._streams, lambda job: self._work(job, wanted), separator="")

    def _help(self, hidden: bool) -> str:
        return help_text("StableHLO interpreter driver", f"{self._program} [options] <input file>", _OPTIONS, hidden)

    def _work(self, job: Job, wanted: Sequence[str]) -> bool:
        *others, last = wanted
        for name in others:
            output = Output("", self._streams)
            if not _WORK[name](self, Job(job.source, job.context, output)):
                return False
            job = Job(SourceText(job.source.name, output.data), job.context, job.output)
        return _WORK[last](self, job)

    def serialize(self, job: Job) -> bool:
        module = parse(self._toolbox, job)
        if module is None:
            return False
        target = self._arguments.text("target") or ""
        if target == "current":
            target = str(self._toolbox.provider.stablehlo.get_current_version())
        if self._arguments.flag("strip-debuginfo") and not self._toolbox.run(
            module, "builtin.module(strip-debuginfo)", verify=True
        ):
            return False
        note(f"{job.source.name}: its serialization")
        artifact = self._toolbox.serialize(module, target, self._arguments.flag("allow-other-dialects"))
        if artifact is None:
            return False
        job.output.write(artifact)
        return True

    def deserialize(self, job: Job) -> bool:
        if self._arguments.flag("print-stablehlo-version"):
            self._print(_version_line(job.source.data), job)
        note(f"{job.source.name}: its deserialization")
        with reading(len(job.source.data)):
            module = self._toolbox.deserialize(job.context, job.source.data)
        if module is None:
            return False
        job.output.write(printed(module, settings_of(self._arguments)))
        return True

    def interpret(self, job: Job) -> bool:
        # Not imported at the top, because they import numpy and much of the toolkit.
        from vhlo_tools.upstream.check_dialect import ProbeFolder
        from vhlo_tools.upstream.interpreting import Interpretation
        from vhlo_tools.upstream.tensor_text import value_text

        module = parse(self._toolbox, job)
        if module is None:
            return False
        inputs = self._inputs(job)
        if inputs is None:
            return False
        folder = self._arguments.text("probe-output-dir")
        probes = ProbeFolder(Path(folder) if folder else None)
        interpretation = Interpretation(
            self._toolbox, module, job.source.name, probes, lambda text: self._print(text, job)
        )
        results = interpretation.run(inputs)
        if results is None:
            return False
        dense = self._arguments.flag("interpreter-print-dense")
        for each in results:
            text = value_text(self._toolbox, job.context, each.array, each.type_, dense=dense)
            job.output.write(f"{text}\n")
        return True

    def _inputs(self, job: Job) -> list[Any] | None:
        """Return ``None`` after an error, which was emitted."""
        from vhlo_tools.upstream.interpreting import TypedArray
        from vhlo_tools.upstream.pipelines import parts_of
        from vhlo_tools.upstream.tensor_text import array_of

        text = self._arguments.text("args")
        if not text:
            return []
        ir = self._toolbox.provider.ir
        attribute = self._toolbox.parse_attribute(job.context, text)
        if attribute is None or not isinstance(attribute, ir.ArrayAttr):
            # Upstream's message, which upstream's tests match.
            self._say("expectected array attribute string for args", job)
            return None
        values = []
        for each in parts_of(str(attribute)):
            if not each.startswith("dense<"):
                self._say("expected dense elements attribute for args elements", job)
                return None
            type_ = each.rpartition(" : ")[2]
            values.append(TypedArray(type_, array_of(self._toolbox, each, type_)))
        return values

    def _print(self, text: str, job: Job) -> None:
        """Write to stdout, even if results are written to a file."""
        if job.output.path == STANDARD:
            job.output.write(text)
        else:
            self._streams.stdout.write(text.encode())
            self._streams.stdout.flush()

    def _say(self, what: str, job: Job) -> None:
        self._toolbox.emit_error(job.context, f"{what}, i.e. {_ARGUMENTS}")


_WORK: Final[Mapping[str, Callable[[_Translator, Job], bool]]] = {
    "deserialize": _Translator.deserialize,
    "interpret": _Translator.interpret,
    "serialize": _Translator.serialize,
}


def _version_line(data: bytes) -> str:
    """The artifact may be damaged.

    Source: ``getPortableArtifactVersion`` in ``stablehlo/dialect/Serialization.cpp`` in openxla/stablehlo.
    """
    if match := _VERSION.match(data):
        version = ".".join(str(int(each)) for each in match.groups())
        return f"// Reading portable artifact with StableHLO version: {version}\n"
    return "// Failed parsing StableHLO version from portable artifact\n"
