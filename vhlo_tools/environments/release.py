"""A release of a package, as a requirement of exactly one version."""

from __future__ import annotations

from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from vhlo_tools.environments.packages import PACKAGES, Package
from vhlo_tools.errors import ReleaseEnvironmentError
from vhlo_tools.records import dataclass

#: Built against numpy 1, older ones import nothing under numpy 2, yet do not say so.
_FIRST_JAXLIB_FOR_NUMPY_2: Final = Version("0.4.26")


@dataclass(frozen=True, slots=True)
class PackageRelease:
    package: str  # in canonical form, such as ``torch-mlir``
    version: Version

    @classmethod
    def parse(cls, text: str) -> PackageRelease:
        """Parse a requirement of exactly one release, such as ``jaxlib==0.4.31``."""
        try:
            requirement = Requirement(text)
            (specifier,) = requirement.specifier
            if specifier.operator != "==" or requirement.extras or requirement.marker or requirement.url:
                raise ValueError
            return cls(canonicalize_name(requirement.name), Version(specifier.version))
        except (InvalidRequirement, ValueError):
            raise ReleaseEnvironmentError(f"{text!r} is not a release such as 'jaxlib==0.4.31'") from None

    @classmethod
    def of_reader(cls, text: str) -> PackageRelease:
        """Accept only packages that read artifacts: nothing else is worth an environment for them."""
        release = cls.parse(text)
        if not release.kind.server:
            known = ", ".join(name for name, package in PACKAGES.items() if package.server)
            raise ReleaseEnvironmentError(f"{release} does not read artifacts: expected a release of {known}")
        return release

    def __str__(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def kind(self) -> Package:
        return PACKAGES.get(self.package, Package(""))

    @property
    def folder_name(self) -> str:
        """The start of the name of its environments; the version of their Python follows."""
        return f"{self.package}-{self.version}"

    @property
    def companions(self) -> list[str]:
        """Requirements of its use that its own metadata lacks."""
        return [each.format(version=self.version) for each in self.kind.companions]

    def requirements(self) -> list[str]:
        """Return the release to install, and bounds that its own metadata lacks."""
        installed = f"{self.kind.installed or self.package}=={self.version}"
        old = self.package in {"jax", "jaxlib"} and self.version < _FIRST_JAXLIB_FOR_NUMPY_2
        return [installed, *self.companions, *(["numpy<2"] if old else [])]

    def overrides(self) -> str:
        """Return requirements that replace those of the packages' metadata, so that unneeded ones are not installed."""
        return "".join(f'{name}; python_version < "3"\n' for name in self.kind.not_needed)
