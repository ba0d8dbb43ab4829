"""What jax.export files are made of.

The tables are those of ``jax/_src/export/serialization.fbs`` in jax-ml/jax, from jax 0.4.30 to 0.12.0.1, of which each
release adds fields at the end and tables, and moves none. ``serialization.py`` beside it says what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vhlo_tools.artifact.flatbuffer import Layout

__all__ = ["DTYPES", "JAX_EXPORT"]

JAX_EXPORT: Final = Layout(
    "jax.export",
    {
        "PyTreeDef": (
            "kind: i8",
            "children: [PyTreeDef]",
            "children_names: [string]",
            # In jax 0.4.38, not yet in 0.4.30.
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
            # In jax 0.9.2, not yet in 0.7.2.
            "nr_devices: u32",
            # In jax 0.10.2, not yet in 0.9.2: each aval, mesh and sharding once, then who has which.
            "unique_avals: [AbstractValue]",
            "unique_abstract_meshes: [AbstractMesh]",
            "unique_named_shardings: [NamedSharding]",
            "in_avals_idxs: [u32]",
            "out_avals_idxs: [u32]",
            "in_shardings_idxs: [u32]",
            "out_shardings_idxs: [u32]",
            # In jax 0.12.0.1, not yet in 0.10.2.
            "jax_version: string",
        ),
    },
)

#: The enum ``DType``, spelled as jax prints the types of arguments.
DTYPES: Final[Mapping[int, str]] = dict(
    enumerate(
        (
            *("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128", "bf16"),
            *("i4", "u4", "f8_e4m3b11fnuz", "f8_e4m3fn", "f8_e4m3fnuz", "f8_e5m2", "f8_e5m2fnuz", "float0"),
            *("f8_e4m3", "f8_e3m4", "f8_e8m0fnu", "f4_e2m1fn", "key<fry>", "key<rbg>", "key<urbg>"),
        )
    )
)
