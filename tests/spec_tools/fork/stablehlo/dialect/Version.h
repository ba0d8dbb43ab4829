// A small fork of VHLO for tests of `vhlo spec import`, written for them.
namespace mlir {
namespace vhlo {

class Version {
 public:
  static Version getCurrentVersion() { return Version(0, 12, 3); }
  static Version getMinimumVersion() { return Version(0, 9, 0); }

  FailureOr<int64_t> getBytecodeVersion() const;
  Version(int64_t major, int64_t minor, int64_t patch);
};

}  // namespace vhlo
}  // namespace mlir
