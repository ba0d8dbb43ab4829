"""Manifests: descriptions of artifact files, written beside them, so that no change of the bytes goes unnoticed."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.manifests.checking import (
        ManifestCheck,
        ManifestChoice,
        ManifestState,
        check_manifest,
        check_source,
        manifest_finding,
        require_manifest,
    )
    from vhlo_tools.manifests.contents import ConstantDigest, Signature
    from vhlo_tools.manifests.manifest import Manifest, ManifestDifference, measured
    from vhlo_tools.manifests.placing import find_manifest, manifest_place, signature_place, write_with_manifest
    from vhlo_tools.manifests.signing import CertificateSigner, KeySigner, Verifier, sign, verify_signature
else:
    __getattr__, __dir__ = lazy_exports(__name__)
