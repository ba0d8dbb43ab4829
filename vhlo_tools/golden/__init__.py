"""Golden records: artifacts with inputs and their outputs, to be replayed with the installed library."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.golden.record import Record, StoredArray, read_record, records_in, write_record
    from vhlo_tools.golden.replaying import Replayed, replay, replay_folder
else:
    __getattr__, __dir__ = lazy_exports(__name__)
