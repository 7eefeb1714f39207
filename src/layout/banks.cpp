#include "layout/banks.h"

#include <algorithm>
#include <bit>
#include <set>

namespace tessera {

int64_t bank_conflicts(const std::vector<int64_t>& addresses, int64_t bytes, Banks banks) {
  const auto words = static_cast<std::size_t>(std::max<int64_t>(1, bytes / banks.width));
  const std::size_t group = std::max<std::size_t>(1, banks.count / words);
  int64_t worst = 1;
  for (std::size_t first = 0; first < addresses.size(); first += group) {
    std::vector<std::set<int64_t>> served(banks.count);
    for (std::size_t t = first; t < std::min(first + group, addresses.size()); ++t)
      for (std::size_t w = 0; w < words; ++w) {
        const int64_t word = addresses[t] / banks.width + static_cast<int64_t>(w);
        served[word % banks.count].insert(word);
      }
    for (const auto& s : served) worst = std::max(worst, static_cast<int64_t>(s.size()));
  }
  return worst;
}

int64_t bank_conflicts(const F2View& threads, int64_t bytes, Banks banks) {
  // Wide accesses lie in banks as whole units, so a unit counts as a word of as many fewer banks.
  const auto unit = static_cast<uint64_t>(std::max(bytes, banks.width));
  const auto slots = static_cast<uint64_t>(
      std::max<int64_t>(1, banks.count * banks.width / static_cast<int64_t>(unit)));
  F2Matrix words;
  F2Matrix places;
  const int group = static_cast<int>(std::countr_zero(slots));
  for (int c = 0; c < std::min(threads.matrix.inputs(), group); ++c) {
    words.columns.push_back(threads.matrix.columns[c] / unit);
    places.columns.push_back(words.columns.back() % slots);
  }
  return int64_t{1} << (rank(words) - rank(places));
}

}  // namespace tessera
