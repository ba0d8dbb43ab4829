"""Export of frameworks' programs, each behind an extra of the package and imported only when it is used.

:mod:`~vhlo_tools.integrations.jax`, :mod:`~vhlo_tools.integrations.torch`, :mod:`~vhlo_tools.integrations.tensorflow`
and :mod:`~vhlo_tools.integrations.keras` can be imported without their framework; their functions raise
:class:`~vhlo_tools.errors.MissingExtraError` if it is missing.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.integrations.exported_model import ExportedModel
else:
    __getattr__, __dir__ = lazy_exports(__name__)
