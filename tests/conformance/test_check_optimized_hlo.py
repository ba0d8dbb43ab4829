"""What compilers of accelerators make of random programs is read, and computes what the programs do."""

from __future__ import annotations

from collections import Counter

import pytest
from check_optimized_hlo import ended
from engine_sweep import draw_program

from vhlo_tools.api.releases import install_releases
from vhlo_tools.releases import ReleaseProcess

pytestmark = pytest.mark.releases

#: Programs of seed 0 whose result the TPU's compiler reverses in its own configuration, or has ops newer than jaxlib's.
UNREAD = {"libtpu==0.0.52@v5e": {13, 21, 48}}


@pytest.mark.parametrize("release", ["libtpu==0.0.52@v5e", "jax-cuda13-pjrt==0.12.0.1@h100"])
def test_optimized_programs_compute_the_same(release: str) -> None:
    install_releases([release])
    counts = Counter[str]()
    with ReleaseProcess(release) as process:
        for number in range(50):
            how, why = ended(draw_program(0, number), process)
            counts[how] += 1
            assert how != "different", f"--only {number}"
            assert (how == "unread") == (number in UNREAD.get(release, ())), f"--only {number}: {why}"
    assert counts["equal"] >= 25, counts
