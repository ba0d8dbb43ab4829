"""Execution of work on many files: in this process, in child processes, on a cluster; no crash loses any."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.executors.batches import in_batches
    from vhlo_tools.executors.cluster import connected
    from vhlo_tools.executors.ordering import waiting_results, work_in_order
    from vhlo_tools.executors.scheduling import work_through
    from vhlo_tools.executors.workers import AnyExecutor, Workers
else:
    __getattr__, __dir__ = lazy_exports(__name__)
