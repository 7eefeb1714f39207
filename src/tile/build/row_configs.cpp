// Which schedules of a row kernel are worth trying.
#include <algorithm>

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
  for (int vector : {most, most / 2})
    for (int per_row = 32; per_row <= limits.max_threads; per_row *= 2) {
      if (per_row > 32 && per_row * vector / 2 >= p.columns) continue;
      int64_t elements = round_up(p.columns, int64_t{per_row} * vector) / per_row;
      if (elements > 64) continue;
      for (int per_block : {1, 2, 4, 8}) {
        int threads = per_row * per_block;
        if (threads < 64 || threads > 512) {
          if (per_block != 1 || threads < 64) continue;
        }
        for (int blocks : {0, 2048 / threads})
          out.push_back({per_row, per_block, vector, 1, blocks, 0});
      }
    }
  if (out.empty() || p.columns > 32768)
    for (int threads : {512, 1024})
      for (int per_thread : {8, 16})
        out.push_back({threads, 1, most, 1, 0, int64_t{threads} * per_thread});
  // Around 16 to 32 elements a thread hides latency without spilling.
  std::stable_sort(out.begin(), out.end(), [&](const RowConfig& a, const RowConfig& b) {
    auto away = [&](const RowConfig& c) {
      if (c.chunk > 0) return int64_t{0};
      int64_t elements = p.columns / c.threads_per_row;
      return elements > 32 ? elements - 32 : elements < 16 ? 16 - elements : 0;
    };
    return away(a) < away(b);
  });
  return out;
}

}  // namespace tessera::tile::build
