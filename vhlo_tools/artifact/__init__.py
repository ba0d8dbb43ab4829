"""Portable artifacts and the files that contain them, without MLIR."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.artifact.aliases import matching_calls
    from vhlo_tools.artifact.artifact import Artifact, Making, non_default_options, other_dialects
    from vhlo_tools.artifact.comparison import diff_artifacts
    from vhlo_tools.artifact.constants import (
        Constant,
        Form,
        StoredTensor,
        element_named,
        grouped_constants,
        list_constants,
        numpy_name,
        pack,
    )
    from vhlo_tools.artifact.differences import DIFFERENCE_KINDS, Describer, Difference, DifferenceKind, Differences
    from vhlo_tools.artifact.entry_function import EntryFunction, devices_of, functions_in, without_entry
    from vhlo_tools.artifact.externalization import Externalized, Moved, Provenance, externalize
    from vhlo_tools.artifact.extraction import LARGEST_SUM, Extracted, TensorFile, extract, read_tensors, write_tensors
    from vhlo_tools.artifact.inspection import NOT_WRITTEN, Line, inspect_bytes, inspect_folder, outline, outline_of
    from vhlo_tools.artifact.inventory import Function
    from vhlo_tools.artifact.jax_container import JaxContainer, container_findings, first_writer
    from vhlo_tools.artifact.manifest import ConstantDigest, Manifest, ManifestDifference, Signature, measured
    from vhlo_tools.artifact.manifest_files import (
        ManifestCheck,
        ManifestChoice,
        ManifestState,
        check_manifest,
        check_source,
        find_manifest,
        manifest_finding,
        manifest_place,
        require_manifest,
        save_artifact,
        signature_place,
        write_with_manifest,
    )
    from vhlo_tools.artifact.restoration import restore
    from vhlo_tools.artifact.retargeting import retarget_file, with_plain_locations
    from vhlo_tools.artifact.signing import CertificateSigner, KeySigner, Verifier, sign, verify_signature
    from vhlo_tools.artifact.stand_ins import STAND_IN, hide_newer_ops, op_of, show_newer_ops
else:
    __getattr__, __dir__ = lazy_exports(__name__)
