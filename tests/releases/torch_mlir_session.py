"""A session with torch-mlir as the provider; runs in an environment without jaxlib. argv[1] is this checkout."""

import sys

sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/tests"]

from pathlib import Path

import numpy as np
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.spec import known_versions

EXAMPLES = Path(sys.argv[1]) / "examples"

provider = get_provider()
assert provider.prefix == "torch_mlir", provider
assert provider.lacking == ("chlo", "sdy", "mhlo"), provider.lacking
raw = RawLibrary(provider)

versions = [entry.version for entry in known_versions() if entry.version <= provider.library.current]
compared = 0
for example in ("saxpy.mlir", "transformer_step.mlir", "convnet.bc"):
    data = (EXAMPLES / example).read_bytes()
    source = data.decode() if example.endswith(".mlir") else data
    for version in versions:
        expected = raw.serialize(raw.parse(source), str(version))
        if expected is None:
            try:
                vt.serialize(source, version)
            except vt.DowngradeError as error:
                assert error.findings[0].introduced == vt.Version("1.1.0"), error
            else:
                raise AssertionError(f"{example} was not refused at {version}")
            continue
        artifact = vt.serialize(source, version)
        assert bytes(artifact) == expected or version < vt.Version("1.9.0")
        assert str(vt.deserialize(artifact)) == str(raw.deserialize(expected))
        assert str(vt.deserialize(vt.retarget(artifact, "current"))) == str(vt.deserialize(artifact))
        compared += 1

module = raw.parse((EXAMPLES / "saxpy.mlir").read_text())
before = str(module)
assert vt.serialize(module, "1.0.0").version == vt.Version("1.0.0")
assert str(module) == before

ones = np.ones(4, np.float32)
(result,) = vt.run(module, [np.float32(2), ones, ones])
assert np.array_equal(result, [3, 3, 3, 3])

try:
    vt.serialize(EXAMPLES / "sharded_matmul.mlir")
except vt.InvalidProgramError as error:
    assert "torch_mlir does not have the dialect sdy: use jaxlib.mlir" in str(error), error
else:
    raise AssertionError("a dialect that the provider lacks was parsed")

assert not [name for name in sys.modules if name.startswith("jaxlib")]
print(f"{provider.library.name}: {compared} artifacts compared")
