include "mlir/IR/OpBase.td"
include "mlir/IR/PatternBase.td"
include "stablehlo/dialect/VhloOps.td"

def Fork_No : NativeCodeCall<"getNo($_builder)">;
def Fork_IsNo : AttrConstraint<CPred<"isNo($_self)">, "no">;

def PushUpgrade : Pat<
    (VHLO_PushOpV1:$src $load, $where),
    (VHLO_PushOpV2:$dst $load, $where, (Fork_No))>;
def PushDowngrade : Pat<
    (VHLO_PushOpV2:$src $load, $where, Fork_IsNo:$gently),
    (VHLO_PushOpV1:$dst $load, $where)>;
