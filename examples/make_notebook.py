"""Make ``tour.ipynb``: what a notebook shows of a program. Its outputs are left out; the tests run it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

#: What is said, and the code below it.
CELLS = (
    (
        """
        # One program, in a notebook

        `vhlo_tools` shows artifacts, requirements, findings, differences and reports as tables. Run this in the folder
        `examples/`.
        """,
        """
        import vhlo_tools as vt

        artifact = vt.serialize("transformer_step.mlir", target="1.17.0")
        artifact
        """,
    ),
    ("Which versions can read it, and because of what:", "artifact.requirements()"),
    (
        "Why it cannot be written for StableHLO 1.0.0, with the line of source and what to do:",
        'vt.check(artifact, "1.0.0")',
    ),
    ("Its donated arguments, as XLA finds them:", "artifact.aliases()"),
    (
        "For an older consumer, and what changed:",
        """
        older = vt.retarget(artifact, "jaxlib==0.4.31")
        vt.diff(artifact, older)
        """,
    ),
    ("The same results:", "vt.verify(artifact, older)"),
    (
        "What one of its functions does:",
        """
        from IPython.display import SVG

        SVG(vt.draw_graph(artifact, "svg", function="take_along_axis_0"))
        """,
    ),
)


def notebook() -> dict[str, object]:
    """Return the notebook, in the format of Jupyter 4.5."""
    cells: list[dict[str, object]] = []
    for number, (text, code) in enumerate(CELLS):
        said: dict[str, object] = {
            "cell_type": "markdown",
            "id": f"text-{number}",
            "metadata": {},
            "source": _plain(text),
        }
        run = {"cell_type": "code", "id": f"code-{number}", "metadata": {}, "source": _plain(code)}
        cells += [said, {**run, "execution_count": None, "outputs": []}]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _plain(text: str) -> str:
    return textwrap.dedent(text).strip()


if __name__ == "__main__":
    path = Path(__file__).with_name("tour.ipynb")
    path.write_text(json.dumps(notebook(), indent=1) + "\n", encoding="utf-8")
