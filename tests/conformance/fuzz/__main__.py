"""Run the fuzzing campaign: `tests/conformance/fuzz --seed 0 --layers reader --inputs 1000000 --folder DIR`.

Prints a table of what became of the inputs of each layer, and fails if something was that must not be. An interrupted
campaign goes on with `--continue`; `--show LAYER:INDEX` runs one input alone, with its traceback; `--bits` flips every
bit of ten artifacts instead.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from importlib.util import find_spec
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parents[1]), str(_HERE.parent)]

from fuzz.bits import flip_all  # noqa: E402
from fuzz.campaign import Campaign  # noqa: E402
from fuzz.layers import LAYERS  # noqa: E402
from fuzz.seeds import collect, load  # noqa: E402
from fuzz.worker import case_of, layer_of, work  # noqa: E402


def show(name: str, index: int, seed: int, folder: Path) -> None:
    """Run one input in this process, in a folder in which it is kept."""
    collect(folder / "seeds")
    case = case_of(layer_of(name), seed, index, load(folder / "seeds"))
    place = folder.resolve() / "shown" / f"{name}-{index}"
    (place / "out").mkdir(parents=True, exist_ok=True)
    for file, data in case.files.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_bytes(data)
    if case.is_command:
        os.chdir(place)
    print(f"{case.name}: {place}", flush=True)
    begun = time.monotonic()
    try:
        print("answered" if case.run(place) else "refused")
    except BaseException:
        traceback.print_exc()
    print(f"{time.monotonic() - begun:.2f} s")


def main() -> int:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    here = [name for name, layer in LAYERS.items() if not layer.needs or find_spec(layer.needs)]
    parser.add_argument(
        "--layers", default=",".join(here), help=f"of {', '.join(LAYERS)}; by default those that can run"
    )
    parser.add_argument("--inputs", type=int, default=1000, help="of each layer")
    parser.add_argument("--seconds", type=float, help="for each layer, at most")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("fuzz-campaign"), help="for seeds, journal and problems")
    parser.add_argument("--continue", dest="resume", action="store_true", help="go on with the journal in the folder")
    parser.add_argument("--show", metavar="LAYER:INDEX", help="run one input alone")
    parser.add_argument("--bits", type=float, nargs="?", const=1.0, metavar="SHARE", help="flip bits of ten artifacts")
    parser.add_argument("--worker", nargs=2, metavar=("LAYER", "NUMBER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker[0], arguments.seed, arguments.folder, int(arguments.worker[1]))
        return 0
    if arguments.bits is not None:
        return int(not flip_all(arguments.bits, arguments.seed))
    if arguments.show:
        layer, index = arguments.show.rsplit(":", 1)
        show(layer, int(index), arguments.seed, arguments.folder)
        return 0
    campaign = Campaign(arguments.folder, arguments.seed, resume=arguments.resume)
    try:
        for layer in arguments.layers.split(","):
            begun = time.monotonic()
            campaign.run(layer, arguments.inputs, workers=arguments.workers, seconds=arguments.seconds)
            print(f"{layer}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    finally:
        print(campaign.report(), flush=True)
        campaign.close()
    return int(bool(campaign.problems))


if __name__ == "__main__":
    sys.exit(main())
