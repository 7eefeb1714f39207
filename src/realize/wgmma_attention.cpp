// Attention on Hopper by wgmma: 16-bit operands, causal, full or a band of keys, capped scores,
// grouped heads, any strides that TMA can follow; in plain CUDA C++ (tessera_wgmma/attention.h), so
// that it builds in seconds.
#include <algorithm>
#include <bit>
#include <map>

#include "base/integers.h"
#include "base/text.h"
#include "realize/common/attention_model.h"
#include "realize/common/programmatic_launch.h"
#include "realize/common/wgmma_attention_text.h"
#include "realize/realize.h"
#include "rules/attention.h"

namespace tessera::realize {
namespace {

struct Config {
  int queries;  // of a tile, 64 a warpgroup
  int keys;     // of a block
  bool turns;   // warpgroups issue their products in turns
  bool lazy;    // sums are corrected only where a row's highest score has grown by much
  int value_stages = key_stages;

  static constexpr int key_stages = 2;

  [[nodiscard]] AttentionTile tile() const {
    return {queries, keys, turns, key_stages, value_stages};
  }
  [[nodiscard]] Json to_json() const {
    return {{"block_queries", queries},
            {"block_keys", keys},
            {"turns", turns},
            {"lazy", lazy},
            {"stages", {key_stages, value_stages}}};
  }
};

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
  const auto bits = [](double v) { return int64_t{std::bit_cast<int32_t>(static_cast<float>(v))}; };
  // Beyond all keys, or before them, a bound cuts nothing; sums with positions stay in 32 bits.
  const int64_t far = int64_t{1} << 30;
  const rules::Band band = body.band.value_or(rules::Band{});
  out.insert(out.end(), {body.batch, body.heads, body.kv_heads, body.q_length, body.kv_length,
                         body.head_dim, body.value_dim, bits(body.scale), bits(body.softcap),
                         std::max(-far, band.lower.value_or(-far)),
                         std::min(far, band.upper.value_or(far)), section});
  return out;
}

std::vector<std::string> names_of_ints() {
  std::vector<std::string> names;
  for (const char* view : {"q", "k", "v", "o"})
    for (const char* field : {"tensor", "offset", "batch_stride", "head_stride", "row_stride"})
      names.push_back(fmt::format("{}_{}", view, field));
  for (const char* name : {"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim",
                           "scale", "softcap", "lower", "upper", "section"})
    names.emplace_back(name);
  return names;
}

Candidate candidate(const rules::AttentionBody& body, const Config& c, const arch::Arch& arch) {
  Candidate out;
  out.realizer = "wgmma_attention";
  out.config = c.to_json();
  if (body.mask) out.unread = {body.mask->tensor};
  out.predicted_ms = predict_ms(body, c.tile(), arch);
  const WgmmaAttention attention{.dtype = body.q.dtype,
                                 .depth = static_cast<int>(rounded_dim(body.head_dim)),
                                 .width = static_cast<int>(rounded_dim(body.value_dim)),
                                 .queries = c.queries,
                                 .keys = c.keys,
                                 .key_stages = Config::key_stages,
                                 .value_stages = c.value_stages,
                                 .causal = body.causal,
                                 .capped = body.softcap > 0,
                                 .band = body.band.has_value(),
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
  if (body == nullptr)
    return error(fail(unsupported_attention, "the pattern has no attention body"));
  TESSERA_CHECK(check_attention(pattern, *body, arch));
  Space space;
  std::map<std::string, int> pruned;
  for (const int queries : {128, 192}) {
    for (int keys = 64; keys <= 192; keys += 16) {
      for (const bool turns : {true, false}) {
        Config c{queries, keys, turns, false};
        // Wide heads: less than two blocks of values leave room for longer ones.
        if (shared_bytes(*body, c.tile()) > arch.shared_memory_per_block) c.value_stages = 1;
        if (const auto why = too_large(*body, c.tile(), arch)) {
          ++pruned[std::string(*why)];
          continue;
        }
        for (const bool lazy : {false, true}) {
          c.lazy = lazy;
          space.candidates.push_back(candidate(*body, c, arch));
        }
      }
    }
  }
  space.pruned.assign(pruned.begin(), pruned.end());
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
