#include "check/footprint.h"

#include <algorithm>
#include <map>

namespace tessera::check {
namespace {

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// Ranges in order, those that touch put together.
std::vector<Bytes> merged(std::vector<Bytes> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; });
  std::vector<Bytes> out;
  for (const Bytes& r : ranges) {
    if (!out.empty() && r.begin <= out.back().end)
      out.back().end = std::max(out.back().end, r.end);
    else
      out.push_back(r);
  }
  return out;
}

}  // namespace

std::optional<int64_t> byte_of(const core::Shared& s, const std::vector<int64_t>& at) {
  if (static_cast<int>(at.size()) != s.layout.rank()) return std::nullopt;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] < 0 || at[i] >= product(s.layout.shape().mode(static_cast<int>(i))))
      return std::nullopt;
  return arch::swizzle_of(s.swizzle)(s.at + size_of(s.element) * s.layout.at(at));
}

std::optional<arch::Wgmma> wgmma_of(const core::Issue& issue) {
  static const auto kinds = [] {
    std::map<const arch::Form*, arch::Wgmma> out;
    for (const arch::Wgmma& w : arch::wgmma_kinds()) out.emplace(&w.form(), w);
    return out;
  }();
  const auto found = kinds.find(issue.form);
  if (found == kinds.end()) return std::nullopt;
  arch::Wgmma w = found->second;
  for (const auto& [name, value] : issue.choices)
    if (name == "n") w.n = std::stoll(value);
  return w;
}

std::size_t Footprints::Hash::operator()(const Key& k) const {
  uint64_t h = k.size();
  for (int64_t v : k) h = mixed(h ^ static_cast<uint64_t>(v));
  return h;
}

int Footprints::get(const Key& key, const std::function<std::vector<Bytes>()>& bytes) {
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  const int number = static_cast<int>(footprints_.size());
  footprints_.push_back(merged(bytes()));
  known_.emplace(key, number);
  return number;
}

void Footprints::set_lanes(int footprint, uint64_t which) {
  lanes_[footprint] = which;
}

uint64_t Footprints::lanes(int footprint) const {
  const auto found = lanes_.find(footprint);
  return found == lanes_.end() ? 0 : found->second;
}

uint64_t lanes_of(std::vector<Bytes> by_lane) {
  uint64_t out = by_lane.size();
  for (const Bytes& b : by_lane) {
    out = mixed(out ^ static_cast<uint64_t>(b.begin));
    out = mixed(out ^ static_cast<uint64_t>(b.end));
  }
  std::sort(by_lane.begin(), by_lane.end(),
            [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < by_lane.size(); ++i)
    if (by_lane[i].begin < by_lane[i - 1].end) return 0;
  return out;
}

void Footprints::divide() {
  // Between two neighbouring bounds all bytes are in the same footprints: they are told by a sum of
  // random numbers, one a footprint.
  std::map<int64_t, uint64_t> changes;
  for (std::size_t i = 0; i < footprints_.size(); ++i)
    for (const Bytes& r : footprints_[i]) {
      changes[r.begin] += mixed(i + 1);
      changes[r.end] -= mixed(i + 1);
    }
  std::vector<std::pair<int64_t, int>> segments;  // where one begins, its cell or -1
  std::unordered_map<uint64_t, int> cell_of;
  first_.clear();
  uint64_t now = 0;
  for (const auto& [at, change] : changes) {
    now += change;
    int cell = -1;
    if (now != 0) {
      const auto [place, is_new] = cell_of.emplace(now, static_cast<int>(first_.size()));
      if (is_new) first_.push_back(at);
      cell = place->second;
    }
    segments.emplace_back(at, cell);
  }
  cell_count_ = static_cast<int>(first_.size());
  cells_.assign(footprints_.size(), {});
  for (std::size_t i = 0; i < footprints_.size(); ++i) {
    std::vector<int>& cells = cells_[i];
    for (const Bytes& r : footprints_[i]) {
      auto s = std::lower_bound(segments.begin(), segments.end(), std::pair{r.begin, -1});
      for (; s != segments.end() && s->first < r.end; ++s) cells.push_back(s->second);
    }
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  }
}

std::vector<Bytes> matrix_bytes(const core::Shared& s, std::vector<int64_t> at, int64_t rows,
                                int64_t columns) {
  std::vector<Bytes> out;
  const std::size_t rank = at.size();
  if (rank < 2) return out;
  const int64_t element = size_of(s.element);
  const int64_t row = at[rank - 2], column = at[rank - 1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      at[rank - 2] = row + i;
      at[rank - 1] = column + j;
      if (const std::optional<int64_t> byte = byte_of(s, at)) {
        if (!out.empty() && out.back().end == *byte)
          out.back().end += element;
        else
          out.push_back({*byte, *byte + element});
      }
    }
  return out;
}

}  // namespace tessera::check
