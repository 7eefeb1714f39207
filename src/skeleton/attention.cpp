// One query row at a time: the largest score, then the weights and what they weigh.
#include "rules/attention.h"

#include "skeleton/common/text.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

/// The keys of `query` outside the band are masked.
std::string cut(const rules::Band& band, const std::string& query) {
  std::string text;
  if (band.lower)
    text += fmt::format("if (j < {} + ({})) score = -tsr_inf();\n", query, *band.lower);
  if (band.upper)
    text += fmt::format("if (j > {} + ({})) score = -tsr_inf();\n", query, *band.upper);
  return text;
}

/// `score`, of query row `i` and key `j`.
std::string score(const rules::AttentionBody& b, const std::vector<std::string>& at) {
  const std::string kv = fmt::format("({} / {})", at[1], b.heads / b.kv_heads);
  std::string text = fmt::format(
      "accumulator score = 0;\nfor (Index d = 0; d < {}; ++d) score += accumulator({}) * {};\n"
      "score *= {:.17g};\n",
      b.head_dim, load(b.q, {at[0], at[1], at[2], "d"}), load(b.k, {at[0], kv, "j", "d"}), b.scale);
  if (b.softcap > 0) text += fmt::format("score = {0:.17g} * tanh(score / {0:.17g});\n", b.softcap);
  if (b.causal) text += fmt::format("if (j > {}) score = -tsr_inf();\n", at[2]);
  if (b.band && !b.mask) text += cut(*b.band, at[2]);
  if (!b.mask) return text;
  const std::string mask = load(*b.mask, {at[0], at[1], at[2], "j"});
  return text + (b.mask->dtype == DType::boolean
                     ? fmt::format("if ({} == 0) score = -tsr_inf();\n", mask)
                     : fmt::format("score += {};\n", mask));
}

std::string over_keys(const rules::AttentionBody& b, const std::string& text) {
  return fmt::format("for (Index j = 0; j < {}; ++j) {{\n", b.kv_length) + indented(text) + "}\n";
}

Result<std::vector<Loop>> write(const rules::Pattern& pattern) {
  const auto* b = dynamic_cast<const rules::AttentionBody*>(pattern.body.get());
  if (b == nullptr) return error(fail(no_skeleton, "the pattern has no attention body"));
  std::vector<std::string> at;
  std::string text = split_item({b->batch, b->heads, b->q_length}, "i", at);
  const std::string kv = fmt::format("({} / {})", at[1], b->heads / b->kv_heads);
  const std::string each = score(*b, at);
  text += "accumulator most = -tsr_inf();\n";
  text += over_keys(*b, each + "most = score != score || score > most ? score : most;\n");
  text += fmt::format("accumulator sum = 0, out[{}] = {{}};\n", b->value_dim);
  text += over_keys(*b, each + "const accumulator weight = exp(score - most);\nsum += weight;\n" +
                            fmt::format("for (Index d = 0; d < {}; ++d) out[d] += weight * {};\n",
                                        b->value_dim, load(b->v, {at[0], kv, "j", "d"})));
  text += fmt::format("for (Index d = 0; d < {}; ++d) {}", b->value_dim,
                      store(b->output, {at[0], at[1], at[2], "d"}, "float(out[d] / sum)"));
  return std::vector<Loop>{
      {.name = "queries", .items = b->batch * b->heads * b->q_length, .body = indented(text)}};
}

}  // namespace

extern const Skeleton attention;
const Skeleton attention = {.rule = "attention", .write = write};

}  // namespace tessera::skeleton
