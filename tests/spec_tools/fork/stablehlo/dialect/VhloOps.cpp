LogicalResult verifyConstraint_0_12_0(mlir::Operation* op, Version targetVersion) {
  auto push = cast<PushOpV2>(op);
  // Knots, and the side above.
  if (targetVersion < Version(0, 12, 0) &&
      (isa<vhlo::KnotV1Attr>(push.getWhere()) ||
       mlir::cast<SideV1Attr>(push.getWhere()).getValue() == SideV1::UP)) {
    return failure();
  }
  return success();
}

LogicalResult PushOpV2::validateConstraint(mlir::Operation* op, Version targetVersion) {
  return verifyConstraint_0_12_0(op, targetVersion);
}

LogicalResult ShoveOpV1::validateConstraint(mlir::Operation* op, Version targetVersion) {
  auto shove = cast<ShoveOpV1>(op);
  if (targetVersion < Version(0, 12, 0)) {
    for (Type type : shove.getTools().getTypes()) {
      if (isa<vhlo::FibreV1Type>(type)) return failure();
    }
  }
  return success();
}
