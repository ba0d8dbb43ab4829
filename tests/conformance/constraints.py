"""Try what StableHLO's specification forbids: the verifier of the installed library, the interpreter, and XLA.

`python tests/conformance/constraints.py` runs the programs of `constraints.toml` and prints what becomes of those that
the verifier lets pass; `--record` writes it to `constraints.json`, by release of jaxlib; `--only "compare C3"` runs the
programs of one constraint alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from isolated_cases import work_off
from support.element_types import TYPES

import vhlo_tools as vt
from vhlo_tools.execution import executable

DATA: Final = Path(__file__).with_suffix(".toml")
RECORD: Final = DATA.with_suffix(".json")
#: What the record leaves out: the programs that the verifier refuses.
REFUSED: Final = "refused by the verifier"
_QUANTIZED: Final = re.compile(r"!quant\.uniform<\w+:(\w+)[^>]*>")
DEVICES: Final = "{mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32}"


class Case(NamedTuple):
    """A program; `constraint` is empty if it conforms, and `number` counts those of an op and a constraint."""

    op: str
    constraint: str
    number: int
    text: str
    inputs: tuple[str, ...]
    random: bool

    @property
    def name(self) -> str:
        return f"{self.op} {self.constraint or 'conforms'} {self.number}"


def cases() -> Iterator[Case]:
    """Return all programs of the data, each with the types of its inputs."""
    numbers: Counter[tuple[str, str]] = Counter()
    for entry in tomllib.loads(DATA.read_text())["op"]:
        if not entry["program"]:
            continue
        for op in entry["names"]:
            program = entry["program"].replace("OP", op)
            for constraint, changes in {"": [""], **entry}.items():
                if not re.fullmatch(r"C\d+|", constraint):
                    continue
                for change in [changes] if isinstance(changes, str) else changes:
                    numbers[op, constraint] += 1
                    text, inputs = _wrapped(_changed(program, change), entry)
                    number = numbers[op, constraint]
                    yield Case(op, constraint, number, text, inputs, entry.get("random", False))


def _changed(program: str, change: str) -> str:
    for each in change.split(" ;; ") if change else ():
        old, new = each.split(" => ", 1)
        if old not in program:
            raise ValueError(f"{old!r} is not in {program!r}")
        program = program.replace(old, new)
    return program


def _wrapped(program: str, entry: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Make a module of an op: a function whose inputs are its operands %0, %1, ..., and whose results are its own."""
    head, _, kind = program.rpartition(" : ")
    lines = head.split("\n")
    last = next(i for i in range(len(lines) - 1, -1, -1) if lines[i].startswith('"stablehlo'))
    operands = re.search(r'"\((.*?)\)', lines[last])
    typed = re.fullmatch(r"\((.*)\) -> (.*)", kind, re.DOTALL)
    assert operands is not None
    assert typed is not None
    given, results = typed.groups()
    results = results.removeprefix("(").removesuffix(")") if results.startswith("(") else results
    names = operands[1].split(", ") if operands[1] else []
    types = entry.get("inputs") or [t for n, t in zip(names, _split(given), strict=False) if re.fullmatch(r"%\d", n)]
    body = re.sub(r"%(\d)\b", r"%in\1", "\n".join(lines))
    arguments, before, after, returned = [], [], [], []
    for i, each in enumerate(types):
        # Arrays of numpy are not quantized.
        plain = _QUANTIZED.sub(r"\1", each)
        arguments.append(f"%in{i}: {each}" if plain == each else f"%arg{i}: {plain}")
        if plain != each:
            before.append(f"%in{i} = stablehlo.uniform_quantize %arg{i} : ({plain}) -> {each}")
    for i, each in enumerate(made := _split(results)):
        plain = _QUANTIZED.sub(r"\1", each)
        returned.append(f"%r#{i}" if plain == each else f"%out{i}")
        if plain != each:
            after.append(f"%out{i} = stablehlo.uniform_dequantize %r#{i} : ({each}) -> {plain}")
    if made:
        head, tail = body.rsplit('\n"', 1) if '\n"' in body else ("", body.removeprefix('"'))
        body = f'{head}\n%r:{len(made)} = "{tail}'
    plain = ", ".join(_QUANTIZED.sub(r"\1", each) for each in made)
    end = f"return {', '.join(returned)}" + (f" : {plain}" if made else "")
    text = "\n".join((*before, f"{body} : {kind}", *after, end))
    function = f"func.func @main({', '.join(arguments)}) -> ({plain}) {{\n{text}\n}}\n{entry.get('after', '')}"
    inputs = tuple(_QUANTIZED.sub(r"\1", each) for each in types)
    return f"module attributes {DEVICES} {{\n{function}\n}}", inputs


def _split(types: str) -> list[str]:
    """Split a list of types at the commas that are in no brackets."""
    found, depth = [""], 0
    for char in types:
        depth += {"<": 1, "{": 1, ">": -1, "}": -1}.get(char, 0)
        if char == "," and not depth:
            found.append("")
        else:
            found[-1] += char
    return [each.strip() for each in found if each.strip()]


def drawn(kind: str, number: int) -> Any:
    """Return the input of a number, of a type; integers have a sign bit, or a high one."""
    match = re.fullmatch(r"tensor<((?:\d+x)*)(.*)>", kind)
    if match is None or match[2] not in TYPES:
        return None
    shape = [int(size) for size in match[1].split("x") if size]
    dtype = np.dtype(TYPES[match[2]])
    numbers = np.resize(np.roll([2, -1, 3, 1] if dtype.kind != "b" else [1, 0], -number), shape)
    return numbers.astype(dtype) if dtype.kind != "c" else (numbers + 1j).astype(dtype)


def outcome(case: Case) -> str:
    """Return what becomes of a program, in words that do not depend on places or numbers."""
    try:
        vt.serialize(case.text)
    except vt.InvalidProgramError as error:
        said = error.diagnostics[0].message if error.diagnostics else str(error)
        return f"{REFUSED}: {said.splitlines()[0]}"
    except vt.VhloToolsError as error:
        return f"refused by serialize: {type(error).__name__}"
    # What engines make of it, although the toolkit refuses some.
    vars(executable)["refuse_silent_violations"] = lambda *_: None
    results: list[Any] = []
    ended = []
    for engine in ("reference", "xla"):
        try:
            results.append(
                vt.run(case.text, [drawn(each, i) for i, each in enumerate(case.inputs)], engine=engine, timeout=60)
            )
        except vt.EngineCrashError:
            ended.append(f"{engine} crashes")
        except vt.EngineTimeoutError:
            ended.append(f"{engine} never ends")
        except vt.VhloToolsError:
            ended.append(f"{engine} refuses")
        except ValueError:  # of the toolkit itself, which refuses such programs before
            ended.append(f"{engine} fails")
    if ended:
        return ", ".join(ended)
    if case.random:
        same = [each.shape for each in results[0]] == [each.shape for each in results[1]]
    else:
        same = all(_equal(*pair) for pair in zip(*results, strict=True))
    return "equal" if same else "differ"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(_equal(*pair) for pair in zip(one, other, strict=True))
    if one is None or other is None:
        return one is other
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    return bool(np.allclose(one.astype(wide), other.astype(wide), rtol=1e-2, atol=1e-3, equal_nan=True))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true", help="print what is refused, too, with the verifier's words")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(arguments)
    chosen = [case for case in cases() if case.name.startswith(given.only)]
    found: dict[str, str] = {}
    for ended in work_off("constraints:outcome", chosen, processes=2, timeout=200):
        case: Case = ended.case
        how = ended.result if ended.how == "done" else f"the process {ended.how}: {str(ended.result).strip()[-200:]}"
        if given.all or (not how.startswith(REFUSED) and (case.constraint or how != "equal")):
            print(f"{case.name}: {how}", flush=True)
        found[case.name] = how
    counts = Counter(how.split(":")[0] for name, how in found.items() if "conforms" not in name)
    print(dict(counts))
    if given.record:
        import jaxlib

        known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        order = [case.name for case in cases()]
        kept = {name: found[name] for name in order if name in found and not found[name].startswith(REFUSED)}
        kept = {name: how for name, how in kept.items() if "conforms" not in name or how != "equal"}
        known[jaxlib.__version__] = {"programs": len(found), "passed": kept}
        RECORD.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
