// Attention on Hopper by wgmma: 16-bit operands, causal or full, grouped heads, any strides that
// TMA can follow; in plain CUDA C++ (tessera_wgmma/attention.h), so that it builds in seconds.
#include <algorithm>
#include <bit>

#include "base/integers.h"
#include "base/text.h"
#include "realize/common/programmatic_launch.h"
#include "realize/common/wgmma_attention_text.h"
#include "realize/realize.h"
#include "rules/attention.h"

namespace tessera::realize {
namespace {

inline constexpr Code unsupported{"TS0447", "realize.wgmma_attention_unsupported"};

struct Config {
  int queries;  // of a tile, 64 a warpgroup
  int keys;     // of a block
  bool turns;   // warpgroups issue their products in turns
  bool lazy;    // sums are corrected only where a row's highest score has grown by much
  int value_stages = key_stages;

  static constexpr int key_stages = 2;

  [[nodiscard]] Json to_json() const {
    return {{"block_queries", queries},
            {"block_keys", keys},
            {"turns", turns},
            {"lazy", lazy},
            {"stages", {key_stages, value_stages}}};
  }
};

int64_t rounded(int64_t dim) {
  return (dim + 15) / 16 * 16;
}

Status check(const rules::Pattern& pattern, const rules::AttentionBody& body,
             const arch::Arch& arch) {
  if (!arch.has("wgmma") || !arch.has("tma"))
    return error(fail(unsupported, "{} has no wgmma and TMA", arch.name));
  if (pattern.outputs.size() != 1)
    return error(fail(unsupported, "attention with more than one output"));
  if (body.mask)
    return error(fail(unsupported, "a mask tensor").expect("causal or full attention"));
  if (!(body.scale > 0)) return error(fail(unsupported, "scores scaled by {}", body.scale));
  if (std::max(rounded(body.head_dim), rounded(body.value_dim)) > 256)
    return error(fail(unsupported, "head dims {} and {}", body.head_dim, body.value_dim)
                     .expect("at most 256"));
  for (const rules::TensorView* v : {&body.q, &body.k, &body.v, &body.output}) {
    if (v->dtype != body.q.dtype || (v->dtype != DType::bfloat16 && v->dtype != DType::float16))
      return error(fail(unsupported, "{} among the tensors", name_of(v->dtype))
                       .expect("bfloat16 or float16, the same of all"));
    bool aligned = v->offset % 8 == 0 && v->strides[3] == 1;
    for (int d = 0; d < 3; ++d)
      aligned &= v->shape[d] == 1 || (v->strides[d] > 0 && v->strides[d] % 8 == 0);
    if (!aligned)
      return error(fail(unsupported, "a tensor that TMA cannot follow")
                       .expect("adjoining columns, other strides and offset multiples of 16 bytes")
                       .but_found("{}", v->to_string()));
  }
  return {};
}

/// Registers a thread of a multiplying warpgroup may have: those of the multiprocessor less the
/// loader's, in the steps of setmaxnreg.
int register_limit(const Config& c) {
  return c.queries == 128 ? 240 : 160;
}

/// Scores and their rounded powers, sums, and what addresses and rows take: more where uniform
/// registers do not hold the queries' descriptors of 16 columns each beside the turns' numbers.
int64_t registers(const rules::AttentionBody& body, const Config& c) {
  const int64_t depth = rounded(body.head_dim);
  const int64_t rest = c.turns && c.queries == 128 && depth > 128 ? 52 : 28;
  return c.keys / 2 + c.keys / 4 + rounded(body.value_dim) / 2 + rest;
}

/// The least that an instance needs: a result may take the room of queries as wide as it.
int64_t shared_bytes(const rules::AttentionBody& body, const Config& c) {
  const int64_t depth = rounded(body.head_dim), width = rounded(body.value_dim);
  constexpr int64_t barriers = 1024;
  const int64_t tiles = c.queries * (width == depth ? depth : depth + width);
  const int64_t blocks = c.keys * (Config::key_stages * depth + c.value_stages * width);
  return 2 * (tiles + blocks) + barriers;
}

/// Milliseconds: a block takes the longer of its products and its powers, part of the shorter, and
/// its waits; a tile what is before its first block and after its last. The shares and clocks are
/// fitted to head dims 64 to 256 on an H200 (tests/gpu/wgmma_attention.py prints both).
double predict_ms(const rules::AttentionBody& body, const Config& c, const arch::Arch& arch) {
  constexpr double products_per_clock = 4096;  // dense 16-bit operations of a multiprocessor
  constexpr double clocks_per_ms = 1.6e6, waits = 120, around_a_tile = 1500;
  const double scores = static_cast<double>(c.queries) * c.keys;
  const auto dims = static_cast<double>(rounded(body.head_dim) + rounded(body.value_dim));
  const double products = 2 * scores * dims / products_per_clock;
  const double powers = scores / 16 + scores * 4 / 128;  // special functions; the other arithmetic
  const double shown = c.turns ? 0.2 : 0.24;
  const double overlapped = std::max(products, powers) + shown * std::min(products, powers);
  // One stage of values is loaded while nothing but the next scores is multiplied.
  const double block = overlapped + waits + (c.value_stages == 1 ? products / 8 : 0);
  const int64_t tiles = ceil_div(body.q_length, c.queries);
  // A warpgroup has those that its own 64 rows see.
  const int groups = c.queries / 64;
  int64_t group_blocks = 0;
  for (int64_t g = 1; g <= tiles * groups; ++g) {
    const int64_t seen = body.causal ? std::min(body.kv_length, g * 64) : body.kv_length;
    group_blocks += ceil_div(seen, c.keys);
  }
  const double blocks = static_cast<double>(group_blocks) / groups;
  const double share = static_cast<double>(body.heads * body.batch) / arch.multiprocessors;
  const double own_tiles = std::max(1.0, static_cast<double>(tiles) * share);
  return (blocks * share * block + own_tiles * around_a_tile) / clocks_per_ms;
}

/// How many (batch, head) pairs are worked on before the next: all, and as many as have keys and
/// values in L2, or in a part of it; powers of two of heads, which divide the usual numbers.
std::vector<int64_t> sections(const rules::AttentionBody& body, const arch::Arch& arch) {
  const int64_t pairs = body.batch * body.heads, group = body.heads / body.kv_heads;
  const int64_t bytes = 2 * body.kv_length * (body.head_dim + body.value_dim);
  std::vector<int64_t> out = {pairs};
  for (int64_t room = arch.l2_bytes; room >= arch.l2_bytes / 8; room /= 2) {
    const auto fit = static_cast<uint64_t>(std::max<int64_t>(1, room / bytes));
    const int64_t section = static_cast<int64_t>(std::bit_floor(fit)) * group;
    if (section < out.back()) out.push_back(section);
  }
  return out;
}

std::vector<int64_t> launch_ints(const rules::AttentionBody& body, int64_t section) {
  std::vector<int64_t> out;
  for (const rules::TensorView* v : {&body.q, &body.k, &body.v, &body.output}) {
    out.insert(out.end(), {v->tensor, v->offset});
    // Along an extent of 1 any stride is right that TMA can hold.
    for (int d = 0; d < 3; ++d) out.push_back(v->shape[d] == 1 ? 8 : v->strides[d]);
  }
  const auto scale = std::bit_cast<int32_t>(static_cast<float>(body.scale));
  out.insert(out.end(), {body.batch, body.heads, body.kv_heads, body.q_length, body.kv_length,
                         body.head_dim, body.value_dim, scale, section});
  return out;
}

std::vector<std::string> names_of_ints() {
  std::vector<std::string> names;
  for (const char* view : {"q", "k", "v", "o"})
    for (const char* field : {"tensor", "offset", "batch_stride", "head_stride", "row_stride"})
      names.push_back(fmt::format("{}_{}", view, field));
  for (const char* name : {"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim",
                           "scale", "section"})
    names.emplace_back(name);
  return names;
}

Candidate candidate(const rules::AttentionBody& body, const Config& c, const arch::Arch& arch) {
  Candidate out;
  out.realizer = "wgmma_attention";
  out.config = c.to_json();
  out.predicted_ms = predict_ms(body, c, arch);
  const WgmmaAttention attention{.dtype = body.q.dtype,
                                 .depth = static_cast<int>(rounded(body.head_dim)),
                                 .width = static_cast<int>(rounded(body.value_dim)),
                                 .queries = c.queries,
                                 .keys = c.keys,
                                 .key_stages = Config::key_stages,
                                 .value_stages = c.value_stages,
                                 .causal = body.causal,
                                 .turns = c.turns,
                                 .lazy = c.lazy};
  toolchain::Source source;
  source.name = out.realizer;
  source.text = wgmma_attention_library(attention, out.realizer, arch.name, names_of_ints());
  source.arch = arch.name;
  add_programmatic_launch(arch, source);
  out.source = std::move(source);
  for (const int64_t section : sections(body, arch)) {
    Launch launch;
    launch.knobs = {{"section", section}};
    launch.ints = launch_ints(body, section);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::AttentionBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported, "the pattern has no attention body"));
  TESSERA_CHECK(check(pattern, *body, arch));
  Space space;
  int too_many_registers = 0, too_much_memory = 0;
  for (const int queries : {128, 192}) {
    for (int keys = 64; keys <= 192; keys += 16) {
      for (const bool turns : {true, false}) {
        Config c{queries, keys, turns, false};
        // Wide heads: less than two blocks of values leave room for longer ones.
        if (shared_bytes(*body, c) > arch.shared_memory_per_block) c.value_stages = 1;
        if (registers(*body, c) > register_limit(c)) {
          ++too_many_registers;
        } else if (shared_bytes(*body, c) > arch.shared_memory_per_block) {
          ++too_much_memory;
        } else {
          for (const bool lazy : {false, true}) {
            c.lazy = lazy;
            space.candidates.push_back(candidate(*body, c, arch));
          }
        }
      }
    }
  }
  if (too_many_registers > 0) space.pruned.emplace_back("registers", too_many_registers);
  if (too_much_memory > 0) space.pruned.emplace_back("shared memory", too_much_memory);
  std::stable_sort(
      space.candidates.begin(), space.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.predicted_ms < b.predicted_ms; });
  constexpr std::size_t most = 16;
  if (space.candidates.size() > most) space.candidates.resize(most);
  return space;
}

}  // namespace

extern const Realizer wgmma_attention{
    "wgmma_attention",
    "attention by TMA and wgmma in plain CUDA C++ that builds in seconds: warpgroups of their own "
    "roles",
    Kind::synthesized, "attention", realize};

}  // namespace tessera::realize
