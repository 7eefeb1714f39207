// One row at a time: what the normalization needs of the row, then its elements.
#include "rules/row_norm.h"

#include <numeric>

#include "skeleton/common/text.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

using rules::RowNormBody;

std::string over_columns(const RowNormBody& body, const std::string& text) {
  return fmt::format("for (Index j = 0; j < {}; ++j) {{\n", body.columns) + indented(text) + "}\n";
}

/// Passes over the row that find what `normalized` names.
std::string statistics(const RowNormBody& body, const std::string& pre, const std::string& x) {
  const int64_t n = body.columns;
  const auto pass = [&](const std::string& step) { return over_columns(body, pre + step); };
  if (body.kind == "layer_norm") {
    return "accumulator sum = 0;\n" + pass(fmt::format("sum += {};\n", x)) +
           fmt::format("const accumulator mean = sum / {};\naccumulator squares = 0;\n", n) +
           pass(fmt::format("squares += ({0} - mean) * ({0} - mean);\n", x)) +
           fmt::format("const accumulator scale = 1 / sqrt(squares / {} + {:.17g});\n", n,
                       body.eps);
  }
  if (body.kind == "rms_norm") {
    return "accumulator squares = 0;\n" +
           pass(fmt::format("squares += accumulator({0}) * {0};\n", x)) +
           fmt::format("const accumulator scale = 1 / sqrt(squares / {} + {:.17g});\n", n,
                       body.eps);
  }
  return "float most = -tsr_inf();\n" + pass(fmt::format("most = tsr_maximum(most, {});\n", x)) +
         "accumulator sum = 0;\n" + pass(fmt::format("sum += exp(accumulator({}) - most);\n", x));
}

std::string normalized(const RowNormBody& body, const std::string& x) {
  if (body.kind == "layer_norm") return fmt::format("float(({} - mean) * scale)", x);
  if (body.kind == "rms_norm") return fmt::format("float({} * scale)", x);
  if (body.kind == "softmax") return fmt::format("float(exp(accumulator({}) - most) / sum)", x);
  return fmt::format("float(accumulator({}) - most - log(sum))", x);
}

Result<std::vector<Loop>> write(const rules::Pattern& pattern) {
  const auto* body = dynamic_cast<const RowNormBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(no_skeleton, "the pattern has no row_norm body"));
  std::vector<std::string> at, x, results;
  std::string text = split_item(body->rows, "i", at);
  at.emplace_back("j");
  std::vector<std::string> operands;
  for (const rules::TensorView& v : body->operands) operands.push_back(load(v, at));
  const std::string pre = evaluate(body->pre, operands, "x", x);
  text += statistics(*body, pre, x.front());
  std::string last = pre + fmt::format("const float y = {};\n", normalized(*body, x.front()));
  std::vector<std::string> after = {"y", x.front()};
  after.insert(after.end(), operands.begin(), operands.end());
  last += evaluate(body->post, after, "p", results);
  for (std::size_t r = 0; r < results.size(); ++r) last += store(body->outputs[r], at, results[r]);
  text += over_columns(*body, last);
  const int64_t rows =
      std::accumulate(body->rows.begin(), body->rows.end(), int64_t{1}, std::multiplies<>());
  return std::vector<Loop>{{.name = "rows", .items = rows, .body = indented(text)}};
}

}  // namespace

extern const Skeleton row_norm;
const Skeleton row_norm = {.rule = "row_norm", .write = write};

}  // namespace tessera::skeleton
