"""Files: what they are and what programs they hold; mapping, atomic writes and caches; objects behind URLs."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.files.atomic_writes import (
        MANIFEST_HEAD,
        MANIFEST_SUFFIX,
        SIGNATURE_SUFFIX,
        Folder,
        joined,
        opened_folder,
        place_new,
        remove_manifest,
        write_atomically,
        write_chunks,
        write_in,
    )
    from vhlo_tools.files.caches import NO_CACHE, DigestSet, cache_folder
    from vhlo_tools.files.connections import Listed, Stamp, Traffic, counted, forget_connections
    from vhlo_tools.files.discovery import (
        BACKUPS,
        PROGRAM_SUFFIXES,
        Others,
        list_backups,
        nobody,
        objects_at,
        programs_at,
        said_of_others,
    )
    from vhlo_tools.files.hlo import (
        HloHeader,
        find_hlo_module,
        read_hlo_module,
        read_hlo_text,
        read_snapshot,
        with_long_aliases,
    )
    from vhlo_tools.files.hlo_plain import is_plain_hlo, plain_hlo
    from vhlo_tools.files.jax_export import (
        JaxExport,
        JaxSignature,
        JaxValue,
        decode_jax_export,
        parts_of,
        read_signature,
        replace_modules,
    )
    from vhlo_tools.files.mapping import (
        Chunk,
        FileRange,
        View,
        digest_of,
        join,
        kind_of_file,
        open_regular,
        slices,
        view,
    )
    from vhlo_tools.files.objects import (
        delete_object,
        glob_start,
        is_glob,
        matcher,
        metadata_of,
        objects_under,
        open_object,
        read_object,
        stamp_of,
        write_object,
    )
    from vhlo_tools.files.recognition import (
        ARTIFACT_PRODUCER,
        MAGIC,
        Buffer,
        Kind,
        Source,
        advice_on,
        as_bytes,
        identify,
        is_saved_model,
        lfs_pointer,
        read_bytes,
        recognise,
        unwrapped,
    )
    from vhlo_tools.files.saved_model import SavedSignature, read_saved_model
    from vhlo_tools.files.torch_export import TorchExport, ViewFile, decode_torch_export
    from vhlo_tools.files.urls import Place, Url, is_path, is_url, local_path, place, plain_path
else:
    __getattr__, __dir__ = lazy_exports(__name__)
