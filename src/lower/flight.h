// Which registers wgmma has while the text being written runs, as far as the text alone tells.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

namespace tessera::lower {

/// Groups of products that are known to be under way at a place of the text, the oldest first. What
/// is not known to be is left out: registers of others may be touched.
class Flight {
 public:
  void product(int32_t registers) { open_.insert(registers); }
  void commit() {
    groups_.push_back(open_);
    open_.clear();
  }
  /// At most `pending` groups are left.
  void wait(std::size_t pending) {
    if (groups_.size() > pending)
      groups_.erase(groups_.begin(),
                    groups_.begin() + static_cast<std::ptrdiff_t>(groups_.size() - pending));
  }
  /// Of two ways that come here, what both have.
  void meet(const Flight& other) {
    const std::size_t n = std::min(groups_.size(), other.groups_.size());
    std::vector<std::set<int32_t>> both(n);
    for (std::size_t i = 1; i <= n; ++i) {
      const auto &a = groups_[groups_.size() - i], &b = other.groups_[other.groups_.size() - i];
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                            std::inserter(both[n - i], both[n - i].begin()));
    }
    groups_ = std::move(both);
    std::set<int32_t> open;
    std::set_intersection(open_.begin(), open_.end(), other.open_.begin(), other.open_.end(),
                          std::inserter(open, open.begin()));
    open_ = std::move(open);
  }
  /// Where a loop begins again, or ends.
  void forget() { *this = {}; }
  [[nodiscard]] bool has(int32_t registers) const {
    return open_.count(registers) != 0 ||
           std::any_of(groups_.begin(), groups_.end(),
                       [&](const auto& g) { return g.count(registers) != 0; });
  }

 private:
  std::vector<std::set<int32_t>> groups_;
  std::set<int32_t> open_;
};

}  // namespace tessera::lower
