"""Models of torch as people write and export them: exported by `auto`, moved to the oldest version, run, compared.

`python tests/conformance/torch_programs.py [--only REGEX]`, in the environment of `scripts/frontends.py torch`, with
torchvision, timm and transformers for the models of these. Prints what became of each; the exit code is 1 if one
differs, or is refused otherwise than `REFUSED` says.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Final

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from framework_programs import main
from torch_program_cases import forms, language, perception, science  # noqa: F401 - they add their cases
from torch_program_cases.registry import CASES

_ASKED: Final = "what is run may not depend on the values of tensors"
#: What the messages of those that are refused say.
REFUSED: Final[dict[str, str]] = {
    "vision: equalized histogram": "aten.bincount.default",
    "audio: CTC loss": "aten._ctc_loss",
    "audio: CTC, greedy": "aten.unique_consecutive.default",
    "text: translator that looks at its mask": f"_detect_is_causal_mask of torch asks for it; {_ASKED}",
    "graph: sparse matrix": "aten._sparse_addmm.default",
    "generative: density, with checks": "validate_args=False omits the check",
    "decisions: a draw": "it draws random numbers: pass them as an input",
    "series: packed": "zeros(): argument 'size' failed",
    "algebra: least squares": "aten.linalg_lstsq.default",
    "algebra: covariance": "aten.equal.default",
    "quantized: dynamic, of torch.ao": "it holds a torch.classes.quantized.LinearPackedParamsBase",
    "open length: LSTM": "Constraints violated (length)",
    "loss of a Gaussian": f"gaussian_nll_loss of torch asks for it; {_ASKED}",
    "transformers RwkvModel": "changes its weights",
    "transformers EncodecModel": _ASKED,
}
#: Those of which torch.export says no line.
LINELESS: Final = ("transformers RwkvModel", "quantized: dynamic, of torch.ao", "open length: LSTM")
torch.distributions.Distribution.set_default_validate_args(False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(CASES, REFUSED, __doc__, LINELESS))
