// Fused attention with an online softmax in the tile language.
#include "realize/common/tile_candidates.h"
#include "rules/attention.h"
#include "tile/build/attention.h"

namespace tessera::realize {
namespace {

inline constexpr Code unsupported{"TS0443", "realize.tile_attention_unsupported"};

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph& g,
                      const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::AttentionBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported, "the pattern has no attention body"));
  if (body->softcap > 0 || (body->band && !body->mask))
    return error(fail(unsupported, "capped scores").expect("softmax(scale Q K^T + mask) V"));
  tile::build::AttentionProblem p{.batch = body->batch,
                                  .heads = body->heads,
                                  .kv_heads = body->kv_heads,
                                  .queries = body->q_length,
                                  .keys = body->kv_length,
                                  .head_dim = body->head_dim,
                                  .value_dim = body->value_dim,
                                  .scale = body->scale,
                                  .causal = body->causal,
                                  .empty_rows_are_zero = true,
                                  .precision = pattern.precision,
                                  .tensors = launch_tensors(pattern, g),
                                  .q = strided(body->q),
                                  .k = strided(body->k),
                                  .v = strided(body->v),
                                  .o = strided(body->output)};
  if (body->mask) {
    p.mask = strided(*body->mask);
    p.mask_is_boolean = body->mask->dtype == DType::boolean;
  }
  auto configs = tile::build::attention_configs(p, tile::build::limits_of(arch));
  if (configs.empty()) {
    // The builder says why there is none.
    configs.push_back({.row_tiles = arch.device == "cuda" ? 1 : 0});
  }
  return tile_space("tile_attention", configs, arch, [&](const tile::build::AttentionConfig& c) {
    return tile::build::attention(p, c, target_of(arch));
  });
}

}  // namespace

extern const Realizer tile_attention = {
    .name = "tile_attention",
    .doc = "fused attention with an online softmax, in the tile language",
    .kind = Kind::synthesized,
    .rule = "attention",
    .realize = realize,
};

}  // namespace tessera::realize
