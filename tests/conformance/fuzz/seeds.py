"""Valid files of every format, from which the campaign starts: `collect` makes a folder of them, `load` reads it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from pathlib import Path
from zlib import crc32

import numpy as np
from support.corpus_files import corpus_files
from support.protobuf_messages import field

import vhlo_tools as vt
from fuzz.cases import Seeds
from vhlo_tools.bindings.xla import hlo_of_text
from vhlo_tools.cli.main import main
from vhlo_tools.stores import MigrationSettings

ROOT = Path(__file__).parents[3]
#: The store of the journal among the seeds; it need not exist.
STORE = "/store-of-the-campaign"
_LARGEST = 12_000
#: Mutants cost as much as their seeds are large.
_LARGEST_ARTIFACT = 4000
#: The versions that features are written at, where they can be.
_VERSIONS = ("0.9.0", "0.17.0", "1.0.0", "1.9.0", "current")

CONSTANTS = """module {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x3xi8>) {
    %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %1 = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>
    %2 = stablehlo.add %a, %0 : tensor<4xf32>
    return %2, %1 : tensor<4xf32>, tensor<2x3xi8>
  }
}"""

#: As the compiler of a TPU leaves it: pairs, tiles, and bitcasts that move elements.
OPTIMIZED = """HloModule optimized, input_output_alias={ {}: (0, {}, may-alias) },
 entry_computation_layout={(f32[4,8]{1,0:T(4,8)}, f32[16]{0:T(8)})->f32[32]{0:T(8)}}

add {
  a = f32[4,8]{1,0:T(4,8)} parameter(0)
  ROOT s = f32[4,8]{1,0:T(4,8)} add(a, a)
}

ENTRY main {
  x = f32[4,8]{1,0:T(4,8)} parameter(0)
  y = f32[16]{0:T(8)} parameter(1)
  u = ((f32[4,8]{1,0:T(4,8)}), f32[4,8]{1,0:T(4,8)}, u32[]) async-start(x), calls=add
  v = f32[4,8]{1,0:T(4,8)} async-done(u)
  c = (f32[4,8]{1,0:T(2,8)S(1)}, f32[4,8]{1,0:T(4,8)}, u32[]) copy-start(v)
  d = f32[4,8]{1,0:T(2,8)S(1)} copy-done(c)
  ROOT r = f32[32]{0:T(8)} bitcast(d)
}
""".replace(",\n", ",")

SETTINGS = """[tool.vhlo-tools]
target = ["1.0.0", "servers"]
readable-by = ["jaxlib==0.4.31"]
as-of = 2025-06-01
exclude = ["build/**", "*.tmp"]
output-format = "json"
baseline = "baseline.json"
jobs = 1
expand = true
allow-other-dialects = false

[tool.vhlo-tools.targets]
servers = ["12w", "tensorflow==2.18.0"]

[tool.vhlo-tools.levels]
error = ["dot_*"]
warning = ["type"]
off = ["location"]

[[tool.vhlo-tools.overrides]]
files = ["old/*.mlirbc"]
target = "0.9.0"
note = ["*"]
"""


@contextmanager
def _quiet() -> Iterator[None]:
    with redirect_stdout(TextIOWrapper(BytesIO())), redirect_stderr(TextIOWrapper(BytesIO())):
        yield


def _tensor(dtype: int, *sizes: int) -> bytes:
    return field(1, "name:0") + field(2, dtype) + field(3, b"".join(field(2, field(1, each)) for each in sizes))


def _saved_model() -> bytes:
    def entry(key: str, value: bytes) -> bytes:
        return field(1, key) + field(2, value)

    signature = (
        field(1, entry("x", _tensor(1, 2, 4))) + field(1, entry("n", _tensor(9))) + field(2, entry("y", _tensor(14)))
    )
    graph = field(1, field(4, "serve") + field(5, "2.21.0")) + field(5, entry("serving_default", signature))
    return field(1, 1) + field(2, graph + field(2, field(1, field(1, "node") + field(2, "Add"))))


def _archive(folder: str, members: dict[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(f"{folder}{name}", data)
    return out.getvalue()


def _small_torch() -> bytes:
    """Return what a file of torch.export has, with few bytes."""
    with zipfile.ZipFile(ROOT / "examples" / "torch_classifier.pt2") as archive:
        members = {info.filename: archive.read(info)[:3000] for info in archive.infolist()}
        members |= {info.filename: archive.read(info) for info in archive.infolist() if info.filename.endswith(".json")}
    return _archive("", members)


def move_journal(database: sqlite3.Connection, old: str, new: str) -> None:
    """Let a journal be that of a store with another path."""
    database.execute("UPDATE header SET value = replace(value, ?, ?)", (old, new))
    for column in ("path", "source", "destination"):
        moved = f"CAST(replace(CAST({column} AS TEXT), ?, ?) AS BLOB)"
        database.execute(f"UPDATE files SET {column} = {moved}", (old, new))


def _journal(folder: Path) -> bytes:
    """Return the journal of an interrupted migration of :data:`STORE`, with the records of some files."""
    path, store = folder / "journal", folder / "store"
    store.mkdir()
    for number, version in enumerate(("1.9.0", "1.0.0", "0.9.0")):
        vt.serialize(CONSTANTS, version).save(store / f"{number}.mlirbc")
    list(vt.migrate(store, "1.0.0", journal=path, jobs=1))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM header WHERE name = 'ended'")
        settings = json.dumps(MigrationSettings((STORE,), vt.Version("1.0.0")).pinned())
        database.execute("UPDATE header SET value = ? WHERE name = 'settings'", (settings,))
        database.execute("UPDATE files SET state = 0 WHERE id = 2")
        move_journal(database, str(store), STORE)
    data = path.read_bytes()
    path.unlink()
    return data


def _hlo(program: Path, folder: Path) -> dict[str, bytes]:
    found = {}
    for emit in ("hlo-text", "hlo-proto"):
        out = folder / emit
        with _quiet():
            main(["serialize", str(program), "-o", str(folder / "artifact"), "--force"])
            main(["deserialize", str(folder / "artifact"), "--emit", emit, "-o", str(out), "--force"])
        if out.exists():
            found[emit] = out.read_bytes()
            out.unlink()
    return found


def _golden(folder: Path) -> dict[str, bytes]:
    program = folder / "program.mlir"
    program.write_text(CONSTANTS)
    vt.record_golden(folder / "suite", program, name="a")
    record = folder / "suite" / "a"
    return {path.name: path.read_bytes() for path in record.iterdir()}


def _results(folder: Path) -> dict[str, bytes]:
    """Return the results of each command that writes them as Parquet."""
    store = folder / "results"
    store.mkdir()
    (store / "text.mlir").write_text(CONSTANTS)
    (store / "torn.mlirbc").write_bytes(b"ML\xefR\1")
    for version in _VERSIONS:
        vt.serialize(CONSTANTS, version).save(store / f"{version}.mlirbc")
    found = {}
    for command in ("store status", "migrate --dry-run --target 0.9.0", f"verify {store}"):
        out = folder / "results.parquet"
        with _quiet():
            main([*command.split(), str(store), "--output-format", "parquet", "-o", str(out)])
        if out.exists():
            found[command.partition(" ")[0]] = out.read_bytes()
            out.unlink()
    return found


def _programs() -> list[Path]:
    tests = ROOT / "tests" / "programs"
    paths = [*(ROOT / "examples").glob("*.mlir"), *tests.glob("features/*.mlir"), *tests.glob("hostile/*.mlir")]
    return sorted(path for path in paths if path.stat().st_size <= _LARGEST and "loop" not in path.name)


def _all(folder: Path, step: int) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {
        name: {} for name in ("artifact", "bytecode", "mlir-text", "hlo-text", "hlo-proto")
    }
    for name, data in corpus_files():
        # A third of them: programs repeat from release to release.
        kind = "artifact" if b"StableHLO_v" in data[:20] else "bytecode"
        if len(data) <= _LARGEST_ARTIFACT and (kind == "bytecode" or crc32(name.encode()) % 3 == 0):
            found[kind][name.replace("/", "-")] = data
    for path in (ROOT / "tests" / "programs" / "hostile").iterdir():
        if path.suffix == ".mlirbc" and path.stat().st_size <= _LARGEST_ARTIFACT:
            found["artifact"][path.name] = path.read_bytes()
        if path.suffix == ".pb":
            found["hlo-proto"][path.name] = path.read_bytes()
    found["hlo-proto"]["optimized"] = hlo_of_text(OPTIMIZED)
    for number, path in enumerate(_programs()[::step]):
        found["mlir-text"][path.name] = path.read_bytes()
        for version in _VERSIONS:
            with suppress(vt.VhloToolsError):
                found["artifact"][f"{path.stem}@{version}"] = bytes(vt.serialize(path, version))
        if number % 2 == 0:
            for emit, data in _hlo(path, folder).items():
                if len(data) <= _LARGEST:
                    found[emit][path.stem] = data
    exports = (ROOT / "tests" / "artifact" / "jax_exports").glob("*.jax_export")
    found["jax-export"] = {path.name: path.read_bytes() for path in exports if path.stat().st_size <= _LARGEST}
    found["torch"] = {
        "small": _small_torch(),
        "keras": _archive("", {"config.json": b"{}", "model.weights.h5": b"\x89HDF"}),
    }
    found["saved-model"] = {"small": _saved_model()}
    externalized = vt.externalize_constants(vt.serialize(CONSTANTS, "1.9.0"), min_size=0)
    externalized.artifact.save(folder / "e.mlirbc")
    externalized.save_weights(folder / "e.safetensors")
    found["externalized"] = {"e": (folder / "e.mlirbc").read_bytes()}
    found["safetensors"] = {"e": (folder / "e.safetensors").read_bytes()}
    golden = _golden(folder)
    found["golden"] = {"golden.json": golden.pop("golden.json")}
    found["golden-artifact"] = {"model": golden.pop("model.mlirbc")}
    found["npy"] = dict(golden.items())
    other = BytesIO()
    np.save(other, np.zeros((2, 3), np.int8))
    found["npy"]["zeros"] = other.getvalue()
    found["settings"] = {
        "pyproject": SETTINGS.encode(),
        "vhlo-tools": SETTINGS.replace("tool.vhlo-tools.", "").encode(),
    }
    vt.serialize(ROOT / "tests" / "programs" / "features" / "tan.mlir", "1.4.0").save(folder / "a.mlirbc")
    with _quiet():
        names = [
            str(folder / "a.mlirbc"),
            "--target",
            "0.9.0",
            "--baseline",
            str(folder / "b.json"),
            "--update-baseline",
        ]
        main(["check", *names])
    found["baseline"] = {"b": (folder / "b.json").read_bytes()}
    found["journal"] = {"j": _journal(folder)}
    whole = folder / "whole.mlirbc"
    vt.serialize(CONSTANTS).save(whole)
    with _quiet():
        main(["manifest", "write", str(whole)])
    found["manifest-artifact"] = {"a": whole.read_bytes()}
    found["manifest"] = {"m": whole.with_name("whole.mlirbc.manifest.json").read_bytes()}
    if find_spec("pyarrow"):
        found["parquet"] = _results(folder)
    specs = ROOT / "examples" / "specs" / "my_op"
    found["specs"] = {
        path.relative_to(specs).as_posix().replace("/", "+"): path.read_bytes() for path in specs.rglob("*.toml")
    }
    return found


def collect(folder: Path, step: int = 1) -> None:
    """Write the seeds of every format to a folder of the format, unless they are there already.

    Args:
        folder: The folder of these folders.
        step: Of the programs, every how many is written.
    """
    if (folder / "complete").exists():
        return
    work = folder / "work"
    shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True)
    for kind, files in _all(work, step).items():
        (folder / kind).mkdir()
        for name, data in files.items():
            (folder / kind / name).write_bytes(data)
        if not files:
            print(f"no seeds of {kind}", file=sys.stderr)
    shutil.rmtree(work)
    (folder / "complete").touch()


def load(folder: Path) -> Seeds:
    """Return what :func:`collect` has written, in the order of names."""
    kinds = sorted(path for path in folder.iterdir() if path.is_dir())
    return {kind.name: [path.read_bytes() for path in sorted(kind.iterdir())] for kind in kinds}
