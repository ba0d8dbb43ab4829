"""The upstream tools ``stablehlo-opt`` and ``stablehlo-translate``, implemented on the bindings.

This package is imported before a process is forked for the work: it loads nothing on import.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.upstream.guard import guarded
    from vhlo_tools.upstream.optimizer import run_opt
    from vhlo_tools.upstream.tool import Streams
    from vhlo_tools.upstream.translator import run_translate
else:
    __getattr__, __dir__ = lazy_exports(__name__)
