BooleanV1Attr getNo(OpBuilder& builder) {
  return BooleanV1Attr::get(builder.getContext(), false);
}

KnotV1Attr getLooseKnot(OpBuilder& builder) {
  auto strength = APFloat(0.0);
  return KnotV1Attr::get(builder.getContext(), strength);
}

struct PullOpV1ToV2 : public OpRewritePattern<PullOpV1> {
  LogicalResult matchAndRewrite(PullOpV1 op, PatternRewriter& rewriter) const override {
    auto newOp = rewriter.replaceOpWithNewOp<PullOpV2>(
        op, op->getResultTypes(), op->getOperands(), getLooseKnot(rewriter), /*othersCount=*/0);
    return success();
  }
};
