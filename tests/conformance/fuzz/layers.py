"""What is called with which inputs: our reader, our readers of containers, MLIR, and the engines."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import vhlo_tools as vt
from fuzz.bits import decode_whole, take_apart
from fuzz.cases import Case, Layer, Seeds, answered, any_answered
from fuzz.commands import draw_command
from fuzz.drawing import damage
from fuzz.mutate_bytecode import mutate_bytecode
from fuzz.mutate_containers import mutate_flatbuffer, mutate_npy, mutate_safetensors, mutate_sqlite, mutate_zip
from fuzz.mutate_documents import mutate_json
from fuzz.mutate_messages import mutate_message
from fuzz.mutate_text import mutate_text
from fuzz.scale_layers import draw_parquet, draw_store, mutate_parquet
from fuzz.seeds import STORE
from vhlo_tools.artifact import Artifact, diff_artifacts, inspect_bytes
from vhlo_tools.artifact.extraction import read_tensors
from vhlo_tools.files import (
    decode_jax_export,
    decode_torch_export,
    find_hlo_module,
    plain_hlo,
    read_hlo_module,
    read_hlo_text,
    read_saved_model,
    read_signature,
    replace_modules,
)
from vhlo_tools.files.mapping import join, view
from vhlo_tools.gate.baseline import Baseline
from vhlo_tools.gate.examination import load_settings
from vhlo_tools.stores import Journal, MigrationSettings
from vhlo_tools.verification.golden import read_array, read_record

MUTATORS: Mapping[str, Callable[[random.Random, bytes, bytes], bytes]] = {
    "artifact": mutate_bytecode,
    "bytecode": mutate_bytecode,
    "externalized": mutate_bytecode,
    "mlir-text": mutate_text,
    "hlo-text": mutate_text,
    "hlo-proto": mutate_message,
    "saved-model": mutate_message,
    "jax-export": mutate_flatbuffer,
    "torch": mutate_zip,
    "safetensors": mutate_safetensors,
    "npy": mutate_npy,
    "golden": mutate_json,
    "baseline": mutate_json,
    "manifest": mutate_json,
    "settings": mutate_text,
    "specs": mutate_text,
    "journal": mutate_sqlite,
    "parquet": mutate_parquet,
}
#: The largest file that goes through everything, in bytes.
_WHOLE = 100_000
_VERSIONS = ("0.9.0", "0.17.0", "1.0.0", "1.9.0", "1.17.0")


def mutant(chance: random.Random, seeds: Seeds, kind: str) -> bytes:
    """Return a file of a format, changed."""
    data, other = chance.choice(seeds[kind]), chance.choice(seeds[kind])
    if kind == "jax-export" and chance.random() < 0.3:
        # The program in it, and not what is around.
        module = mutate_bytecode(chance, chance.choice(seeds["artifact"]), chance.choice(seeds["artifact"]))
        if chance.random() < 0.8:
            return bytes(join(replace_modules(data, lambda *_: [module])))
    try:
        changed = MUTATORS[kind](chance, data, other)
    except Exception:
        # What was drawn cannot be written in the format.
        changed = damage(chance, data)
    return damage(chance, changed, 1) if chance.random() < 0.02 else changed


def _inspect(data: bytes) -> None:
    json.dumps(inspect_bytes(data, "it"), default=str)


def reader_calls(data: bytes, other: bytes, version: str) -> dict[str, Callable[[], object]]:
    """Return what is called with the bytes of a program, and with another that is whole."""
    return {
        "inspect": lambda: _inspect(data),
        "check": lambda: vt.check(data, version),
        "require": lambda: vt.require(data, version),
        "text": lambda: Artifact(data).text(debug_info=True),
        # Not `vt.diff`, which asks MLIR about artifacts that cannot be moved: that is of the next layer.
        "diff": lambda: diff_artifacts(Artifact(data), Artifact(other), locations=True),
        "diff back": lambda: diff_artifacts(Artifact(other), Artifact(data)),
        "constants": lambda: vt.constants(data),
        "aliases": lambda: Artifact(data).aliases(),
        "strip": lambda: bytes(vt.strip(data)),
        "retarget": lambda: bytes(vt.retarget(data, version)),
        "externalize": lambda: vt.externalize_constants(data, min_size=0),
    }


def _reader(chance: random.Random, seeds: Seeds) -> Case:
    kind = "artifact" if chance.random() < 0.85 else "bytecode"
    data, other = mutant(chance, seeds, kind), chance.choice(seeds["artifact"])
    calls = reader_calls(data, other, chance.choice(_VERSIONS))
    some, is_whole = chance.sample(sorted(calls), 2), chance.random() < 0.05

    def run(_: Path) -> bool:
        decoded = answered(lambda: decode_whole(data))
        # In a few the whole: what can be decoded goes through everything. The limit is that of all calls together, so
        # that the largest are left out.
        everything = decoded and is_whole and len(data) < _WHOLE
        if everything and kind == "artifact":
            answered(lambda: take_apart(data))
        for name in calls if everything else some:
            answered(calls[name])
        return decoded

    return Case(f"reader of {kind}", {"input.mlirbc": data}, run, in_memory=True)


def _journal(path: Path) -> None:
    try:
        with Journal(str(path), MigrationSettings((STORE,), vt.Version("1.0.0"))) as journal:
            list(journal.tasks(beside=True))
            list(journal.intents())
            list(journal.conflicts(force=False))
            list(journal.records())
    except sqlite3.Error as error:
        # As the functions of stores do, which the commands call.
        raise vt.MigrationError(str(error)) from error


def _levels(data: bytes) -> None:
    for level in decode_jax_export(data).levels():
        read_signature(level)


def _record(folder: Path, seeds: Seeds) -> None:
    record = read_record(folder)
    record.values(record.inputs)
    record.values(record.outputs)


def _values(data: bytes, dtype: str) -> None:
    try:
        read_array(data, dtype)
    except ValueError as error:
        # Its callers say which file it is.
        raise vt.GoldenError(str(error)) from error


#: What is called with a file of a format: functions of the file's bytes and its path.
_CALLS: Mapping[str, tuple[Callable[[bytes, Path], object], ...]] = {
    "hlo-text": (lambda data, _: read_hlo_text(data.decode(errors="replace")), lambda data, _: _inspect(data)),
    "hlo-proto": (
        lambda data, _: find_hlo_module(view(data)),
        lambda data, _: read_hlo_module(view(data)),
        lambda data, _: plain_hlo(data, "it"),
        lambda data, _: _inspect(data),
    ),
    "jax-export": (
        lambda data, _: _levels(data),
        lambda data, _: _inspect(data),
        lambda data, _: vt.check(data, "1.0.0"),
        lambda data, _: join(replace_modules(data, lambda *_: [b"ML\xefR\1"])),
        lambda data, _: vt.open_artifact(data).aliases(),
        lambda data, _: vt.diff(data, data),
    ),
    "torch": (lambda data, _: decode_torch_export(data), lambda data, _: _inspect(data)),
    "saved-model": (lambda _, path: read_saved_model(path.parent),),
    "safetensors": (
        lambda data, _: read_tensors(data, "it"),
        lambda _, path: vt.restore_constants(path.with_name("externalized"), path),
    ),
    "npy": (lambda data, _: _values(data, "float32"), lambda data, _: _values(data, "bfloat16")),
    "baseline": (lambda _, path: Baseline.read(path),),
    "settings": (lambda _, path: load_settings(config=path),),
    "journal": (lambda _, path: _journal(path),),
}
_NAMES = {"journal": "J", "saved-model": "saved_model.pb", "settings": "pyproject.toml", "golden": "golden.json"}


def _containers(chance: random.Random, seeds: Seeds) -> Case:
    kind = chance.choice((*_CALLS, "golden", "hlo-proto", "hlo-text", "jax-export", "torch"))
    data = mutant(chance, seeds, kind)
    name = _NAMES.get(kind, "input")
    files = {name: data}
    if kind == "settings" and chance.random() < 0.5:
        files = {"vhlo-tools.toml": data}
    if kind == "safetensors":
        weird = chance.random() < 0.3
        files["externalized"] = mutant(chance, seeds, "externalized") if weird else seeds["externalized"][0]
    if kind == "golden":
        files |= {"model.mlirbc": seeds["golden-artifact"][0], "input.0.npy": chance.choice(seeds["npy"])}
        files |= {f"output.{index}.npy": chance.choice(seeds["npy"]) for index in (0, 1)}

    def run(folder: Path) -> bool:
        if kind == "golden":
            return answered(lambda: _record(folder, seeds))
        path = folder / next(iter(files))
        return any_answered([partial(call, data, path) for call in _CALLS[kind]])

    return Case(f"container {kind}", files, run, files_raise=True)


_PROGRAMS = (
    "artifact",
    "artifact",
    "artifact",
    "bytecode",
    "mlir-text",
    "mlir-text",
    "jax-export",
    "hlo-text",
    "hlo-proto",
)


def _mlir(chance: random.Random, seeds: Seeds) -> Case:
    kind = chance.choice(_PROGRAMS[:-2] if chance.random() < 0.8 else _PROGRAMS)
    data = mutant(chance, seeds, kind)
    version, other = chance.choice(_VERSIONS), chance.choice(seeds["artifact"])
    calls: dict[str, Callable[[], object]] = {
        "deserialize": lambda: str(vt.deserialize(data)),
        "serialize": lambda: vt.serialize(data),
        "serialize for": lambda: vt.serialize(data, version),
        "check": lambda: vt.check(data, version),
        "diff": lambda: vt.diff(data, other),
    }
    name = chance.choice(sorted(calls))
    return Case(f"{name} {kind}", {"input": data}, lambda _: answered(calls[name]), in_memory=True)


def _run(data: bytes, engine: Any) -> None:
    inputs = vt.draw_inputs(data)
    vt.run(data, inputs, engine=engine, timeout=1)


def _load(data: bytes) -> None:
    vt.load_executable(data, engine="xla", timeout=1)


def _engine(engine: str, chance: random.Random, seeds: Seeds) -> Case:
    kind = chance.choice(_PROGRAMS)
    data = mutant(chance, seeds, kind)
    if engine == "xla" and kind.startswith("hlo") and chance.random() < 0.5:
        return Case(f"xla loads {kind}", {"input": data}, lambda _: answered(lambda: _load(data)), in_memory=True)
    return Case(f"{engine} {kind}", {"input": data}, lambda _: answered(lambda: _run(data, engine)), in_memory=True)


LAYERS: Mapping[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("reader", _reader),
        Layer("containers", _containers),
        Layer("mlir", _mlir, has_children=True),
        Layer("reference", partial(_engine, "reference"), has_children=True),
        Layer("xla", partial(_engine, "xla"), has_children=True),
        Layer("auto", partial(_engine, "auto"), has_children=True),
        Layer("commands", partial(draw_command, mutant), has_children=True),
        Layer("parquet", partial(draw_parquet, mutant), needs="pyarrow"),
        # Its time is that of requests.
        Layer("stores", draw_store, has_children=True, needs="s3fs"),
    )
}
