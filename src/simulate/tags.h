// What elements carry under names: nothing, one value, or several that met (docs/core.md). All that
// one element carries is one number; 0 carries nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

namespace tessera::simulate {

using TagId = uint32_t;

class Tags {
 public:
  static constexpr int64_t none = std::numeric_limits<int64_t>::min(), several = none + 1;

  explicit Tags(std::size_t names) { get(std::vector<int64_t>(names, none)); }

  /// The number of these: a value, `none` or `several` a name.
  TagId get(const std::vector<int64_t>& carried);
  [[nodiscard]] int64_t under(TagId of, int name) const {
    return all_[of][static_cast<std::size_t>(name)];
  }
  TagId with(TagId of, int name, int64_t value);
  /// Of what is computed of both: a value that both carry, or that one alone does, stays.
  TagId join(TagId a, TagId b);

 private:
  struct Hash {
    std::size_t operator()(const std::vector<int64_t>& v) const;
  };
  std::vector<std::vector<int64_t>> all_;
  std::unordered_map<std::vector<int64_t>, TagId, Hash> known_;
  std::unordered_map<uint64_t, TagId> joined_;
};

}  // namespace tessera::simulate
