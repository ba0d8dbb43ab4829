"""The schema of jax.export files.

The tables are those of ``jax/_src/export/serialization.fbs`` in jax-ml/jax, from jax 0.4.30 to 0.12.0.1; each release
adds tables, and fields at the end, and moves none. ``serialization.py`` beside it defines their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vhlo_tools.formats.flatbuffer import Layout

JAX_EXPORT: Final = Layout(
    "jax.export",
    {
        "PyTreeDef": (
            "kind: i8",
            "children: [PyTreeDef]",
            "children_names: [string]",
            # Present in jax 0.4.38, not yet in 0.4.30.
            "custom_name: string",
            "custom_auxdata: [u8]",
        ),
        "AbstractDevice": ("device_kind: string", "num_cores: u32", "platform: string"),
        "AbstractMesh": (
            "axis_sizes: [u32]",
            "axis_names: [string]",
            "axis_types: [i8]",
            "abstract_device: AbstractDevice",
        ),
        "PartitionSpecOneAxis": ("axes: [string]",),
        "PartitionSpec": ("partitions: [PartitionSpecOneAxis]", "reduced: [string]", "unreduced: [string]"),
        "NamedSharding": (
            "mesh: AbstractMesh",
            "spec: PartitionSpec",
            "memory_kind: string",
            "abstract_mesh_idx: u32",
        ),
        "AbstractValue": ("kind: i8", "shape: [string]", "dtype: i8", "memory_space: i8"),
        "Sharding": ("kind: i8", "hlo_sharding_proto: [u8]", "named_sharding: NamedSharding"),
        "Effect": ("type_name: string",),
        "DisabledSafetyCheck": ("kind: i8", "custom_call_target: string"),
        "Exported": (
            "serialization_version: u16",
            "function_name: string",
            "in_tree: PyTreeDef",
            "in_avals: [AbstractValue]",
            "out_tree: PyTreeDef",
            "out_avals: [AbstractValue]",
            "nr_devices_short: i16",
            "in_shardings: [Sharding]",
            "out_shardings: [Sharding]",
            "platforms: [string]",
            "ordered_effects: [Effect]",
            "unordered_effects: [Effect]",
            "disabled_checks: [DisabledSafetyCheck]",
            "mlir_module_serialized: [u8]",
            "calling_convention_version: u16",
            "module_kept_var_idx: [u16]",
            "uses_global_constants: bool",
            "vjp: Exported",
            # Present in jax 0.9.2, not yet in 0.7.2.
            "nr_devices: u32",
            # Present in jax 0.10.2, not yet in 0.9.2: each aval, mesh and sharding once, then their indices.
            "unique_avals: [AbstractValue]",
            "unique_abstract_meshes: [AbstractMesh]",
            "unique_named_shardings: [NamedSharding]",
            "in_avals_idxs: [u32]",
            "out_avals_idxs: [u32]",
            "in_shardings_idxs: [u32]",
            "out_shardings_idxs: [u32]",
            # Present in jax 0.12.0.1, not yet in 0.10.2.
            "jax_version: string",
        ),
    },
)

#: The enum ``DType``, in the syntax in which jax prints the types of arguments.
DTYPES: Final[Mapping[int, str]] = dict(
    enumerate(
        (
            *("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128", "bf16"),
            *("i4", "u4", "f8_e4m3b11fnuz", "f8_e4m3fn", "f8_e4m3fnuz", "f8_e5m2", "f8_e5m2fnuz", "float0"),
            *("f8_e4m3", "f8_e3m4", "f8_e8m0fnu", "f4_e2m1fn", "key<fry>", "key<rbg>", "key<urbg>"),
        )
    )
)

#: The enum ``MemorySpace``; absent in files of releases before 0.8.2.
MEMORY_SPACES: Final[Mapping[int, str]] = {1: "device", 2: "host", 3: "any"}
