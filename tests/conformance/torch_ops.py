"""Compare what the importers make of torch's ops with torch itself: its operator database, each op in each dtype.

A case is one sample input of an op in a dtype, or that sample with special values: NaN, infinities and zeros of both
signs, or the bounds of integers. The tensors of a sample are inputs of a module, and the rest is constant. Needs
`expecttest`, as torch's own tests do.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from isolated_cases import work_off
from torch_op_samples import MOST_SAMPLES, SPECIAL, database, module_type, sample as sample_of

ImporterName = Literal["torchax", "torch-mlir"]
RECORD: Final = Path(__file__).with_suffix(".json")
RULES: Final = Path(__file__).with_suffix(".toml")
IMPORTERS: Final[tuple[ImporterName, ...]] = ("torchax", "torch-mlir")
Outcome = Literal[
    "equal",  # within the tolerance of :func:`_apart`
    "refused",  # a typed error of the toolkit
    "wrong",  # other numbers than torch's
    "crashed",  # any other exception, a death of the process, or a time limit exceeded
    "random",  # the op draws random numbers; not compared
    "no-tensors",  # torch returns no dense tensors, or none of a type that arrays have; not compared
    "undefined",  # torch raises, or leaves the result open; not compared
]
SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Case:
    importer: ImporterName
    op: str  # with the variant of the database: ``std.unbiased``
    kind: str  # the dtype
    number: int  # of the sample input, or ``SPECIAL``


@dataclass(frozen=True, slots=True)
class Judged:
    case: Case
    outcome: Outcome
    reason: str = ""


def cases(
    importer: ImporterName, only: str = "", samples: int = 2, seed: int = 0, dtypes: str = ""
) -> Iterator[list[Case]]:
    """Yield the cases of each op."""
    for name, op in database().items():
        if not re.search(only, name):
            continue
        kinds = sorted(str(each).removeprefix("torch.") for each in op.supported_dtypes("cpu"))
        found = []
        for kind in kinds:
            if re.search(dtypes, kind):
                drawn = random.Random(f"{seed} {name} {kind}")
                numbers = [0, *(drawn.randrange(1, MOST_SAMPLES) for _ in range(samples - 1))]
                numbers += [] if kind == "bool" else [SPECIAL]
                found += [Case(importer, name, kind, number) for number in numbers]
        if found:
            yield found


@dataclass(frozen=True, slots=True)
class _Part:
    """A case with its inputs, and what torch computes of them."""

    case: Case
    part: tuple[Callable[..., Any], list[Any], Any]
    tensors: list[Any]
    expected: list[Any]


@cache
def _rules() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(RULES.read_text())


def _rule(about: str, case: Case) -> dict[str, Any]:
    """Return the first rule that fits an op and dtype."""
    fits = (each for each in _rules()[about] if re.search(each["op"], case.op) and re.search(each["kind"], case.kind))
    return next(fits, {})


def _apart(case: Case, found: Any, expected: Any) -> str | None:
    """Return how an array differs; ``None`` if it is equal within the precision of its type."""
    from ml_dtypes import finfo

    from vhlo_tools.integrations.proof import difference

    for rule in _rules()["rounded"]:
        if re.search(rule["op"], case.op) and re.search(rule["kind"], case.kind) and found.shape == expected.shape:
            with np.errstate(invalid="ignore"):
                distance = np.abs(found.astype(np.float64) - expected.astype(np.float64))
            found = np.where(distance <= rule["within"], expected, found)
    said = difference(found, expected)
    if said or not expected.size or expected.dtype.kind in "biu":
        return said
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    is_finite = np.isfinite(expected.astype(wide))
    one, other = (np.where(is_finite, each.astype(wide), 0) for each in (found, expected))
    eps = float(finfo(expected.dtype).eps)  # type: ignore[no-untyped-call]
    apart, allowed = np.abs(one - other), eps * _UNITS[expected.dtype.itemsize <= 2] * np.abs(other).max()
    at = int(np.argmax(apart))
    return f" has {one.flat[at]}, expected {other.flat[at]}, as element {at}" if apart.flat[at] > allowed else None


#: How far results may be apart, in units of the last place of the largest number; and those of 16 bits, which engines
#: may add as such, where torch adds them in float32.
_UNITS: Final = (64, 2)


def _prepared(case: Case) -> _Part | Judged:
    import torch
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    from vhlo_tools.errors import InvalidProgramError
    from vhlo_tools.integrations.torch.graphs import as_numpy

    drawn: list[str] = []

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if torch.Tag.nondeterministic_seeded in func.tags:
                drawn.append(str(func))
            return func(*args, **(kwargs or {}))

    if rule := _rule("undefined", case):
        return Judged(case, "undefined", rule["reason"])
    limits = {key: value for key, value in _rule("special", case).items() if key in ("without", "argument")}
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            leaves, spec = pytree.tree_flatten(sample_of(case.op, case.kind, case.number, **limits))
            part = (database()[case.op].op, leaves, spec)
            tensors = [each.detach() for each in leaves if isinstance(each, torch.Tensor)]
            found = module_type()([part])(*(each.clone() for each in tensors))
            # Under a mode, torch's results of conjugated matrices are others.
            with Watch():
                module_type()([part])(*(each.clone() for each in tensors))
    except Exception as error:
        return Judged(case, "undefined", f"torch raises {type(error).__name__}: {_short(str(error))}")
    if drawn:
        return Judged(case, "random", drawn[0])
    try:
        expected = [as_numpy(each, "a result").copy() for each in found]
        for each in tensors:
            as_numpy(each, "an input")
    except (InvalidProgramError, NotImplementedError) as error:
        return Judged(case, "no-tensors", _short(str(error)))
    if not expected:
        return Judged(case, "no-tensors", "it returns none")
    return _Part(case, part, tensors, expected)


def judge(given: Sequence[Case]) -> list[Judged]:
    """Judge cases in one program; if that cannot be made, each in its own."""
    import torch

    from vhlo_tools.errors import EngineError, VhloToolsError
    from vhlo_tools.integrations.proof import results_of
    from vhlo_tools.integrations.torch import export
    from vhlo_tools.integrations.torch.graphs import as_numpy

    _prepare_torch()
    parts = [_prepared(each) for each in given]
    done = [each for each in parts if isinstance(each, Judged)]
    left = [each for each in parts if isinstance(each, _Part)]
    if not left:
        return done
    tensors = [each for one in left for each in one.tensors]
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            module = module_type()([each.part for each in left])
            name = "/".join(dict.fromkeys(each.case.op for each in left))
            model = export(module, tensors, importer=left[0].case.importer, verify=False, name=name, import_timeout=40)
            found = results_of(model.artifact, [as_numpy(each, "an input").copy() for each in tensors], 30)
    except Exception as error:
        if len(left) > 1:
            return [*done, *(one for each in left for one in judge([each.case]))]
        if isinstance(error, VhloToolsError) and not isinstance(error, EngineError):
            return [*done, Judged(left[0].case, "refused", f"{type(error).__name__}: {error}"[:1000])]
        return [*done, Judged(left[0].case, "crashed", f"{type(error).__name__}: {error}"[:1000])]
    results = map(np.asarray, found)
    for each in left:
        own = list(islice(results, len(each.expected)))
        expected = _with_ties(each, own) if each.case.op in _ANY_OF_EQUALS else each.expected
        if each.case.op in ("linalg.eig", "linalg.eigh"):
            expected = [expected[0], expected[1] * _phases(expected[1], own[1])]
        said = [_apart(each.case, one, other) for one, other in zip(own, expected, strict=True)]
        apart = next((f"output {at}{text}" for at, text in enumerate(said) if text is not None), None)
        done.append(Judged(each.case, "equal" if apart is None else "wrong", apart or ""))
    return done


#: Ops that return an index of any of equal elements, with the place of the dimension among their arguments.
_ANY_OF_EQUALS: Final = {"topk": 1, "kthvalue": 1, "mode": 0}


def _with_ties(one: _Part, found: Sequence[Any]) -> list[Any]:
    """Return what is expected, with those of the indices that are found whose elements equal torch's."""
    from torch.utils import _pytree as pytree

    values, indices = one.expected
    if found[1].shape != indices.shape or not one.tensors[0].ndim:
        return one.expected
    _, args, kwargs = pytree.tree_unflatten(one.part[1], one.part[2])
    at = _ANY_OF_EQUALS[one.case.op]
    dimension = kwargs.get("dim", args[at] if len(args) > at else -1)
    whole = (one.tensors[0].float() if one.tensors[0].element_size() == 2 else one.tensors[0]).numpy()
    index, wanted = (
        each if kwargs.get("keepdim", True) and each.ndim == whole.ndim else np.expand_dims(each, dimension)
        for each in (found[1], indices)
    )
    chosen, right = (
        np.take_along_axis(whole, np.clip(each, 0, whole.shape[dimension] - 1), dimension) for each in (index, wanted)
    )
    same = ((chosen == right) | ((chosen != chosen) & (right != right))).reshape(indices.shape)
    return [values, np.where(same, found[1], indices)]


def _phases(expected: Any, found: Any) -> Any:
    """Return numbers of absolute value 1, or signs, by which eigenvectors differ, which are free."""
    inner = (expected.conj() * found).sum(-2, keepdims=True)
    return np.divide(inner, np.abs(inner), out=np.ones_like(inner), where=inner != 0)


@cache
def _prepare_torch() -> None:
    """Let torch.export decompose faster: most of its time goes into annotations, and into what does not change."""
    import torch
    from torch._export import utils
    from torch.export import exported_program

    torch.set_num_threads(1)
    for importer in ("torchax", "torch_mlir"):
        module: Any = import_module(f"vhlo_tools.integrations.torch.{importer}")
        module.decompositions = cache(module.decompositions)
    for where in (utils, exported_program):
        where._collect_all_valid_cia_ops = cache(utils._collect_all_valid_cia_ops)
    whole = torch._ops.OperatorBase.py_impl

    def py_impl(self: Any, key: Any) -> Any:
        def inner(function: Any) -> Any:
            if not isinstance(key, torch._C.DispatchKey):
                return whole(self, key)(function)
            self.py_kernels[key] = function
            self._dispatch_cache.clear()
            return function

        return inner

    torch._ops.OperatorBase.py_impl = py_impl


def run(groups: Sequence[list[Case]], jobs: int) -> Iterator[Judged]:
    """Judge groups of cases in processes. One that kills its process, or takes too long, is split up."""
    single = []
    for ended in work_off("torch_ops:judge", groups, processes=jobs, timeout=2 * SECONDS):
        if ended.how == "done":
            yield from ended.result
        elif len(ended.case) > 1:
            single += [[each] for each in ended.case]
        else:
            yield Judged(ended.case[0], "crashed", f"{ended.how}: {_short(str(ended.result))}")
    if single:
        yield from run(single, jobs)


def _short(text: str) -> str:
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    return (lines[-1] if text.startswith("Traceback") else lines[0])[:200] if lines else ""


def _reason(judged: Judged) -> str:
    """Return a reason without what is another in each case: names of values, types and lines."""
    text = _short(judged.reason.partition(" to StableHLO: ")[2] or judged.reason)
    text = re.sub(r" at \S+:\d+", "", text)
    return re.sub(r"\(?loc\(.*", "", text)[:160].strip()


def record(found: Sequence[Judged]) -> dict[str, Any]:
    """Return how many cases ended how, by importer and dtype, and what became of the ops that are not all equal."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    ops: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for each in found:
        for row in (each.case.kind, "all"):
            counts[each.case.importer][row][each.outcome] += 1
        if each.outcome in ("refused", "wrong", "crashed"):
            kinds = ops[each.case.importer][each.case.op][f"{each.outcome}: {_reason(each)}"]
            if each.case.kind not in kinds:
                kinds.append(each.case.kind)
    return {
        "counts": {one: {kind: dict(rows[kind]) for kind in sorted(rows)} for one, rows in counts.items()},
        "ops": {
            one: {op: {why: " ".join(sorted(kinds)) for why, kinds in of[op].items()} for op in sorted(of)}
            for one, of in ops.items()
        },
    }


def table(counts: dict[str, dict[str, dict[str, int]]]) -> str:
    """Return counts as a table of Markdown, with a row for each dtype."""
    words = ("cases", "equal", "refused", "wrong", "not compared")
    head = ["type", *(f"{importer}: {words[0]} | {' | '.join(words[1:])}" for importer in counts)]
    lines = [f"| {' | '.join(head)} |", "|---" * (1 + len(words) * len(counts)) + "|"]
    kinds = {kind for rows in counts.values() for kind in rows} - {"all"}
    for kind in (*sorted(kinds, key=lambda each: (each.rstrip("0123456789"), len(each), each)), "all"):
        cells = [kind]
        for rows in counts.values():
            row = rows.get(kind, {})
            whole, wrong = sum(row.values()), row.get("wrong", 0) + row.get("crashed", 0)
            equal, refused = row.get("equal", 0), row.get("refused", 0)
            cells += [f"{each:,}" for each in (whole, equal, refused, wrong, whole - equal - refused - wrong)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the cases; 1 if one is wrong or crashes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--importer", action="append", choices=IMPORTERS, help="by default both")
    parser.add_argument("--only", metavar="REGEX", default="", help="only ops whose name fits")
    parser.add_argument("--dtypes", metavar="REGEX", default="", help="only dtypes whose name fits")
    parser.add_argument("--samples", type=int, default=2, help="for each op and dtype (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", action="store_true", help=f"write the outcomes to {RECORD.name}")
    parser.add_argument(
        "--output", type=Path, help="where to add outcomes, as lines of JSON; the record is of all that it has"
    )
    options = parser.parse_args()
    found = []
    for importer in options.importer or IMPORTERS:
        groups = list(cases(importer, options.only, options.samples, options.seed, options.dtypes))
        for each in run(groups, options.jobs):
            found.append(each)
            if each.outcome in ("wrong", "crashed"):
                sample = "special" if each.case.number == SPECIAL else each.case.number
                place = f"{each.case.importer} {each.case.op} {each.case.kind} {sample}"
                print(f"{each.outcome}: {place}: {_short(each.reason)}", flush=True)
            if options.output:
                with options.output.open("a") as file:
                    line = [*(getattr(each.case, one) for one in Case.__slots__), each.outcome, each.reason]
                    file.write(json.dumps(line) + "\n")
    known = {each.case: each for each in found}
    if options.output:
        lines = map(json.loads, options.output.read_text().splitlines())
        known = {Case(*line[:4]): Judged(Case(*line[:4]), *line[4:]) for line in lines}
    whole = record(list(known.values()))
    print(table(whole["counts"]))
    if options.record:
        RECORD.write_text(json.dumps(whole, indent=1) + "\n")
    return int(any(each.outcome in ("wrong", "crashed") for each in found))


if __name__ == "__main__":
    sys.exit(main())
