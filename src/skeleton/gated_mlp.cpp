// One element of the result at a time: two dot products that share a row.
#include "rules/gated_mlp.h"

#include "skeleton/common/text.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

Result<std::vector<Loop>> write(const rules::Pattern& pattern) {
  const auto* body = dynamic_cast<const rules::GatedMlpBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(no_skeleton, "the pattern has no gated_mlp body"));
  std::vector<std::string> at, results;
  std::string text = split_item({body->m, body->n}, "i", at);
  text += "accumulator gate = 0, up = 0;\n";
  text += fmt::format("for (Index k = 0; k < {}; ++k) {{\n", body->k);
  text += fmt::format("  const accumulator a = {};\n", load(body->a, {at[0], "k"}));
  text += fmt::format("  gate += a * {};\n  up += a * {};\n}}\n", load(body->b0, {at[1], "k"}),
                      load(body->b1, {at[1], "k"}));
  std::vector<std::string> operands = {"float(gate)", "float(up)"};
  for (const rules::TensorView& v : body->operands) operands.push_back(load(v, at));
  text += evaluate(body->epilogue, operands, "e", results);
  for (std::size_t r = 0; r < results.size(); ++r) text += store(body->outputs[r], at, results[r]);
  return std::vector<Loop>{
      {.name = "elements", .items = body->m * body->n, .body = indented(text)}};
}

}  // namespace

extern const Skeleton gated_mlp;
const Skeleton gated_mlp = {.rule = "gated_mlp", .write = write};

}  // namespace tessera::skeleton
