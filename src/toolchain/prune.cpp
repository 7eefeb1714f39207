#include <algorithm>
#include <chrono>

#include "toolchain/toolchain.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

struct Item {
  fs::path folder;
  int64_t bytes = 0;
  fs::file_time_type used;
};

int64_t bytes_below(const fs::path& folder) {
  int64_t sum = 0;
  std::error_code ignored;
  for (const auto& e : fs::recursive_directory_iterator(folder, ignored)) {
    if (e.is_regular_file(ignored)) sum += static_cast<int64_t>(e.file_size(ignored));
  }
  return sum;
}

std::vector<Item> items(const fs::path& cache) {
  std::vector<Item> out;
  std::error_code ignored;
  for (const auto& outer : fs::directory_iterator(cache, ignored)) {
    if (outer.path().filename().string().size() != 2) continue;
    for (const auto& entry : fs::directory_iterator(outer.path(), ignored)) {
      std::error_code missing;
      auto used = fs::last_write_time(entry.path() / "meta.json", missing);
      if (missing) used = fs::last_write_time(entry.path(), ignored);
      out.push_back({entry.path(), bytes_below(entry.path()), used});
    }
  }
  return out;
}

}  // namespace

Pruned prune_cache(const fs::path& cache, int64_t max_bytes) {
  Pruned out;
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  // A build takes at most some ten minutes; what lies aside for a day was left by a killed builder.
  for (const auto& e : fs::directory_iterator(cache / "building", ignored)) {
    if (now - e.last_write_time(ignored) < std::chrono::hours(24)) continue;
    out.bytes_freed += bytes_below(e.path());
    fs::remove_all(e.path(), ignored);
  }
  std::vector<Item> all = items(cache);
  for (const Item& i : all) out.bytes_left += i.bytes;
  std::sort(all.begin(), all.end(), [](const Item& a, const Item& b) { return a.used < b.used; });
  for (const Item& i : all) {
    if (out.bytes_left <= max_bytes) break;
    if (now - i.used < std::chrono::hours(1)) break;  // the rest was used later still
    fs::remove_all(i.folder, ignored);
    out.bytes_left -= i.bytes;
    out.bytes_freed += i.bytes;
    ++out.removed;
  }
  return out;
}

}  // namespace tessera::toolchain
