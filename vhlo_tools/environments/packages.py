"""Packages whose releases read or write artifacts, and the needs of an environment of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    check: str  # Python code that runs in every whole environment
    server: str = ""  # the script of ``inside/`` that serves requests there
    writes: bool = True  # it can write artifacts
    installed: str = ""  # the package to install in its place, of the same version: a build for machines without GPU
    companions: tuple[str, ...] = ()  # requirements of this project beside it; ``{version}`` is its version
    not_needed: tuple[str, ...] = ()  # large requirements that nothing here touches


_TENSORFLOW = "from tensorflow.compiler.mlir.stablehlo import stablehlo"

#: By the canonical name of the package. Any other can be installed too, as it is.
PACKAGES: Final[Mapping[str, Package]] = MappingProxyType(
    {
        # jax.export writes its files with flatbuffers, each release of which lays them out in its own way, and in old
        # releases imports absl.
        "jax": Package("import jax", "serve_mlir.py", companions=("flatbuffers==25.12.19", "absl-py")),
        # msgspec is what the core of this project needs, which tests run there. jaxlib calls scipy for its LAPACK
        # kernels only.
        "jaxlib": Package(
            "from jaxlib.mlir import ir; from jaxlib.mlir.dialects import stablehlo",
            "serve_mlir.py",
            companions=("msgspec",),
            not_needed=("scipy",),
        ),
        "torch-mlir": Package(
            "from torch_mlir import ir; from torch_mlir._mlir_libs import _stablehlo",
            "serve_mlir.py",
            companions=("msgspec", "numpy", "ml_dtypes"),
        ),
        "tensorflow": Package(_TENSORFLOW, "serve_tensorflow.py", installed="tensorflow-cpu"),
        "tensorflow-cpu": Package(_TENSORFLOW, "serve_tensorflow.py"),
        "iree-base-compiler": Package(
            "import iree.compiler, iree.runtime",
            "serve_iree.py",
            writes=False,
            companions=("iree-base-runtime=={version}", "ml_dtypes"),
        ),
    }
)
