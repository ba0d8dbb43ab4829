"""A real Dask cluster for tests: a scheduler and four workers in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.dask_cluster import LocalProcesses, running_cluster

from vhlo_tools.stores import connected


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProcesses]:
    with running_cluster(tmp_path_factory.mktemp("cluster"), 4) as found:
        yield found


@pytest.fixture
def client(cluster: LocalProcesses) -> Iterator[Any]:
    cluster.await_workers(4)
    with connected(cluster.address) as found:
        yield found
