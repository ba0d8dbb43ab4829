"""Run StableHLO's own test programs, which hold what their results shall be: `upstream_testdata.py PATH`.

PATH is a checkout of openxla/stablehlo, best one of the version that is installed, or a folder of such programs in it.
As there, each program is evaluated and its checks are applied, and each is written as an artifact and read again. What
upstream itself has switched off is tried as well, and told apart.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from isolated_cases import Ended, work_off

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice
from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider, get_provider
from vhlo_tools.verification import Tolerance, compare

#: What a check of upstream's interpreter lets pass (`StablehloTranslateMain.cpp`, `CheckOps.cpp` in openxla/stablehlo).
CHECKS: Final = {
    "check.expect_close": Tolerance(ulp=3),
    "check.expect_eq": Tolerance(ulp=0),
    "check.expect_almost_eq": Tolerance(ulp=0, absolute=1e-3),
    "check.expect_almost_eq_const": Tolerance(ulp=0, absolute=1e-4),
    "check.expect_eq_const": Tolerance(ulp=0),
    "check.eq": Tolerance(ulp=0, absolute=1e-4),
}
#: Checks against an attribute, whose dialect no bindings have.
CONSTANT_CHECK: Final = re.compile(
    r'"(?P<check>check\.\w+_const)"\((?P<value>%\w+)\) '
    r"<\{.*?value = (?P<constant>dense<.*?> : (?P<type>tensor<[^>]*>+))[,}].*"
)
SECONDS: Final = 60.0
Status = Literal["passed", "failed", "refused", "unreadable", "raised", "died", "too-long", "nothing-to-run"]


@dataclass(frozen=True)
class Result:
    """What came of a program."""

    path: str  # where it is
    status: Status  # how it went; ``unreadable`` if the installed library does not read it
    reason: str = ""  # why it did not pass
    disabled: str | None = None  # why upstream does not run it, if it does not


def run_file(path: str, engine: EngineChoice = "auto") -> list[str]:
    """Run the programs of a file on an engine; return its status, and why it did not pass."""
    text = Path(path).read_text()
    lines = re.findall(r"^// (RUN.*)", text, re.MULTILINE)
    faults: list[str] = []
    try:
        if any("--interpret" in line for line in lines):
            for part in re.split(r"^// -----$", text, flags=re.MULTILINE):
                faults += _failed_checks(part, engine)
        if any("--serialize" in line for line in lines):
            faults += _faults_of_round_trip(text, plain=not any("chlo" in line for line in lines))
    except MLIRFailure as failure:
        return ["unreadable", "; ".join(each.message for each in failure.diagnostics)]
    except vt.VhloToolsError as error:
        return ["refused", str(error)]
    if faults:
        return ["failed", "; ".join(faults)]
    return ["passed" if lines else "nothing-to-run", ""]


def run_file_on_iree(path: str) -> list[str]:
    """Run the programs of a file on the engine `iree`."""
    return run_file(path, "iree")


def _failed_checks(text: str, engine: EngineChoice) -> Iterator[str]:
    """Evaluate the functions of a program that hold checks, and yield what these say against it."""
    provider = get_provider()
    numbers = itertools.count()
    text = CONSTANT_CHECK.sub(lambda match: _as_call(match, next(numbers)), text)
    context = provider.new_context()
    checked = _checked_functions(provider, provider.parse(context, text))
    if not checked:
        yield "it has no checks"
    for function in checked:
        module = provider.parse(context, text)
        checks = _return_checked(provider, module, function)
        results = vt.run(module, [], engine=engine)
        pairs = zip(results[::2], results[1::2], strict=True)
        for number, ((found, expected), check) in enumerate(zip(pairs, checks, strict=True)):
            compared = compare(found, expected, CHECKS[check], str(number))
            if not compared.passed:
                yield f"@{function}: {check}: {compared}"


def _checked_functions(provider: Provider, module: Module) -> list[str]:
    functions = (op.operation for op in module.body.operations)
    return [
        str(op.attributes["sym_name"].value)
        for op in functions
        if op.name == "func.func" and any(map(_is_check, provider.walk(op)))
    ]


def _is_check(op: Operation) -> bool:
    return op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value in CHECKS


def _return_checked(provider: Provider, module: Module, name: str) -> list[str]:
    """Make a function the only one that holds checks, call it ``main``, and let it return the operands of its checks.

    Returns:
        The checks, each of which has two operands.
    """
    for op in module.body.operations:
        operation = op.operation
        if operation.name == "func.func" and operation.attributes["sym_name"].value == name:
            function = operation
        elif any(map(_is_check, provider.walk(operation))):
            operation.erase()
    calls = [op for op in provider.walk(function) if _is_check(op)]
    operands = [operand for call in calls for operand in call.operands]
    ir = provider.ir
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    with function.context, function.location:
        with ir.InsertionPoint(terminator):
            ir.Operation.create("func.return", operands=operands)
        inputs = function.attributes["function_type"].value.inputs
        kind = ir.FunctionType.get(inputs, [each.type for each in operands])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        if "res_attrs" in function.attributes:
            del function.attributes["res_attrs"]
    names = [str(call.attributes["call_target_name"].value) for call in calls]
    for op in (terminator, *calls):
        op.operation.erase()
    provider.rename_function(module, name, "main")
    return names


def _as_call(match: re.Match[str], number: int) -> str:
    """Return a check against an attribute as a call with two operands, as upstream writes the others."""
    kind = match["type"]
    return (
        f"%expected_{number} = stablehlo.constant {match['constant']}\n"
        f"stablehlo.custom_call @{match['check']}({match['value']}, %expected_{number}) {{has_side_effect = true}} : "
        f"({kind}, {kind}) -> ()"
    )


def _faults_of_round_trip(text: str, *, plain: bool) -> Iterator[str]:
    """Write a program as an artifact and read it; yield what is other than before.

    Args:
        text: The program.
        plain: Whether it holds nothing but StableHLO; anything else is rewritten when it is written the first time.
    """
    provider = get_provider()
    before = provider.parse(provider.new_context(), text) if plain else vt.deserialize(vt.serialize(text))
    after = vt.deserialize(vt.serialize(before))
    if str(after) != str(before):
        yield "it is another program when it was written and read"


def result_of(ended: Ended[str]) -> Result:
    lines = re.findall(r"^// RUN-DISABLED\((.*?)\)", Path(ended.case).read_text(), re.MULTILINE)
    disabled = lines[0] if lines else None
    if ended.how == "done":
        status, reason = ended.result
        return Result(ended.case, status, reason, disabled)
    return Result(ended.case, ended.how, ended.result or f"more than {SECONDS:g} s", disabled)


def files(path: Path) -> Iterator[str]:
    folder = path / "stablehlo" / "testdata"
    yield from map(str, sorted((folder if folder.is_dir() else path).rglob("*.mlir")))


def report(results: list[Result]) -> None:
    """Print what does not pass, and the counts."""
    for each in sorted(results, key=lambda each: (each.status, each.path)):
        if each.status != "passed" or each.disabled:
            off = f" (upstream: {each.disabled})" if each.disabled else ""
            print(f"{each.status}: {Path(each.path).name}{off}: {each.reason[:300]}")
    for title, switched_off in (("run upstream", False), ("switched off upstream", True)):
        counts = Counter(each.status for each in results if (each.disabled is not None) == switched_off)
        listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        print(f"{title}: {counts.total()}" + (f", of which {listed}" if listed else ""))


def main() -> int:
    """Run the programs; 1 if one does not pass that passes upstream."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path, help="a checkout of openxla/stablehlo, or a folder of its test programs")
    parser.add_argument("--iree", action="store_true", help="on the engine iree, and not on what `auto` chooses")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, help="where to write all of it as JSON")
    options = parser.parse_args()
    worker = f"upstream_testdata:{'run_file_on_iree' if options.iree else 'run_file'}"
    ended = work_off(worker, list(files(options.path)), processes=options.processes, timeout=SECONDS)
    results = [result_of(each) for each in ended]
    if not results:
        print(f"upstream_testdata: there are no programs in {options.path}", file=sys.stderr)
        return 2
    report(results)
    if options.output:
        options.output.write_text(json.dumps([asdict(each) for each in results], indent=1))
    return int(any(each.status not in ("passed", "unreadable") and not each.disabled for each in results))


if __name__ == "__main__":
    sys.exit(main())
