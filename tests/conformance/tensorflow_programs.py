"""Functions of TensorFlow as people write and save them: exported, moved to the oldest version, run, compared.

`python tests/conformance/tensorflow_programs.py [--only REGEX]`, in the environment of
`scripts/frontends.py tensorflow`. Prints what became of each; the exit code is 1 if one differs, or is refused
otherwise than `REFUSED` says.
"""

from __future__ import annotations

import sys
from typing import Final

from framework_programs import main
from tensorflow_program_cases import functions, modules  # noqa: F401 - they add their cases
from tensorflow_program_cases.registry import CASES

#: What the messages of those that are refused say.
REFUSED: Final[dict[str, str]] = {
    "image: resized by area": "ResizeArea",
    "image: resized with antialiasing": "ScaleAndTranslate",
    "image: drawn boxes": "DrawBoundingBoxesV2",
    "image: combined suppression": "CombinedNonMaxSuppression",
    "image: decoded": "EncodeJpeg",
    "image: glimpses": "ExtractGlimpseV2",
    "linalg: LU": "Lu",
    "linalg: LU, solved": "Lu",
    "linalg: square root": "MatrixSquareRoot",
    "linalg: tridiagonal": "TridiagonalSolve",
    "linalg: eigenvalues of no symmetry": "Eig",
    "segments: sorted": "SegmentMean",
    "indices: Euclidean norms": "EuclideanNorm",
    "indices: histogram": "HistogramFixedWidth",
    "indices: counted": "DenseBincount",
    "indices: sets of values": "UniqueWithCounts",
    "indices: padded rows": "RaggedTensorToTensor",
    "nn: pool with places": "MaxPoolWithArgmax",
    "nn: sampled losses": "LogUniformCandidateSampler",
    "nn: bags of embeddings": "SparseSegmentMean",
    "nn: quantized": "QuantizeV2",
    "random: shuffled": "StatelessShuffle",
    "random: gamma": "StatelessRandomGammaV3",
    "strings: split": "AsString",
    "strings: hashed": "AsString",
    "strings: shown": "StringFormat",
    "tables: looked up": "LookupTableFindV2",
    "data: reduced": "TensorSliceDataset",
    "saved: encode, and count, as constants": "AssignAddVariableOp",
    "saved: examples of strings": "tensor of type string",
}


if __name__ == "__main__":
    sys.exit(main(CASES, REFUSED, __doc__))
