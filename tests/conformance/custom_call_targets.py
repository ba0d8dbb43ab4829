"""Names of custom-call targets that may not run without a handler.

Names from the sources of openxla/xla (its passes, thunks and the targets that it reserves), of jax-ml/jax and of
tensorflow/tensorflow, names of functions that the process has, and some that are nearly names of known targets.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
AllocateBuffer approxtopk AssumeGatherIndicesInBound CallInliner CallTarget Cholesky CompactWyHelper
CreateBuffer CrossReplicaSum DynamicGte EigenMatMulF32 GlobalToLocalShape HostExecute InspectSharding KeepAlive
LuDecomposition MultiMeshTask NopReturnToken PadToStatic PartialReduce Pin RaggedAllToAll ResizeBicubic
ResizeBilinear ResizeBilinearGrad ResizeNearest ResizeNearestGrad SliceToDynamic TOPK TopKWithIndices
TriangularSolve Tuple Unpin X64Combine X64SplitHigh X64SplitLow __builtin$SwapIn __builtin$SwapOut
__cub$DeviceRadixSort __cublas$gemm __cublas$lt$matmul __cudnn$convForward __cusolver$cholesky __custom_fusion
__gpu$TopK __gpu$xla.gpu.triton __onednn$convolution __onednn$layernorm __onednn$matmul __onednn$matmul_reorder
__onednn$softmax __triton __xla_cpu_runtime_EigenMatMulF32 __xla_cpu_runtime_PrintfToStderr
__xla_cpu_runtime_TopKF32 abort async-start blas_strsm call call-start check.expect_almost chlo.erf chlo.top_k
composite cosf cpu_csr_sparse_dense_ffi cu_lu_pivots_to_permutation cu_threefry2x32 cu_threefry2x32_ffi
cusolver_syevd_ffi cusparse_gtsv2_ffi eigh exit fusion hipsolver_geqrf_ffi hipsolver_syevd_ffi lapack_sgesv_ffi
lapack_sgetrf lapack_sgetrf_ffi_ lapack_ssyevd lapack_xgetrf_ffi lapack_zgeqrf local_xla.sdy.GlobalToLocalShape
malloc memcpy mhlo.add mhlo.copy mhlo.custom_call mhlo.dot mhlo.nonsense mhlo.ragged_dot mosaic_gpu_v2 puts qr
shape_assertion sin stablehlo.add stablehlo.dynamic_approx_top_k stablehlo.dynamic_reduce_window
stablehlo.dynamic_rng_bit_generator stablehlo.dynamic_top_k tf.call_tf_function topk tpu_custom_call
xla.fingerprint xla.sdy.GlobalToLocalShape xla.sdy.LocalToGlobalShape xla.sdy.MaterializeShardings
xla.sdy.PropagationBarrier xla.sdy.ShardingGroup xla_buffer_python_cpu_callback
xla_ffi_partitioned_python_cpu_callback xla_ffi_python_cpu_callback xla_launch xla_pipeline_marker
xla_python_cpu_callback xla_python_gpu_callback zero
"""

UNKNOWN: Final = tuple(_NAMES.split())
