"""What JAX's primitives compute, on both engines: a share of tests/conformance/numerical_suite.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).parents[2] / "conformance" / "numerical_suite.py"


def run_suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SUITE, *arguments], capture_output=True, text=True, check=False)


def test_both_engines_agree_with_jax_or_refuse_by_name() -> None:
    done = run_suite("--quick")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    *_, everything, last = done.stdout.splitlines()
    assert everything.startswith("all ")
    assert last.endswith(" programs; 0 outcomes are unexpected")
    assert int(last.split()[0]) >= 350


def test_what_is_not_listed_and_what_agrees_though_it_is_listed_are_told(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("""
[[allowance]]
ulp = 4
reason = "rounding"

[[known]]
names = ["approx_top_k_*"]
engine = "xla"
outcome = "differs"
reason = "so it is said"
""")
    done = run_suite("--only", "approx_top_k_large_False_max_True_op_bfloat16_32_", "--rules", str(rules))
    assert done.returncode == 1, done.stderr
    assert "on reference refused: " in done.stdout
    assert "cannot run stablehlo.custom_call" in done.stdout
    assert "on xla agrees, but is listed otherwise: so it is said" in done.stdout
