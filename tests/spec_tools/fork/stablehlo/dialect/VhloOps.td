#ifndef FORK_OPS
#define FORK_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "stablehlo/dialect/VhloDialect.td"

def AnyThing : AnyTypeOf<[AnyType]>;
def AnyValue : AnyAttrOf<[AnyAttr]>;
def Body : Region<CPred<"true">, "any region">;

class Life<string first, string last> {
  string methods = "mlir::vhlo::Version getMinVersion() { return mlir::vhlo::Version(" # !subst(".", ", ", first) # "); }"
      # "mlir::vhlo::Version getMaxVersion() { return mlir::vhlo::Version"
      # !if(!eq(last, "current"), "::getCurrentVersion()", "(" # !subst(".", ", ", last) # ")") # "; }";
}

class VHLO_Op<string name, string first, string last> : Op<VHLO_Dialect, name, []> {
  let extraClassDefinition = Life<first, last>.methods;
}
class VHLO_Type<string cpp, string name, string first> : TypeDef<VHLO_Dialect, cpp> {
  let mnemonic = name;
  let extraClassDeclaration = Life<first, "current">.methods;
}
class VHLO_Attr<string cpp, string name, string first> : AttrDef<VHLO_Dialect, cpp> {
  let mnemonic = name;
  let extraClassDeclaration = Life<first, "current">.methods;
}

// Types

def VHLO_Float32V1 : VHLO_Type<"Float32V1", "f32_v1", "0.9.0">;
def VHLO_ArrayV1 : VHLO_Type<"ShapedV1", "shaped_v1", "0.9.0">;
def VHLO_FibreV1 : VHLO_Type<"FibreV1", "fibre_v1", "0.12.0">;

// Attributes

def VHLO_BooleanV1 : VHLO_Attr<"BooleanV1", "bool_v1", "0.9.0">;
def VHLO_TextV1 : VHLO_Attr<"TextV1", "string_v1", "0.9.0">;
def VHLO_KnotV1 : VHLO_Attr<"KnotV1", "knot_v1", "0.12.0">;

class VHLO_Enum<string name, list<I32EnumAttrCase> cases> : I32EnumAttr<name, name, cases> {
  let genSpecializedAttr = 0;
}
def LeftCase : I32EnumAttrCase<"LEFT", 0>;
def RightCase : I32EnumAttrCase<"RIGHT", 1>;
def UpCase : I32EnumAttrCase<"UP", 2>;
def VHLO_SideV1 : VHLO_Enum<"SideV1", [LeftCase, RightCase, UpCase]>;
def VHLO_SideAttrV1 : EnumAttr<VHLO_Dialect, VHLO_SideV1, "side_v1", []> {
  // A case that is younger than its enum.
  let extraClassDeclaration = [{
    mlir::vhlo::Version getMinVersion() {
      if (getValue() == SideV1::UP) return mlir::vhlo::Version(0, 12, 0);
      return mlir::vhlo::Version(0, 9, 0);
    }
    mlir::vhlo::Version getMaxVersion() { return mlir::vhlo::Version::getCurrentVersion(); }
  }];
}

// Ops

def VHLO_PushOpV1 : VHLO_Op<"push_v1", "0.9.0", "0.10.0"> {
  let arguments = (ins AnyThing:$load, AnyValue:$where);
  let results = (outs AnyThing:$result);
}
def VHLO_PushOpV2 : VHLO_Op<"push_v2", "0.11.0", "current"> {
  let arguments = (ins AnyThing:$load, AnyValue:$where, AnyValue:$gently);
  let results = (outs AnyThing:$result);
}
def VHLO_PullOpV1 : VHLO_Op<"pull_v1", "0.9.0", "0.11.0"> {
  let arguments = (ins AnyThing:$rope);
  let regions = (region Body:$body);
  let results = (outs AnyThing:$result);
}
def VHLO_PullOpV2 : VHLO_Op<"pull_v2", "0.12.0", "current"> {
  let arguments = (ins Variadic<AnyThing>:$ropes, AnyValue:$knot);
  let regions = (region Body:$body, VariadicRegion<Body>:$others);
  let results = (outs Variadic<AnyThing>:$results);
}
def VHLO_ShoveOpV1 : VHLO_Op<"shove_v1", "0.11.0", "current"> {
  let arguments = (ins AnyThing:$load, Variadic<AnyThing>:$tools, AnyValue:$where);
}

#endif
