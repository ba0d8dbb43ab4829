"""See that aliases and donors are the same after every way that a program can go: `check_alias_round_trips.py`.

Random signatures get random aliases and donors that XLA takes. Each program goes, in every form that can say them and
through every version that the library writes: StableHLO, VHLO, its bytes moved to the newest version and back, HLO as
text, HLO as a protocol buffer, StableHLO and VHLO again. Prints where something changed, and what was seen.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final, get_args

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.alias_programs import module_text, random_config

import vhlo_tools as vt
from vhlo_tools import api
from vhlo_tools.aliasing import AliasConfig, Array, Form, Signature, encode_aliases, fits
from vhlo_tools.bindings import get_provider
from vhlo_tools.files.hlo import parse_header, read_hlo_module
from vhlo_tools.program.hlo_loading import proto_of_text
from vhlo_tools.program.module_aliases import read_module_aliases
from vhlo_tools.spec import known_versions

BATCH: Final = 10
ELEMENTS: Final = ("f32", "f32", "s32", "s32", "u8", "f64", "pred", "s4", "c64")
SIZES: Final = (1, 2, 4, 8)


@dataclass(slots=True)
class Outcome:
    """What was seen of some configs."""

    seen: Counter[str] = field(default_factory=Counter)  # how often there was what
    wrong: list[str] = field(default_factory=list)  # where aliases or donors changed, each in a sentence


def versions() -> list[str]:
    """Return every minor version that the installed library writes."""
    current = get_provider().library.current
    return [str(entry.version) for entry in known_versions() if entry.version.minor_release <= current.minor_release]


def config_of(seed: int) -> AliasConfig:
    """Return random aliases and donors of a random signature of arrays, in which shapes come back."""
    random = Random(seed)
    shapes = [
        Array(random.choice(ELEMENTS), tuple(random.choices(SIZES, k=random.randint(0, 2))))
        for _ in range(random.randint(1, 3))
    ]
    sides = [tuple(random.choices(shapes, k=random.randint(low, 5))) for low in (1, 0)]
    return random_config(random, Signature.of_results(*sides))


def round_trip(text: str, config: AliasConfig, form: Form, version: str) -> Iterator[tuple[str, bool]]:
    """Yield each step of the way that a program goes, and whether it has the aliases and donors of ``config``."""
    artifact = vt.serialize(text, version)
    yield "VHLO", artifact.aliases() == config
    newest = vt.retarget(artifact, "current", engine="bytes")
    yield "VHLO moved up", newest.aliases() == config
    yield "VHLO moved down", vt.retarget(newest, version, engine="bytes").aliases() == config
    yield "StableHLO", read_module_aliases(vt.deserialize(artifact).operation).config() == config
    hlo = api.program_of(artifact, "hlo-text").decode()
    header = parse_header(hlo.partition("\n")[0])
    yield "HLO text", (header.aliases, header.donors) == (config.aliases, config.donors)
    proto = proto_of_text(hlo, "the program")
    held = read_hlo_module(memoryview(proto))
    yield "HLO proto", (held.aliases, held.donors) == (config.aliases, config.donors)
    back = vt.serialize(proto, version)
    yield "StableHLO of HLO", read_module_aliases(vt.deserialize(back).operation).config() == config
    yield "VHLO of HLO", back.aliases() == config
    yield "VHLO of HLO in its form", back.with_aliases(config, form).aliases() == config


def check(seeds: Sequence[int]) -> Outcome:
    """Let the configs of ``seeds`` go round, each through every version in every form."""
    outcome = Outcome()
    for seed in seeds:
        config = config_of(seed)
        outcome.seen["configs"] += 1
        outcome.seen["aliases"] += len(config.aliases)
        outcome.seen["must-aliases"] += sum(each.kind == "must-alias" for each in config.aliases)
        outcome.seen["donors"] += len(config.donors)
        for form in get_args(Form):
            if not fits(config, form):
                continue
            outcome.seen[f"in {form} form"] += 1
            text = module_text(config.signature, encode_aliases(config, form))
            for version in versions():
                for step, same in round_trip(text, config, form, version):
                    outcome.seen["steps"] += 1
                    if not same:
                        outcome.wrong.append(f"seed {seed}, {form} form, {version}: changed in {step}: {config}")
                outcome.seen["round trips"] += 1
    return outcome


def main() -> int:
    """Check as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.number)
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    total = Outcome()
    with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
        for outcome in pool.map(check, batches):
            total.seen += outcome.seen
            total.wrong += outcome.wrong
            for each in outcome.wrong:
                print(each, flush=True)
    found = versions()
    print(f"{len(found)} versions, {found[0]} to {found[-1]}")
    print(", ".join(f"{number} {what}" for what, number in total.seen.items()))
    print(f"{len(total.wrong)} differences")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
