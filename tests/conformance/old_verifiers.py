"""What verifiers of old releases accept: ``old_verifiers.py [RELEASE ...]``, releases of jaxlib such as ``0.4.20``.

Writes every program of `constraints.toml` that conforms, with each type of elements in the place of its own and with
sizes that are known and unknown, for the oldest version that the installed library writes it for, has the releases read
them, and compares with what ``check --readable-by`` says. Exit code 1 if an answer is another.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from constraints import cases
from support.release_environments import read_by

import vhlo_tools as vt

TARGETS: Final = ("0.9.0", "0.17.0", "1.0.0", "1.4.0")
QUANTIZED: Final = (
    "!quant.uniform<i8:f32, 0.5>",
    "!quant.uniform<i8:f32:0, {0.5, 0.5}>",
    "!quant.uniform<i8:f16, 0.5>",
    "!quant.uniform<i32:f32, 0.5>",
)
ELEMENTS: Final = (
    *("i1", "i2", "i4", "i8", "i32", "i64", "ui8", "ui32", "f16", "bf16", "f32", "f64", "complex<f32>", "complex<f64>"),
    *("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ"),
    *QUANTIZED,
)


class Written(NamedTuple):
    op: str
    element: str
    text: str
    artifact: vt.Artifact


def written(elements: Sequence[str] = ELEMENTS, ops: Sequence[str] = ()) -> Iterator[Written]:
    """Yield the programs that the installed library accepts; without ``ops``, of all."""
    seen = set[str]()
    for case in cases():
        if case.constraint or (ops and case.op not in ops):
            continue
        for element in elements:
            for own in ("f32", "i32"):
                changed = re.sub(rf"tensor<((?:\d+x)*){own}>", rf"tensor<\g<1>{element}>", case.text)
                for text in (changed, re.sub(r"tensor<\d+x", "tensor<?x", changed)):
                    if text not in seen:
                        seen.add(text)
                        yield from (Written(case.op, element, text, each) for each in _artifacts(text))


def _artifacts(text: str) -> Iterator[vt.Artifact]:
    for target in TARGETS:
        try:
            yield vt.serialize(text, target)
        except vt.VhloToolsError:
            continue
        return


def wrong_answers(programs: Sequence[Written], release: str) -> list[tuple[Written, str]]:
    """Return the programs of which we say that the release reads them and it does not, or the other way round."""
    version = vt.resolve_target(release).version
    outcomes = read_by(release, [bytes(each.artifact) for each in programs], text=False)
    wrong = []
    for program, outcome in zip(programs, outcomes, strict=True):
        findings = program.artifact.requirements().reader_findings(version)
        expected = not any(each.level == "error" for each in findings)
        if expected != ("error" not in outcome):
            wrong.append((program, outcome.get("error", "it reads it")))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=["0.4.13", "0.4.20", "0.4.26", "0.4.31", "0.5.3", "0.8.3"])
    programs = list(written())
    print(f"{len(programs)} programs")
    failed = False
    for release in parser.parse_args().releases:
        wrong = wrong_answers(programs, f"jaxlib=={release}")
        print(f"{release}: {len(wrong)} not as said", flush=True)
        for (op, element, said), count in Counter((each.op, each.element, said[:200]) for each, said in wrong).items():
            print(f"  {op} of {element} ({count}): {said}")
        failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
