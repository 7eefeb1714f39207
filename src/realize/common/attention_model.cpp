#include "realize/common/attention_model.h"

#include <algorithm>

#include "base/integers.h"

namespace tessera::realize {
namespace {

/// Registers a thread of a multiplying warpgroup may have: those of the multiprocessor less the
/// loader's, in the steps of setmaxnreg.
int register_limit(const AttentionTile& t) {
  return t.queries == 128 ? 240 : 160;
}

/// Elements of a mask that wait for their scores: those of a load have a register.
int64_t mask_registers(const rules::AttentionBody& body, const AttentionTile& t) {
  if (!reads_mask(body)) return 0;
  const MaskReads m = mask_reads(body);
  const int64_t elements = t.keys / 2 / (m.one_row ? 2 : 1);
  return body.mask->dtype == DType::float32 ? elements : elements / m.multiple;
}

/// Scores and their rounded powers, sums, and what addresses and rows take: more where uniform
/// registers do not hold the queries' descriptors of 16 columns each beside the turns' numbers, or
/// a mask's addresses.
int64_t registers(const rules::AttentionBody& body, const AttentionTile& t) {
  const int64_t depth = rounded_dim(body.head_dim);
  const bool crowded = t.queries == 128 && depth > 128 && (t.turns || reads_mask(body));
  const int64_t rest = crowded ? 52 : 28;
  return t.keys / 2 + t.keys / 4 + rounded_dim(body.value_dim) / 2 + mask_registers(body, t) + rest;
}

/// A mask that threads load as it lies: keys side by side, from a multiple of 16 bytes on.
Status check_mask(const rules::AttentionBody& body) {
  const rules::TensorView& m = *body.mask;
  if (m.dtype != DType::boolean && m.dtype != DType::float32 && m.dtype != body.q.dtype)
    return error(
        fail(unsupported_attention, "a mask of {}", name_of(m.dtype))
            .expect("truth values, or float32 or {}, which are added", name_of(body.q.dtype)));
  const bool lies = (m.shape[3] == 1 || m.strides[3] == 1) && m.offset * size_of(m.dtype) % 16 == 0;
  const bool ahead =
      std::all_of(m.strides.begin(), m.strides.end(), [](int64_t s) { return s >= 0; });
  if (lies && ahead) return {};
  return error(fail(unsupported_attention, "a mask that threads cannot load as it lies")
                   .expect("keys side by side, from a multiple of 16 bytes on")
                   .but_found("{}", m.to_string()));
}

}  // namespace

bool reads_mask(const rules::AttentionBody& body) {
  return body.mask && !body.band;
}

MaskReads mask_reads(const rules::AttentionBody& body) {
  const rules::TensorView& m = *body.mask;
  const auto stride = [&](std::size_t d) { return m.shape[d] == 1 ? 0 : m.strides[d]; };
  MaskReads out{.batch = stride(0), .head = stride(1), .row = stride(2)};
  out.one_row = out.row == 0;
  const bool even = (body.kv_length % 2 | out.batch % 2 | out.head % 2 | out.row % 2) == 0;
  out.multiple = even ? 2 : 1;
  return out;
}

int64_t rounded_dim(int64_t dim) {
  return (dim + 15) / 16 * 16;
}

Status check_attention(const rules::Pattern& pattern, const rules::AttentionBody& body,
                       const arch::Arch& arch, bool masks) {
  if (!arch.has("wgmma") || !arch.has("tma"))
    return error(fail(unsupported_attention, "{} has no wgmma and TMA", arch.name));
  if (pattern.outputs.size() != 1)
    return error(fail(unsupported_attention, "attention with more than one output"));
  if (masks && reads_mask(body)) TESSERA_CHECK(check_mask(body));
  if (body.mask && !(masks && reads_mask(body)) && (!body.band || body.causal))
    return error(
        fail(unsupported_attention, "a mask tensor")
            .expect("causal or full attention, or a mask of known content that is a band"));
  if (!(body.scale > 0))
    return error(fail(unsupported_attention, "scores scaled by {}", body.scale));
  if (std::max(rounded_dim(body.head_dim), rounded_dim(body.value_dim)) > 256)
    return error(fail(unsupported_attention, "head dims {} and {}", body.head_dim, body.value_dim)
                     .expect("at most 256"));
  for (const rules::TensorView* v : {&body.q, &body.k, &body.v, &body.output}) {
    if (v->dtype != body.q.dtype || (v->dtype != DType::bfloat16 && v->dtype != DType::float16))
      return error(fail(unsupported_attention, "{} among the tensors", name_of(v->dtype))
                       .expect("bfloat16 or float16, the same of all"));
    bool aligned = v->offset % 8 == 0 && v->strides[3] == 1;
    for (int d = 0; d < 3; ++d)
      aligned &= v->shape[d] == 1 || (v->strides[d] > 0 && v->strides[d] % 8 == 0);
    if (!aligned)
      return error(fail(unsupported_attention, "a tensor that TMA cannot follow")
                       .expect("adjoining columns, other strides and offset multiples of 16 bytes")
                       .but_found("{}", v->to_string()));
  }
  return {};
}

int64_t shared_bytes(const rules::AttentionBody& body, const AttentionTile& t) {
  const int64_t depth = rounded_dim(body.head_dim), width = rounded_dim(body.value_dim);
  constexpr int64_t barriers = 1024;
  const int64_t tiles = t.queries * (t.query_slots * depth + (width == depth ? 0 : width));
  const int64_t blocks = t.keys * (t.key_stages * depth + t.value_stages * width);
  return 2 * (tiles + blocks) + barriers;
}

namespace {

/// Instructions a score beside its power, and what more of the products is seen behind them where
/// warpgroups take turns: an element of a mask is loaded, taken apart and applied, and while its
/// loads are waited for, the other warpgroup's turn is not taken. Rows of a mask that all queries
/// share come from the cache. Fitted to bool and added masks of head dim 128 on an H100
/// (tests/gpu/attention_masks.py).
struct OtherWork {
  int instructions = 4;
  double waited = 0;
};
OtherWork other_work(const rules::AttentionBody& body) {
  if (!reads_mask(body)) return {};
  const MaskReads mask = mask_reads(body);
  const int by_one = mask.multiple == 1 ? 2 : 0;  // elements at a time
  return mask.one_row ? OtherWork{11 + by_one, 0} : OtherWork{16 + by_one, 0.4};
}

}  // namespace

double predict_ms(const rules::AttentionBody& body, const AttentionTile& t,
                  const arch::Arch& arch) {
  constexpr double products_per_clock = 4096;  // dense 16-bit operations of a multiprocessor
  constexpr double clocks_per_ms = 1.6e6, waits = 120, around_a_tile = 1500;
  const double scores = static_cast<double>(t.queries) * t.keys;
  const auto dims = static_cast<double>(rounded_dim(body.head_dim) + rounded_dim(body.value_dim));
  const double products = 2 * scores * dims / products_per_clock;
  const int functions = body.softcap > 0 ? 2 : 1;
  const auto [others, waited] = other_work(body);
  const double powers = functions * scores / 16 + scores * others / 128;
  const double shown = t.turns ? 0.2 + waited : 0.24;
  const double overlapped = std::max(products, powers) + shown * std::min(products, powers);
  // One stage of values is loaded while nothing but the next scores is multiplied.
  const double block = overlapped + waits + (t.value_stages == 1 ? products / 8 : 0);
  const int64_t tiles = ceil_div(body.q_length, t.queries);
  // A warpgroup has those that its own 64 rows see.
  const int groups = t.queries / 64;
  int64_t group_blocks = 0;
  const rules::Band seen =
      body.causal ? rules::Band{std::nullopt, 0} : body.band.value_or(rules::Band{});
  for (int64_t g = 0; g < tiles * groups; ++g) {
    const int64_t first = seen.keys_of(g * 64, body.kv_length).first;
    const int64_t end = seen.keys_of(g * 64 + 63, body.kv_length).second;
    group_blocks += std::max<int64_t>(1, ceil_div(end, t.keys) - first / t.keys);
  }
  const double blocks = static_cast<double>(group_blocks) / groups;
  const double share = static_cast<double>(body.heads * body.batch) / arch.multiprocessors;
  const double own_tiles = std::max(1.0, static_cast<double>(tiles) * share);
  return (blocks * share * block + own_tiles * around_a_tile) / clocks_per_ms;
}

std::optional<std::string_view> too_large(const rules::AttentionBody& body, const AttentionTile& t,
                                          const arch::Arch& arch) {
  if (registers(body, t) > register_limit(t)) return "registers";
  if (shared_bytes(body, t) > arch.shared_memory_per_block) return "shared memory";
  return std::nullopt;
}

}  // namespace tessera::realize
