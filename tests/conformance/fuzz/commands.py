"""Every command, called as the command line calls it, with files that were changed."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from fuzz.cases import Case, Seeds
from fuzz.seeds import STORE, move_journal
from vhlo_tools.cli.main import main

#: Success, a negative answer, bad input, and output that nobody reads.
EXIT_CODES = (0, 1, 2, 141)

_PROGRAM = ("artifact", "bytecode", "mlir-text", "jax-export", "hlo-text", "hlo-proto", "torch", "saved-model")
_ARTIFACT = ("artifact", "artifact", "jax-export", "bytecode", "mlir-text")

#: Commands with the formats of the file `F`. `G` is a valid artifact, `O` a file to write, `S` a store with `F`.
#: `W`, `T`, `B`, `J`, `D` and `P` are changed weights, settings, baselines, journals, suites and specifications.
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("inspect F", _PROGRAM),
    ("inspect F --output-format json", _PROGRAM),
    ("check F --target 1.0.0", _PROGRAM),
    ("check F --target 0.9.0 --output-format json", _PROGRAM),
    ("check F --target 0.9.0 --output-format sarif", _ARTIFACT),
    ("check F --readable-by 1.0.0 --output-format junit", _ARTIFACT),
    ("check F --target 0.9.0 --output-format github", _ARTIFACT),
    ("check F --config T", ("artifact",)),
    ("check --show-settings --config T", ("artifact",)),
    ("check F --target 0.9.0 --baseline B", ("artifact",)),
    ("check S --target 12w -j 1", _PROGRAM),
    ("serialize F -o O", _PROGRAM),
    ("serialize F --target 1.0.0 -o O --output-format json", _PROGRAM),
    ("deserialize F", _ARTIFACT),
    ("deserialize F --emit vhlo", _ARTIFACT),
    ("deserialize F --emit hlo-text -o O", _ARTIFACT),
    ("deserialize F --emit hlo-proto -o O", _ARTIFACT),
    ("retarget F --target 1.0.0 -o O", _ARTIFACT),
    ("retarget F --target current --engine mlir -o O", _ARTIFACT),
    ("retarget F --strip-debug-info -o O", _ARTIFACT),
    ("diff F G", _PROGRAM),
    ("diff G F --locations --output-format json", _PROGRAM),
    ("report F -o O", _PROGRAM),
    ("report F G -o O --target 1.0.0", _ARTIFACT),
    ("report S -o O", _PROGRAM),
    ("report F --format dot", _ARTIFACT),
    ("report F --format mermaid --max-nodes 0", _ARTIFACT),
    ("manifest check G", ("manifest",)),
    ("manifest show G", ("manifest",)),
    ("check G --target 1.0.0", ("manifest",)),
    ("alias show F", _PROGRAM),
    ("alias show F --calls --output-format json", _ARTIFACT),
    ("check F --target 1.0.0 --same-aliases-as G", _ARTIFACT),
    ("alias set F --alias 0=0 -o O", _ARTIFACT),
    ("alias clear F -o O", _ARTIFACT),
    ("alias convert F --form module -o O", _ARTIFACT),
    ("constants list F", _ARTIFACT),
    ("constants list F --output-format json", _ARTIFACT),
    ("constants extract F -o O", _ARTIFACT),
    ("constants externalize F -o O --min-size 1", _ARTIFACT),
    ("constants restore F --weights W -o O", ("externalized",)),
    ("run F --timeout 1", ("mlir-text", "artifact", "hlo-text")),
    ("run F --timeout 1 --engine reference --output-format json", ("mlir-text", "artifact")),
    ("run F --timeout 1 --engine xla", ("mlir-text", "artifact", "hlo-proto")),
    ("verify F G --timeout 1", ("mlir-text", "artifact")),
    ("golden record O F", ("mlir-text", "artifact")),
    ("golden check D", ("artifact",)),
    ("golden check D --output-format json", ("artifact",)),
    ("migrate S --target 1.0.0 -j 1 --dry-run", _PROGRAM),
    ("migrate S --target 1.0.0 -j 1", _PROGRAM),
    ("migrate S --target 1.0.0 -j 1 --journal J", ("artifact",)),
    ("migrate S --target 1.0.0 -j 1 --journal J --restart --output-dir O", ("artifact",)),
    ("store status S", _PROGRAM),
    ("store status S --output-format json", _PROGRAM),
    ("targets N", ("artifact",)),
    ("spec lint --specs P", ("artifact",)),
    ("spec show N", ("artifact",)),
    ("spec list --specs P", ("artifact",)),
    ("opt --canonicalize F", ("mlir-text", "artifact")),
    ("opt --stablehlo-legalize-to-vhlo F", ("mlir-text",)),
    ("translate --serialize --target=1.0.0 F -o O", ("mlir-text",)),
    ("translate --deserialize F", ("artifact",)),
    ("shims O", ("artifact",)),
)

Mutant = Callable[[random.Random, Seeds, str], bytes]


def _suite(mutant: Mutant, chance: random.Random, seeds: Seeds) -> dict[str, bytes]:
    """Return a suite of golden records in which one file is changed."""
    files = {
        "D/a/golden.json": seeds["golden"][0],
        "D/a/model.mlirbc": seeds["golden-artifact"][0],
        **{
            f"D/a/{name}.npy": data
            for name, data in zip(("input.0", "output.0", "output.1"), seeds["npy"], strict=False)
        },
    }
    match chance.randrange(3):
        case 0:
            files["D/a/golden.json"] = mutant(chance, seeds, "golden")
        case 1:
            files["D/a/input.0.npy"] = mutant(chance, seeds, "npy")
        case _:
            files["D/a/model.mlirbc"] = mutant(chance, seeds, "artifact")
    return files


def draw_command(mutant: Mutant, chance: random.Random, seeds: Seeds) -> Case:
    """Draw a command, and its files."""
    line, kinds = chance.choice(COMMANDS)
    kind = chance.choice(kinds)
    words = line.split()
    files = {"F": mutant(chance, seeds, kind), "G": chance.choice(seeds["artifact"])}
    if kind == "saved-model":
        files = {"F/saved_model.pb": files["F"], "F/variables/x": b"", "G": files["G"]}
    for letter, of in (("W", "safetensors"), ("T", "settings"), ("B", "baseline"), ("J", "journal")):
        if letter in words:
            files[letter] = mutant(chance, seeds, of)
    if kind == "manifest":
        files["G.manifest.json"] = files.pop("F")
        files["G"] = seeds["manifest-artifact"][0]
    if "S" in words:
        files |= {"S/f": files["F"], "S/g": files["G"]} if "F" in files else {"S/g": files["G"]}
    if "T" in words and chance.random() < 0.5:
        words[words.index("T")] = "pyproject.toml"
        files["pyproject.toml"] = files.pop("T")
    if "D" in words:
        files |= _suite(mutant, chance, seeds)
    if "P" in words:
        files |= {
            "P/vhlo/ops/my_family.toml": mutant(chance, seeds, "specs"),
            "P/versions.toml": mutant(chance, seeds, "specs"),
        }
    if "N" in words:
        words[words.index("N")] = mutant(chance, seeds, "settings")[:60].decode(errors="replace").replace("\0", "")
    if "O" in words:
        words[words.index("O")] = "out/O"

    def run(folder: Path) -> bool:
        if "J" in words:
            # Of this store, as long as it can be read.
            with suppress(sqlite3.Error, UnicodeDecodeError), closing(sqlite3.connect("J")) as database, database:
                move_journal(database, STORE, str(folder / "S"))
        code = main(words)
        if code not in EXIT_CODES:
            raise AssertionError(f"the exit code is {code}")
        return code < 2

    return Case(f"vhlo {' '.join(line.split())} ({kind})", files, run, is_command=True)
