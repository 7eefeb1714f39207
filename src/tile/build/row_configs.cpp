// Which schedules of a row kernel are worth trying.
#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "tile/build/rows.h"

namespace tessera::tile::build {

Json to_json(const RowConfig& c) {
  return {{"threads_per_row", c.threads_per_row},
          {"rows_per_block", c.rows_per_block},
          {"vector", c.vector},
          {"rows_per_thread", c.rows_per_thread},
          {"blocks_per_multiprocessor", c.blocks_per_multiprocessor},
          {"chunk", c.chunk}};
}

RowConfig row_config_from_json(const Json& j) {
  RowConfig c;
  c.threads_per_row = j.value("threads_per_row", c.threads_per_row);
  c.rows_per_block = j.value("rows_per_block", c.rows_per_block);
  c.vector = j.value("vector", c.vector);
  c.rows_per_thread = j.value("rows_per_thread", c.rows_per_thread);
  c.blocks_per_multiprocessor = j.value("blocks_per_multiprocessor", c.blocks_per_multiprocessor);
  c.chunk = j.value("chunk", c.chunk);
  return c;
}

namespace {

constexpr std::size_t most_configs = 16;

int64_t elements_of(int64_t columns, const RowConfig& c) {
  return round_up(columns, int64_t{c.threads_per_row} * c.vector) / c.threads_per_row;
}

/// How far a schedule is from what usually wins; units are octaves, roughly. 8 to 32 elements a
/// thread hide latency without spilling; small blocks leave a multiprocessor more of them to
/// overlap loads of one with stores of another.
double away(int64_t columns, const RowConfig& c, int widest) {
  auto elements = static_cast<double>(elements_of(columns, c) * c.rows_per_thread);
  double d = elements > 32 ? std::log2(elements / 32) : 0;
  if (elements < 16) d += 0.5 * std::log2(16 / elements);
  d += 0.5 *
       std::log2(c.threads_per_row * c.rows_per_block / std::max(64.0, 1.0 * c.threads_per_row));
  if (c.vector < widest) d += 1.25;
  if (c.blocks_per_multiprocessor > 0) d += 0.6;
  if (c.rows_per_thread > 1) d += 0.9;
  return d;
}

/// Rows that stay in registers: every spread of them that can be launched.
std::vector<RowConfig> whole_rows(int64_t columns, int widest, const Limits& limits) {
  std::vector<RowConfig> out;
  for (int vector : {widest, widest / 2})
    for (int per_row = 32; per_row <= limits.max_threads; per_row *= 2) {
      if (per_row > 32 && per_row * vector / 2 >= columns) continue;
      for (int per_block : {1, 2, 4, 8})
        for (int per_thread : {1, 2}) {
          int threads = per_row * per_block;
          if (threads < 64 || threads > limits.max_threads || (threads > 512 && per_block > 1))
            continue;
          RowConfig c{per_row, per_block, vector, per_thread, 0, 0};
          if (elements_of(columns, c) * per_thread > (per_thread > 1 ? 32 : 64)) continue;
          out.push_back(c);
          c.blocks_per_multiprocessor = 2048 / threads;
          out.push_back(c);
        }
    }
  return out;
}

}  // namespace

std::vector<RowConfig> row_configs(const RowProblem& p, const Limits& limits) {
  std::vector<RowConfig> out;
  if (limits.target == Target::host) {
    // A row lies on the stack of its thread, so very long ones go by chunks only.
    if (p.columns <= 131072) out.push_back({.threads_per_row = 1, .rows_per_block = 1});
    if (p.columns > 32768)
      out.push_back({.threads_per_row = 1, .rows_per_block = 1, .chunk = 8192});
    return out;
  }
  int most = vector_elements(p.tensors);
  out = whole_rows(p.columns, most, limits);
  std::stable_sort(out.begin(), out.end(), [&](const RowConfig& a, const RowConfig& b) {
    return away(p.columns, a, most) < away(p.columns, b, most);
  });
  std::vector<RowConfig> chunks;
  if (out.empty() || p.columns > 32768)
    for (int threads : {512, 1024})
      for (int per_thread : {8, 16})
        chunks.push_back({threads, 1, most, 1, 0, int64_t{threads} * per_thread});
  if (out.size() > most_configs - chunks.size()) out.resize(most_configs - chunks.size());
  out.insert(out.begin(), chunks.begin(), chunks.end());
  return out;
}

}  // namespace tessera::tile::build
