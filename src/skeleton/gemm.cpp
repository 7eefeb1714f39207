// One element of the result at a time.
#include "rules/gemm.h"

#include <numeric>

#include "skeleton/common/text.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

using rules::GemmBody;
using Names = std::vector<std::string>;

/// `acc = sum over k of A[batch..., row, k] B[batch..., column, k]`.
std::string dot(const GemmBody& body, const Names& batch, const std::string& row,
                const std::string& column, const std::string& acc) {
  Names a = batch, b = batch;
  a.insert(a.end(), {row, "k"});
  b.insert(b.end(), {column, "k"});
  return fmt::format(
      "accumulator {0} = 0;\nfor (Index k = 0; k < {1}; ++k) {0} += accumulator({2}) * {3};\n", acc,
      body.k, load(body.a, a), load(body.b, b));
}

std::string whole(const GemmBody& body, const Names& at) {
  const Names batch(at.begin(), at.end() - 2);
  std::string text = dot(body, batch, at[at.size() - 2], at.back(), "acc");
  Names operands = {"float(acc)"}, results;
  for (const rules::TensorView& v : body.operands) operands.push_back(load(v, at));
  text += evaluate(body.epilogue, operands, "e", results);
  for (std::size_t r = 0; r < results.size(); ++r) text += store(body.outputs[r], at, results[r]);
  return text;
}

/// The row as the dims that a part's operands have for it.
Names rows_of(const rules::TensorView& v, std::size_t columns, const std::string& m) {
  const std::size_t rank = v.shape.size() - columns;
  if (rank == 1) return {m};
  return {fmt::format("({} / {})", m, v.shape[1]), fmt::format("({} % {})", m, v.shape[1])};
}

std::string part(const GemmBody& body, const rules::ColumnPart& p, const Names& at) {
  const Names batch(at.begin(), at.end() - 2);
  const std::string &m = at[at.size() - 2], &n = at.back();
  const int64_t half = p.period / 2;
  std::string text = fmt::format("const Index c = {} - {};  // within the part\n", n, p.first);
  Names operands, results, columns;
  if (p.period == 0) {
    text += dot(body, batch, m, n, "acc");
    operands = {"float(acc)"};
    columns = {"c"};
  } else {
    text += fmt::format("const Index group = c / {0}, h = c % {1}, low = {2} + group * {0} + h;\n",
                        p.period, half, p.first);
    text += dot(body, batch, m, "low", "acc") +
            dot(body, batch, m, fmt::format("(low + {})", half), "other");
    operands = {"float(acc)", "float(other)"};
    columns = {"group", "h"};
  }
  for (const rules::TensorView& v : p.operands) {
    Names place = rows_of(v, columns.size(), m);
    place.insert(place.end(), columns.begin(), columns.end());
    operands.push_back(load(v, place));
  }
  text += evaluate(p.dag, operands, "e", results);
  const std::string value =
      p.period == 0 ? results[0]
                    : fmt::format("c % {} < {} ? {} : {}", p.period, half, results[0], results[1]);
  text += store(body.outputs[0], at, value);
  return fmt::format("if ({0} >= {1} && {0} < {2}) {{\n", n, p.first, p.first + p.columns) +
         indented(text) + "}\n";
}

Result<std::vector<Loop>> write(const rules::Pattern& pattern) {
  const auto* body = dynamic_cast<const GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(no_skeleton, "the pattern has no gemm body"));
  Names at;
  const std::vector<int64_t>& shape = body->outputs.front().shape;
  std::string text = split_item(shape, "i", at);
  if (body->parts.empty()) text += whole(*body, at);
  for (const rules::ColumnPart& p : body->parts) text += part(*body, p, at);
  const int64_t items =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return std::vector<Loop>{{.name = "elements", .items = items, .body = indented(text)}};
}

}  // namespace

extern const Skeleton gemm;
const Skeleton gemm = {.rule = "gemm", .write = write};

}  // namespace tessera::skeleton
