// Which configurations of the GPU's attention are worth a try, and in which order.
#include <algorithm>

#include "base/integers.h"
#include "tile/build/attention_gpu.h"

namespace tessera::tile::build {

using Shape = AttentionShape;

Result<Shape> attention_shape(const AttentionProblem& p, const AttentionConfig& c) {
  Shape s;
  const DType t = p.tensors[p.q.tensor].element;
  const bool wide = t == DType::float32;
  if (!wide && t != DType::bfloat16 && t != DType::float16)
    return error(fail(unsupported, "attention over {} on a GPU", name_of(t)));
  const std::string_view name = wide                  ? "m16n8k8.tf32"
                                : t == DType::float16 ? "m16n8k16.fp16"
                                                      : "m16n8k16.bf16";
  s.by = arch::find_mma(name);
  s.terms = wide && p.precision == Precision::fp32 ? 3 : 1;
  s.size = size_of(t);
  s.depth = round_up(p.head_dim, s.by->k);
  s.width = round_up(p.value_dim, s.by->n);
  const int64_t rows = s.by->m * c.row_tiles;
  s.warps = rows > 0 && c.block_queries % rows == 0 ? static_cast<int>(c.block_queries / rows) : 0;
  if (s.warps < 1 || s.warps > 16 || c.block_keys % s.by->k != 0 || c.stages < 1)
    return error(fail(unsupported, "blocks of {} queries and {} keys, {} x 16 queries a warp",
                      c.block_queries, c.block_keys, c.row_tiles)
                     .expect("1 to 16 warps, keys in multiples of {}", s.by->k));
  return s;
}

int64_t attention_registers(const Shape& s, const AttentionConfig& c) {
  const int64_t queries = c.shared_queries ? 8 : s.depth * s.size / 8;
  const int64_t part = s.terms == 3 ? 40 : 0;
  const int64_t in_flight = c.shared_queries ? 56 : s.size == 4 ? 40 : 48;
  return c.row_tiles * (queries + s.width / 2 + c.block_keys / 2 + part) + in_flight;
}

namespace {

/// Bytes of shared memory, with the padding at its largest.
int64_t shared_bytes(const Shape& s, const AttentionConfig& c) {
  const int64_t row = (s.depth + s.width) * s.size + 64 + 16;
  const int64_t queries = c.shared_queries ? c.block_queries * (s.depth * s.size + 64) : 0;
  return c.stages * (c.block_keys * row + 256) + queries;
}

/// Clocks of a multiprocessor for each 64 x 64 scores: the busiest of tensor cores, shared memory
/// and instruction issue, and what the resident warps leave uncovered of the others. Only the order
/// of the candidates comes from here.
double clocks(const AttentionProblem& p, const Shape& s, const AttentionConfig& c) {
  const auto rows = static_cast<double>(c.row_tiles), keys = static_cast<double>(c.block_keys);
  const auto depth = static_cast<double>(s.depth), width = static_cast<double>(s.width);
  const auto k = static_cast<double>(s.by->k);
  const double products = keys / 8 * depth / k + width / 8 * keys / k;
  const double mma = rows * products * s.terms;
  const double reads = products / 2 + (c.shared_queries ? rows * depth / k : 0);
  const double per_element = s.size == 2 ? 0 : s.terms == 3 ? 3 : 1;
  const double rounding = per_element * (keys * (depth + width) / 32 + rows * keys / 2);
  const double softmax = rows * (keys / 2 * 6 + width / 2);
  const double issue = mma + reads + rounding + softmax + 60;
  constexpr double mma_clocks = 6.4;  // of m16n8k8.tf32 and m16n8k16: 62 % of the tensor rate
  const double tensor = mma * s.warps / 4 * mma_clocks;
  const double shared =
      reads * s.warps * 4 + keys * (depth + width) * static_cast<double>(s.size) / 128;
  const double slots = issue * s.warps / 4;
  const double most = std::max({tensor, shared, slots});
  const double resident = s.warps * c.min_blocks;
  constexpr double meeting = 500;  // a turn's waits and its chain of maximum, power, sum
  double turn =
      most + 0.25 * (tensor + shared + slots - most) * 8 / resident + meeting / c.min_blocks;
  const auto block = static_cast<double>(c.block_queries);
  if (p.causal)  // tiles on the diagonal are computed whole
    turn *= 1 + (block + keys) / static_cast<double>(p.queries);
  return turn * 4096 / (block * keys);
}

bool has(const Limits& limits, const arch::Mma& by) {
  return std::any_of(limits.products.begin(), limits.products.end(),
                     [&](const arch::Mma& m) { return m.name == by.name; });
}

bool fits(const AttentionProblem& p, const AttentionConfig& c, const Shape& s,
          const Limits& limits) {
  const int64_t registers_left = limits.registers / (int64_t{s.threads()} * c.min_blocks);
  constexpr int64_t reserved = 1024;  // shared bytes of a block that the system keeps
  return attention_registers(s, c) <= std::min<int64_t>(255, registers_left) && s.warps >= 2 &&
         c.min_blocks * (shared_bytes(s, c) + reserved) <= limits.shared_bytes + reserved &&
         c.block_keys <= round_up(p.keys, 32) && c.block_queries <= round_up(p.queries, 64);
}

}  // namespace

std::vector<AttentionConfig> attention_gpu_configs(const AttentionProblem& p,
                                                   const Limits& limits) {
  const int64_t kv_bytes = p.batch * p.kv_heads * p.keys * (p.head_dim + p.value_dim) *
                           size_of(p.tensors[p.k.tensor].element);
  std::vector<std::pair<double, AttentionConfig>> found;
  // One decision a digit of a mixed number: queries, row tiles, keys, stages, where queries lie;
  // as many blocks a multiprocessor as fit.
  for (int n = 0; n < 2 * 2 * 4 * 2 * 2; ++n) {
    auto digit = [rest = n](int of) mutable {
      const int d = rest % of;
      rest /= of;
      return d;
    };
    AttentionConfig c;
    c.block_queries = int64_t{64} << digit(2);
    c.row_tiles = 1 + digit(2);
    c.block_keys = int64_t{16} << digit(4);
    c.stages = 1 + digit(2);
    c.shared_queries = digit(2) == 1;
    c.longest_first = p.causal && kv_bytes <= limits.l2_bytes / 2;
    const Result<Shape> s = attention_shape(p, c);
    if (!s || !has(limits, *s->by)) continue;
    for (c.min_blocks = 4; c.min_blocks >= 1; --c.min_blocks)
      if (fits(p, c, *s, limits)) break;
    if (c.min_blocks >= 1) found.emplace_back(clocks(p, *s, c), c);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<AttentionConfig> out;
  constexpr std::size_t most = 16;
  for (const auto& [clocks, c] : found)
    if (out.size() < most) out.push_back(c);
  return out;
}

}  // namespace tessera::tile::build
