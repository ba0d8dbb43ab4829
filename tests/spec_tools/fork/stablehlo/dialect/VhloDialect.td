#ifndef FORK_DIALECT
#define FORK_DIALECT

include "mlir/IR/OpBase.td"

def VHLO_Dialect : Dialect {
  let name = "vhlo";
  let cppNamespace = "::mlir::vhlo";
  let description = [{
    Version log:
      0.9.0: The beginning.
      0.11.0: Add `gently` to `push`, and `shove`.
      0.12.0: Let `pull` take several ropes, and introduce `knot` and `fibre`.
  }];
}

#endif
