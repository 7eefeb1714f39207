#include "simulate/tags.h"

#include <algorithm>

namespace tessera::simulate {

std::size_t Tags::Hash::operator()(const std::vector<int64_t>& v) const {
  uint64_t h = v.size();
  for (const int64_t x : v) h = (h ^ static_cast<uint64_t>(x)) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 31);
}

TagId Tags::get(const std::vector<int64_t>& carried) {
  const auto [place, is_new] = known_.try_emplace(carried, static_cast<TagId>(all_.size()));
  if (is_new) all_.push_back(carried);
  return place->second;
}

TagId Tags::with(TagId of, int name, int64_t value) {
  std::vector<int64_t> carried = all_[of];
  carried[static_cast<std::size_t>(name)] = value;
  return get(carried);
}

TagId Tags::join(TagId a, TagId b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const uint64_t key = static_cast<uint64_t>(std::min(a, b)) << 32 | std::max(a, b);
  const auto [place, is_new] = joined_.try_emplace(key, 0);
  if (!is_new) return place->second;
  std::vector<int64_t> out = all_[a];
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int64_t other = all_[b][i];
    if (out[i] == none)
      out[i] = other;
    else if (other != none && other != out[i])
      out[i] = several;
  }
  return joined_[key] = get(out);
}

}  // namespace tessera::simulate
