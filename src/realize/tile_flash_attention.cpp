// Attention written in the kernel language: kernels/attention.py, proved before it is compiled.
#include <algorithm>
#include <bit>
#include <map>

#include "realize/common/attention_model.h"
#include "realize/common/kernel_files.h"
#include "realize/common/proof.h"

#include "core/verify.h"
#include "language/language.h"
#include "lower/lower.h"

namespace tessera::realize {
namespace {

constexpr std::string_view name = "tile_flash_attention";

struct Config {
  AttentionTile tile;
  int64_t section = 8;  // heads that are worked on at a time

  [[nodiscard]] Json to_json() const {
    return {{"block_queries", tile.queries},
            {"block_keys", tile.keys},
            {"turns", tile.turns},
            {"query_slots", tile.query_slots},
            {"section", section}};
  }
};

/// Keys before and behind the diagonal that a query sees; below 0: all.
struct Window {
  int64_t left = -1, right = -1;
};

/// The kernel's diagonal ends at the last key, the pattern's begins at the first. Nothing where the
/// window does not have the kernel's diagonal in it. A bound that cuts no key is none.
std::optional<Window> window_of(const rules::AttentionBody& body) {
  const rules::Band band =
      body.causal ? rules::Band{std::nullopt, 0} : body.band.value_or(rules::Band{});
  const int64_t diagonal = body.kv_length - body.q_length;
  Window out;
  if (band.lower && *band.lower > 1 - body.q_length) {
    out.left = diagonal - *band.lower;
    if (out.left < 0) return std::nullopt;
  }
  if (band.upper && *band.upper < body.kv_length - 1) {
    out.right = *band.upper - diagonal;
    if (out.right < 0) return std::nullopt;
  }
  return out;
}

Status check(const rules::Pattern& pattern, const rules::AttentionBody& body,
             const arch::Arch& arch) {
  TESSERA_CHECK(check_attention(pattern, body, arch, true));
  if (body.head_dim != body.value_dim || body.head_dim % 32 != 0)
    return error(fail(unsupported_attention, "head dims {} and {}", body.head_dim, body.value_dim)
                     .expect("the same multiple of 32 for keys and values"));
  if (!window_of(body))
    return error(fail(unsupported_attention, "{} of {} queries and {} keys",
                      body.band ? body.band->text() : "a causal mask", body.q_length,
                      body.kv_length)
                     .expect("a window around the diagonal that ends at the last key"));
  return {};
}

/// A power of two above the value, and at least what the file has by itself.
language::Constant bound_above(int64_t value, int64_t least) {
  return std::max(least,
                  static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value) + uint64_t{1})));
}

/// A number of the language, with a point.
std::string decimal(double v) {
  std::string text = fmt::format("{}", v);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

language::Options options_of(const rules::AttentionBody& body, const Config& c) {
  const auto integer = [](int64_t v) { return language::Constant(v); };
  const Window window = *window_of(body);  // which `check` has asked for
  language::Options out{
      .constants = {{"ELEMENT", language::Constant(std::string(short_name(body.q.dtype)))},
                    {"D", integer(body.head_dim)},
                    {"GROUPS", integer(c.tile.queries / 64)},
                    {"KEYS", integer(c.tile.keys)},
                    {"STAGES", integer(c.tile.key_stages)},
                    {"Q_SLOTS", integer(c.tile.query_slots)},
                    {"SECTION", integer(c.section)},
                    {"CAUSAL", integer(window.right == 0 ? 1 : 0)},
                    {"LEFT", integer(window.left)},
                    {"RIGHT", integer(window.right == 0 ? -1 : window.right)},
                    {"CAP", language::Constant(decimal(body.softcap))},
                    {"TURNS", integer(c.tile.turns ? 1 : 0)},
                    {"STRIDED", integer(1)},
                    {"SCALE", language::Constant(decimal(body.scale))},
                    {"MOST_KEYS", bound_above(std::max(body.q_length, body.kv_length), 1 << 17)},
                    {"MOST_HEADS", bound_above(body.heads, 1 << 9)}}};
  if (!reads_mask(body)) return out;
  const MaskReads mask = mask_reads(body);
  const bool truths = body.mask->dtype == DType::boolean;
  out.constants["MASK"] = integer(truths ? 1 : 2);
  if (!truths) out.constants["MASK_ELEMENT"] = std::string(short_name(body.mask->dtype));
  out.constants["MASK_ROWS"] = integer(mask.one_row ? 0 : 1);
  out.constants["MULTIPLE"] = integer(mask.multiple);
  return out;
}

/// Parameters of the kernel, and where its tensors are, by name.
std::map<std::string, int64_t> values_of(const rules::AttentionBody& body) {
  std::map<std::string, int64_t> v = {{"TQ", body.q_length},
                                      {"TK", body.kv_length},
                                      {"H", body.heads},
                                      {"G", body.kv_heads},
                                      {"B", body.batch}};
  const auto place = [&](const std::string& tensor, const rules::TensorView& view) {
    // Along an extent of 1 any stride is right that TMA can hold.
    const auto stride = [&](std::size_t d) { return view.shape[d] == 1 ? 8 : view.strides[d]; };
    v[tensor + "_tensor"] = view.tensor;
    v[tensor + "_offset"] = view.offset;
    v[tensor + "_BATCH"] = stride(0);
    v[tensor + "_HEAD"] = stride(1);
    v[tensor + "_ROW"] = stride(2);
  };
  place("Q", body.q);
  place("K", body.k);
  place("V", body.v);
  place("O", body.output);
  if (!reads_mask(body)) return v;
  const MaskReads mask = mask_reads(body);
  v["M_tensor"] = body.mask->tensor;
  v["M_offset"] = body.mask->offset;
  v["M_BATCH"] = mask.batch;
  v["M_HEAD"] = mask.head;
  v["M_ROW"] = mask.row;
  return v;
}

Result<Candidate> candidate(const rules::AttentionBody& body, const Config& c,
                            const arch::Arch& arch) {
  const Source source("kernels/attention.py", std::string(kernel_file("attention.py")));
  TESSERA_TRY(made, language::elaborate(source, "attention", options_of(body, c)));
  for (const Diagnostic& finding : core::verify(made, arch)) return error(finding);
  auto kernel = std::make_shared<const core::Kernel>(std::move(made));
  lower::Options options;
  options.places_at_launch = true;
  options.describe_name = std::string(name);
  TESSERA_TRY(lowered, lower::lower(*kernel, options));
  Candidate out;
  out.realizer = std::string(name);
  out.config = c.to_json();
  if (body.mask && !reads_mask(body)) out.unread = {body.mask->tensor};
  out.predicted_ms = predict_ms(body, c.tile, arch);
  out.source = toolchain::Source{.name = std::string(name),
                                 .text = lowered.text,
                                 .arch = std::string(arch.name),
                                 .prove = proof_of(kernel)};
  Launch launch;
  const std::map<std::string, int64_t> values = values_of(body);
  for (const std::string& integer : lowered.ints) launch.ints.push_back(values.at(integer));
  out.launches.push_back(std::move(launch));
  return out;
}

/// Sections of heads: few, so that keys and values stay in the cache, and more, which share the
/// work out more evenly. Heads that share keys and values belong together.
std::vector<int64_t> sections(const rules::AttentionBody& body) {
  const int64_t group = body.heads / body.kv_heads;
  return group > 1 ? std::vector<int64_t>{group, 4 * group} : std::vector<int64_t>{2, 8};
}

std::vector<Config> configs(const rules::AttentionBody& body, const arch::Arch& arch,
                            std::map<std::string, int>& pruned) {
  std::vector<Config> out;
  for (const int queries : {128, 192})
    for (int keys = reads_mask(body) ? 48 : 64; keys <= 192; keys += 16)
      for (const bool turns : {true, false}) {
        AttentionTile tile{.queries = queries, .keys = keys, .turns = turns, .query_slots = 2};
        if (too_large(body, tile, arch)) tile.query_slots = 1;
        if (const auto why = too_large(body, tile, arch)) {
          ++pruned[std::string(*why)];
          continue;
        }
        for (const int64_t section : sections(body)) out.push_back({tile, section});
      }
  return out;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::AttentionBody*>(pattern.body.get());
  if (body == nullptr)
    return error(fail(unsupported_attention, "the pattern has no attention body"));
  TESSERA_CHECK(check(pattern, *body, arch));
  std::map<std::string, int> pruned;
  std::vector<Config> found = configs(*body, arch, pruned);
  std::stable_sort(found.begin(), found.end(), [&](const Config& a, const Config& b) {
    return predict_ms(*body, a.tile, arch) < predict_ms(*body, b.tile, arch);
  });
  // Only those that are offered are written: it takes some milliseconds each. Each is proved before
  // it is compiled, which takes up to 1.5 s.
  constexpr std::size_t most = 12;
  Space space;
  for (const Config& c : found) {
    if (space.candidates.size() == most) break;
    Result<Candidate> made = candidate(*body, c, arch);
    if (!made) {
      ++pruned[made.error().message];
      continue;
    }
    space.candidates.push_back(std::move(*made));
  }
  if (space.candidates.empty()) {
    Diagnostic d = fail(unsupported_attention, "no tile fits head dim {}", body->head_dim);
    for (const auto& [reason, times] : pruned)
      d.notes.push_back(fmt::format("{}: {}", times, reason));
    return error(std::move(d));
  }
  space.pruned.assign(pruned.begin(), pruned.end());
  return space;
}

}  // namespace

extern const Realizer tile_flash_attention{
    "tile_flash_attention",
    "kernels/attention.py, written in the kernel language and proved before it is compiled: 16 "
    "bits, causal, full or a window of keys, mask tensors, capped scores, grouped heads, any "
    "strides that TMA can follow",
    Kind::synthesized, "attention", realize};

}  // namespace tessera::realize
