"""``stablehlo-opt``: parse a program, run passes on it, and print it.

Source: ``stablehlo/tools/StablehloOptMain.cpp`` in openxla/stablehlo and ``mlir/lib/Tools/mlir-opt/MlirOptMain.cpp`` in
llvm/llvm-project.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import MlirSession
from vhlo_tools.upstream.arguments import Arguments, Option, UsageError, help_text, parse_arguments
from vhlo_tools.upstream.guard import note
from vhlo_tools.upstream.own_passes import prepare
from vhlo_tools.upstream.pipelines import MODULE, Passes, Stage, known_passes, list_passes
from vhlo_tools.upstream.text import PRINTING, parse, printed, settings_of
from vhlo_tools.upstream.tool import COMMON, IGNORED, Job, Streams, has_answered, process, reported

_OWN: Final = (
    Option("pass-pipeline", "Textual description of the pass pipeline to run", "value", alias="p"),
    Option("list-passes", "List the passes of this provider, grouped and described"),
    Option("show-dialects", "Print the list of registered dialects"),
    Option("emit-bytecode", "Emit bytecode when generating output"),
    Option("emit-bytecode-version", "Use specified bytecode when generating output", "value", "uint", is_number=True),
    Option("no-implicit-module", "Disable implicit addition of a top-level module op during parsing"),
    Option("verify-each", "Run the verifier after each transformation pass (default: on)"),
    Option("dump-pass-pipeline", "Print the pipeline that will be run"),
    Option("mlir-timing", "Display execution times", is_hidden=True),
    Option("mlir-pass-statistics", "Display the statistics of each pass", is_hidden=True),
)

#: Options for printing between passes, by their names in the bindings.
_WATCHING: Final = {
    "print_before_all": Option("mlir-print-ir-before-all", "Print IR before each pass"),
    "print_after_all": Option("mlir-print-ir-after-all", "Print IR after each pass"),
    "print_after_change": Option(
        "mlir-print-ir-after-change", "When printing the IR after a pass, only print if the IR changed"
    ),
    "print_after_failure": Option(
        "mlir-print-ir-after-failure", "When printing the IR after a pass, only print if the pass failed"
    ),
    "print_module_scope": Option(
        "mlir-print-ir-module-scope", "When printing IR, always print the top-level operation"
    ),
}
#: The printing options that also apply between passes.
_WATCH_SETTINGS: Final = {"enable_debug_info", "large_elements_limit", "large_resource_limit", "print_generic_op_form"}
_OPTIONS: Final = {
    "General options": (*_OWN, *COMMON),
    "Printing": PRINTING,
    "Printing between passes": tuple(_WATCHING.values()),
    "Options without effect": IGNORED,
}


def run_opt(arguments: Sequence[str], streams: Streams, *, program: str = "vhlo opt") -> int:
    return reported(program, streams, lambda toolbox: _Optimizer(toolbox, streams, program).run(arguments))


class _Optimizer:
    def __init__(self, toolbox: MlirSession, streams: Streams, program: str) -> None:
        self._toolbox = toolbox
        self._streams = streams
        self._program = program
        self._passes = Passes(toolbox)

    def run(self, given: Sequence[str]) -> int:
        arguments = parse_arguments(given, _OPTIONS, self._passes.includes, known_passes)
        answers = {
            "list-passes": lambda: list_passes(self._toolbox),
            "show-dialects": lambda: f"Available Dialects: {','.join(self._toolbox.dialects())}\n",
        }
        if has_answered(self._toolbox, arguments, self._streams, self._help, answers):
            return 0
        if "emit-bytecode-version" in arguments.values and not arguments.flag("emit-bytecode"):
            raise UsageError("--emit-bytecode-version is given while not emitting bytecode: give --emit-bytecode too")
        stages = self._stages(arguments, MODULE)
        if arguments.flag("dump-pass-pipeline"):
            for stage in stages:
                self._streams.say(f"{self._toolbox.described(stage.pipeline) or stage.name}\n")
        return process(
            self._toolbox,
            arguments,
            self._streams,
            lambda job: self._work(job, arguments, stages),
            separator="\n// -----\n",
            in_place=True,
        )

    def _stages(self, arguments: Arguments, anchor: str) -> list[Stage]:
        pipeline = arguments.text("pass-pipeline")
        if pipeline is None:
            return self._passes.from_flags(arguments.others, anchor)
        if arguments.others:
            raise UsageError(
                f"'-pass-pipeline' option can't be used with individual pass options: --{arguments.others[0][0]}"
            )
        return self._passes.from_text(pipeline)

    def _work(self, job: Job, arguments: Arguments, stages: Sequence[Stage]) -> bool:
        toolbox = self._toolbox
        operation = parse(toolbox, job, is_single=arguments.flag("no-implicit-module"))
        if operation is None:
            return False
        anchor = str(operation.operation.name)
        for stage in stages if anchor == MODULE else self._stages(arguments, anchor):
            note(f"{job.source.title}: {stage.name}")
            if not self._run(stage, operation, arguments):
                return False
        if not arguments.flag("emit-bytecode"):
            job.output.write(printed(operation, settings_of(arguments)))
            return True
        bytecode = toolbox.bytecode(operation, arguments.number("emit-bytecode-version"))
        if bytecode is None:
            return False
        job.output.write(bytecode)
        return True

    def _run(self, stage: Stage, operation: Any, arguments: Arguments) -> bool:
        settings = settings_of(arguments)
        watch: dict[str, Any] = {key: arguments.flag(option.name) for key, option in _WATCHING.items()}
        if stage.own is not None:
            self._watch(watch["print_before_all"], f"Before {stage.name}", operation, settings)
            stage.own.run(self._toolbox, operation, stage.options)
            self._watch(watch["print_after_all"], f"After {stage.name}", operation, settings)
            return True
        is_watched = any(watch.values())
        watch |= {key: settings[key] for key in _WATCH_SETTINGS & settings.keys()}
        return prepare(self._toolbox, operation, stage.pipeline) and self._toolbox.run(
            operation,
            stage.pipeline,
            verify=arguments.flag("verify-each", default=True),
            watch=watch if is_watched else None,
            timing=arguments.flag("mlir-timing"),
            statistics=arguments.flag("mlir-pass-statistics"),
        )

    def _watch(self, is_watched: bool, when: str, operation: Any, settings: dict[str, Any]) -> None:
        if is_watched:
            self._streams.say(f"// -----// IR Dump {when} //----- //\n{printed(operation, settings)}\n\n")

    def _help(self, hidden: bool) -> str:
        overview = f"StableHLO optimizer driver\nAvailable Dialects: {', '.join(self._toolbox.dialects())}"
        text = help_text(overview, f"{self._program} [options] <input file>", _OPTIONS, hidden)
        return f"{text}\nPasses, each an option of its own:\n\n{list_passes(self._toolbox)}"
