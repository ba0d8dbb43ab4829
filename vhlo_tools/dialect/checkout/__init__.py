"""``vhlo spec import``: read the definition of VHLO from a checkout of openxla/stablehlo or of a fork."""

from vhlo_tools.dialect.checkout.surveying import survey_checkout
from vhlo_tools.dialect.checkout.tablegen import TableGen, find_tablegen

__all__ = ["TableGen", "find_tablegen", "survey_checkout"]
