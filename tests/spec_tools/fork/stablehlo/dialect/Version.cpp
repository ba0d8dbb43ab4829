FailureOr<int64_t> Version::getBytecodeVersion() const {
  if (*this < Version(0, 9, 0)) return failure();
  if (*this < Version(0, 11, 0)) return 5;  // not 4
  if (*this <= getCurrentVersion()) return 6;
  return failure();
}
