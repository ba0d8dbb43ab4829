enum AttributeCode {
  ///   BooleanV1Attr { value: varint }
  kBooleanV1Attr = 2,
  kTextV1Attr = 4,
  kSideV1Attr = 5,
  // Retired: kThreadV1Attr = 6,
  kKnotV1Attr = 7,
};

enum TypeCode {
  kFloat32V1Type = 1,
  kShapedV1Type = 2,
  kShapedV1TypeWithFrame = 3,
  kFibreV1Type = 8,
};

void ForkBytecode::write(BooleanV1Attr attr, DialectBytecodeWriter& writer) const {
  writer.writeVarInt(fork_encoding::kBooleanV1Attr);
  writer.writeVarInt(attr.getValue() ? 1 : 0);
}

void ForkBytecode::write(TextV1Attr attr, DialectBytecodeWriter& writer) const {
  writer.writeVarInt(fork_encoding::kTextV1Attr);
  writer.writeOwnedString(attr.getValue());
}

void ForkBytecode::write(SideV1Attr attr, DialectBytecodeWriter& writer) const {
  writer.writeVarInt(fork_encoding::kSideV1Attr);
  hlo::bytecode::writeEnumAttribute<SideV1>(attr, writer);
}

KnotV1Attr ForkBytecode::readKnotV1Attr(DialectBytecodeReader& reader) const {
  FailureOr<APFloat> strength = reader.readAPFloatWithKnownSemantics(APFloat::IEEEdouble());
}

void ForkBytecode::write(KnotV1Attr attr, DialectBytecodeWriter& writer) const {
  LOG_WRITE_CALL;
  writer.writeVarInt(fork_encoding::kKnotV1Attr);
  writer.writeType(attr.getKind());
  writer.writeAPFloatWithKnownSemantics(attr.getStrength());
  if (attr.getLastTurn()) {
    writer.writeVarInt(1);
    writer.writeAttribute(attr.getLastTurn());
  } else {
    writer.writeVarInt(0);
  }
  writer.writeList(attr.getEnds(), [&](auto pair) {
    writer.writeAttribute(pair.first);
    writer.writeAttribute(pair.second);
  });
  writer.writeList(attr.getTurns(), [&](int64_t turn) { writer.writeSignedVarInt(turn); });
}

void ForkBytecode::write(ShapedV1Type type, DialectBytecodeWriter& writer) const {
  if (Attribute frame = type.getFrame()) {
    writer.writeVarInt(fork_encoding::kShapedV1TypeWithFrame);
    writer.writeAttribute(frame);
  } else {
    writer.writeVarInt(fork_encoding::kShapedV1Type);
  }
  writer.writeSignedVarInts(type.getShape());
  writer.writeType(type.getElementType());
}

LogicalResult ForkBytecode::writeType(Type type, DialectBytecodeWriter& writer) const {
  return TypeSwitch<Type, LogicalResult>(type)
      .Case([&](Float32V1Type) { return writer.writeVarInt(fork_encoding::kFloat32V1Type), success(); })
      .Case([&](FibreV1Type) { return writer.writeVarInt(fork_encoding::kFibreV1Type), success(); })
      .Default([&](Type) { return failure(); });
}
