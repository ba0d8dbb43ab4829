"""Released packages in environments of their own, and processes there that read, write and run artifacts."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.environments.downloads import Download, download_of, oldest_python, released_on
    from vhlo_tools.environments.inside.arrays import pack_arrays, unpack_arrays
    from vhlo_tools.environments.interpreters import find_interpreters
    from vhlo_tools.environments.making import Say, environment, environments_folder, made_environment, silent
    from vhlo_tools.environments.packages import PACKAGES, Package
    from vhlo_tools.environments.process import Answer, ReleaseProcess, Step
    from vhlo_tools.environments.release import PackageRelease
    from vhlo_tools.environments.uv import clean_environment, run_uv
else:
    __getattr__, __dir__ = lazy_exports(__name__)
