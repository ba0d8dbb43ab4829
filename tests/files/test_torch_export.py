"""Files of torch.export, of which everything here is told without torch."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.forked_python import COMMAND
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.files import Kind, ViewFile, decode_torch_export, recognise

FILE = EXAMPLES / "torch_classifier.pt2"

# None in sys.modules is how Python marks what is not to be imported.
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = sys.modules["torch_mlir"] = None
from vhlo_tools.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def zipped(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_view_is_read_as_a_file() -> None:
    file = ViewFile(b"abcdef")
    assert (file.tell(), file.read(2), file.tell(), file.read()) == (0, b"ab", 2, b"cdef")
    assert (file.seek(-1, io.SEEK_END), file.read(), file.seek(1), file.seek(1, io.SEEK_CUR)) == (5, b"f", 1, 2)


def test_the_example() -> None:
    data = FILE.read_bytes()
    assert recognise(data) is recognise(memoryview(data)) is Kind.TORCH_EXPORT
    # 8 and 16 channels, each with four vectors of batch normalization, and so on; counted by torch itself.
    assert inspect_bytes(data, "x") == {
        "kind": "torch-export",
        "size": len(data),
        "archive_version": "0",
        "models": ("model",),
        "graph_bytes": 52547,
        "weights": 22,
        "weight_bytes": 10552,
        "constant_bytes": 0,
    }


def test_the_layout_of_old_releases() -> None:
    entries = {"version": b"8.1", "serialized_exported_program.json": b"{}", "serialized_state_dict.pt": b"123"}
    data = zipped(entries)
    assert recognise(data) is Kind.TORCH_EXPORT
    told = decode_torch_export(data)
    assert (told.archive_version, told.weights, told.weight_bytes, told.graph_bytes) == ("8.1", None, 3, 2)


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"a.npy": b"\x93NUMPY"},
        {"config.json": b"{}", "model.weights.h5": b""},
        {"model/archive_format": b"pt2"},
        {"archive/data.pkl": b"", "archive/version": b"3"},
    ],
)
def test_other_zips(entries: dict[str, bytes]) -> None:
    with pytest.raises(vt.InvalidProgramError, match="no known program format: .* or a torch.export file"):
        recognise(zipped({"first": b"", **entries} if entries else {"first": b""}), "x")


def test_only_small_entries_are_read() -> None:
    """A zip may announce gigabytes in a few bytes."""
    entries = {"a/archive_format": b"pt2", "a/models/model.json": b"{}", "a/archive_version": b"0" * (64 << 20)}
    data = zipped(entries, zipfile.ZIP_DEFLATED)
    assert len(data) < 100_000
    assert decode_torch_export(data).archive_version == "0" * 64


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_files(damage: str) -> None:
    """Recognised and described, or refused by an error of this package; nothing else comes out."""
    data, dice = FILE.read_bytes(), random.Random(3)
    directory = data.index(b"PK\x01\x02")
    outcomes = set()
    for _ in range(400):
        broken = bytearray(data)
        if damage == "cut":
            del broken[dice.randrange(len(broken)) :]
        for _ in range(3 * (damage == "flipped")):
            broken[dice.randrange(directory, len(broken))] = dice.randrange(256)
        try:
            inspect_bytes(bytes(broken), "x")
            outcomes.add("described")
        except vt.VhloToolsError:
            outcomes.add("refused")
    assert outcomes == ({"refused"} if damage == "cut" else {"described", "refused"})


@pytest.mark.parametrize("command", ["serialize {file} -o {out}", "check {file} --target 1.0.0", "run {file}"])
def test_without_torch(command: str, tmp_path: Path) -> None:
    words = [word.format(file=FILE, out=tmp_path / "out.mlirbc") for word in command.split()]
    result = warm_python().run(WITHOUT_TORCH, *words)
    assert result.returncode == 2
    said = result.stdout if words[0] == "check" else result.stderr
    expected = "needs torch, which is not installed: pip install '.[torch]' in a clone of vhlo_tools"
    assert expected in " ".join(said.split())
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_inspect_needs_no_torch() -> None:
    result = warm_python().run(WITHOUT_TORCH, "inspect", str(FILE))
    assert (result.returncode, result.stderr) == (0, "")
    assert "model exported by torch.export, 78,339 bytes\n" in result.stdout
    assert "22 weights, 10,552 bytes\n" in result.stdout


def test_the_integration_imports_without_torch() -> None:
    code = """
import sys
sys.modules["torch"] = sys.modules["torch_mlir"] = None
import vhlo_tools as vt
from vhlo_tools.integrations.torch import export
try:
    export(None)
except vt.MissingExtraError as error:
    print(isinstance(error, ImportError), error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.startswith("True exporting a PyTorch program needs torch, which is not"), result.stderr


def test_weights_apart_of_what_is_no_framework_s(tmp_path: Path) -> None:
    out = tmp_path / "out.mlirbc"
    words = ["serialize", str(EXAMPLES / "saxpy.mlir"), "--weights", str(tmp_path / "w.safetensors"), "-o", str(out)]
    result = warm_python().run(COMMAND, *words)
    assert result.returncode == 2
    assert "saxpy.mlir is not a framework's program" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("most", [0xFFFF, 1000])
def test_a_zip_of_very_many_entries(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory takes ten times its size in memory, and is refused before it is read; its end has two forms."""
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", most)
    # Long names make as large a directory of fewer entries.
    entries = {f"model/data/weights/{number:06}{'x' * 1000}": b"" for number in range(8_000)}
    small = {"model/archive_format": b"pt2", "model/models/model.json": b"{}"}
    data = zipped({**small, **entries})
    assert (b"PK\6\6" in data) == (most < len(entries))

    message = "a zip has a directory of more than 8388608 bytes, which is the limit"
    # What looks like another record of the end, in the version of the program that wrote it.
    decoy = bytearray(data)
    if (at := decoy.rfind(b"PK\6\6")) >= 0:
        decoy[at + 12 : at + 16] = b"PK\6\6"
    for made in (data, bytes(decoy)):
        for act in (recognise, lambda data: inspect_bytes(data, "x"), decode_torch_export):
            with pytest.raises(vt.MalformedArtifactError, match=message):
                act(made)
    assert decode_torch_export(zipped({**small, "model/archive_version": b"0"})).archive_version == "0"


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_entry_that_unpacks_without_end(compression: int) -> None:
    """zipfile unpacks what it reads of such an entry whole, however little was asked for."""
    entries = {"model/archive_format": b"pt2", "model/models/model.json": b"{}"}
    data = zipped({**entries, "model/archive_version": bytes(1 << 27)}, compression)
    assert len(data) < 1 << 16
    tracemalloc.start()
    tracemalloc.reset_peak()
    with pytest.raises(vt.MalformedArtifactError, match="expected a stored or a deflated entry, as torch writes them"):
        inspect_bytes(data, "x")
    assert tracemalloc.get_traced_memory()[1] < 1 << 23
    tracemalloc.stop()


def test_a_deflated_entry_is_read_in_pieces() -> None:
    entries = {"model/archive_format": b"pt2", "model/models/model.json": b"{}"}
    data = zipped({**entries, "model/archive_version": b"0" * (1 << 27)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    tracemalloc.reset_peak()
    assert decode_torch_export(data).archive_version == "0" * 64
    assert tracemalloc.get_traced_memory()[1] < 1 << 23
    tracemalloc.stop()


def test_a_damaged_entry() -> None:
    entries = {"model/archive_format": b"pt2", "model/models/model.json": b"{}", "model/archive_version": b"0" * 500}
    data = bytearray(zipped(entries, zipfile.ZIP_DEFLATED))
    at = data.index(b"archive_version") + len("archive_version")
    for place in range(at, at + 24):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        try:
            decode_torch_export(bytes(broken))
        except vt.MalformedArtifactError as error:
            assert "a zip is damaged" in str(error)
    broken = bytearray(data)
    broken[at : at + 12] = b"\xff" * 12
    with pytest.raises(vt.MalformedArtifactError, match="a zip is damaged"):
        decode_torch_export(bytes(broken))
