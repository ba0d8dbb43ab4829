"""The packages whose releases read or write artifacts, and what an environment of one needs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """What an environment of a release of a package needs.

    Attributes:
        check: Python code that runs in every whole environment.
        server: The script of ``inside/`` that reads, writes and runs artifacts there.
        writes: Whether it can write artifacts.
        installed: The package to install in its place, of the same version: a build of it for a machine without GPU.
        companions: Requirements that the release does not have itself, and this project has of it; ``{version}``
            stands for its version.
        not_needed: Large requirements of the release that nothing here touches.
    """

    check: str
    server: str = ""
    writes: bool = True
    installed: str = ""
    companions: tuple[str, ...] = ()
    not_needed: tuple[str, ...] = ()


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
