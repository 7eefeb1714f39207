// Attention on Hopper by wgmma: 16-bit operands, causal or full, grouped heads, any strides that
// TMA can follow (tessera_cutlass/attention.h).
#include <algorithm>
#include <bit>

#include "base/text.h"
#include "realize/common/cutlass_text.h"
#include "realize/common/programmatic_launch.h"
#include "rules/attention.h"

namespace tessera::realize {
namespace {

inline constexpr Code unsupported{"TS0446", "realize.cutlass_attention_unsupported"};

struct Config {
  int queries;  // of a tile, 64 a warpgroup
  int keys;     // of a block
  bool turns;   // warpgroups issue their products in turns

  [[nodiscard]] Json to_json() const {
    return {{"block_queries", queries}, {"block_keys", keys}, {"turns", turns}, {"stages", stages}};
  }
  static constexpr int stages = 2;
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

/// Scores and their rounded powers, sums, and what addresses and rows take.
int64_t registers(const rules::AttentionBody& body, const Config& c) {
  constexpr int64_t rest = 28;
  return c.keys / 2 + c.keys / 4 + rounded(body.value_dim) / 2 + rest;
}

/// The least that an instance needs: a result may take the room of queries as wide as it.
int64_t shared_bytes(const rules::AttentionBody& body, const Config& c) {
  const int64_t depth = rounded(body.head_dim), width = rounded(body.value_dim);
  constexpr int64_t barriers = 1024;
  const int64_t tiles = c.queries * (width == depth ? depth : depth + width);
  return 2 * (tiles + int64_t{Config::stages} * c.keys * (depth + width)) + barriers;
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
  const double block = std::max(products, powers) + shown * std::min(products, powers) + waits;
  const int64_t tiles = (body.q_length + c.queries - 1) / c.queries;
  int64_t blocks = 0;
  for (int64_t t = 1; t <= tiles; ++t) {
    const int64_t seen = body.causal ? std::min(body.kv_length, t * c.queries) : body.kv_length;
    blocks += (seen + c.keys - 1) / c.keys;
  }
  const double share = static_cast<double>(body.heads * body.batch) / arch.multiprocessors;
  const double own_tiles = std::max(1.0, static_cast<double>(tiles) * share);
  return (static_cast<double>(blocks) * share * block + own_tiles * around_a_tile) / clocks_per_ms;
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

constexpr const char* text = R"CU(#define TESSERA_SIDES_APART 1
#include "tessera_cutlass/attention_launch.hpp"

using Kernel = tessera::Attention<$TYPE$, $DEPTH$, $WIDTH$, $QUERIES$, $KEYS$, $STAGES$, $CAUSAL$, $TURNS$>;
#if TESSERA_DEVICE_SIDE
const void* entry() { return reinterpret_cast<const void*>(tessera::attention_kernel<Kernel>); }
#endif

#if TESSERA_HOST_SIDE
TESSERA_EXPORT const char* tessera_describe() {
  return R"J($DESCRIBE$)J";
}

TESSERA_EXPORT const char* tessera_last_error() {
  return tessera_cutlass::last_error();
}

TESSERA_EXPORT int64_t tessera_workspace_size(const tessera_launch*) {
  return 0;
}

TESSERA_EXPORT int tessera_run(const tessera_launch* launch, void*, void* stream) {
  return tessera_cutlass::run_attention<Kernel>(launch, TESSERA_ENTRY_OF("attention_kernel", tessera::attention_kernel<Kernel>),
                                                static_cast<cudaStream_t>(stream));
}
#endif
)CU";

Candidate candidate(const rules::AttentionBody& body, const Config& c, const arch::Arch& arch) {
  Candidate out;
  out.realizer = "cutlass_attention";
  out.config = c.to_json();
  out.predicted_ms = predict_ms(body, c, arch);
  Json ints = Json::array();
  for (const char* view : {"q", "k", "v", "o"})
    for (const char* field : {"tensor", "offset", "batch_stride", "head_stride", "row_stride"})
      ints.push_back(fmt::format("{}_{}", view, field));
  for (const char* name : {"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim",
                           "scale", "section"})
    ints.push_back(name);
  const Json describe = {
      {"abi", 1}, {"name", out.realizer}, {"arch", arch.name}, {"ints", std::move(ints)}};
  const auto flag = [](bool on) { return std::string(on ? "true" : "false"); };
  const auto number = [](int64_t n) { return fmt::format("{}", n); };
  toolchain::Source source;
  source.name = out.realizer;
  source.text = fill(text, {{"TYPE", cutlass_type(body.q.dtype)},
                            {"DEPTH", number(rounded(body.head_dim))},
                            {"WIDTH", number(rounded(body.value_dim))},
                            {"QUERIES", number(c.queries)},
                            {"KEYS", number(c.keys)},
                            {"STAGES", number(Config::stages)},
                            {"CAUSAL", flag(body.causal)},
                            {"TURNS", flag(c.turns)},
                            {"DESCRIBE", describe.dump()}});
  source.arch = arch.name;
  source.flags = cutlass_flags({c.keys, rounded(body.value_dim)});
  source.cutlass = true;
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
        const Config c{queries, keys, turns};
        if (registers(*body, c) > register_limit(c)) {
          ++too_many_registers;
        } else if (shared_bytes(*body, c) > arch.shared_memory_per_block) {
          ++too_much_memory;
        } else {
          space.candidates.push_back(candidate(*body, c, arch));
        }
      }
    }
  }
  if (too_many_registers > 0) space.pruned.emplace_back("registers", too_many_registers);
  if (too_much_memory > 0) space.pruned.emplace_back("shared memory", too_much_memory);
  std::stable_sort(
      space.candidates.begin(), space.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.predicted_ms < b.predicted_ms; });
  constexpr std::size_t most = 8;
  if (space.candidates.size() > most) space.candidates.resize(most);
  return space;
}

}  // namespace

extern const Realizer cutlass_attention;
const Realizer cutlass_attention{
    "cutlass_attention",
    "attention by wgmma with CUTLASS' parts: TMA, warpgroups of their own roles", Kind::synthesized,
    "attention", realize};

}  // namespace tessera::realize
