"""Recorded programs: artifacts with inputs and the outputs that they had, replayed on today's library."""

from vhlo_tools.golden.record import Record, StoredArray, read_record, records_in, write_record
from vhlo_tools.golden.replay import Replayed, replay

__all__ = ["Record", "Replayed", "StoredArray", "read_record", "records_in", "replay", "write_record"]
