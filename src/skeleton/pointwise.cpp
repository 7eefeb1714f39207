// Element by element, or one kept element of a reduction at a time.
#include "rules/pointwise.h"

#include <numeric>

#include "skeleton/common/text.h"
#include "skeleton/skeleton.h"

namespace tessera::skeleton {
namespace {

using rules::PointwiseBody;

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string values(const PointwiseBody::Group& group, const std::vector<std::string>& at,
                   std::vector<std::string>& results) {
  std::vector<std::string> operands;
  for (const rules::TensorView& v : group.operands) operands.push_back(load(v, at));
  return evaluate(group.dag, operands, "x", results);
}

Loop elementwise(const PointwiseBody::Group& group, std::size_t number) {
  std::vector<std::string> at, results;
  std::string body = split_item(group.shape, "i", at);
  body += values(group, at, results);
  for (std::size_t r = 0; r < results.size(); ++r) body += store(group.outputs[r], at, results[r]);
  return {.name = fmt::format("elements{}", number),
          .items = product(group.shape),
          .body = indented(body)};
}

Loop reduction(const PointwiseBody& body, const PointwiseBody::Group& group, std::size_t number) {
  const std::size_t kept = group.shape.size() - static_cast<std::size_t>(body.reduced_dims);
  const std::vector<int64_t> outer(group.shape.begin(),
                                   group.shape.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<std::string> at, results;
  std::string text = split_item(outer, "i", at);
  for (std::size_t r = 0; r < group.dag.results.size(); ++r) {
    const bool max = body.reduction == "amax", min = body.reduction == "amin";
    const char* start = max                        ? "-tsr_inf()"
                        : min                      ? "tsr_inf()"
                        : body.reduction == "prod" ? "1"
                                                   : "0";
    text += fmt::format("accumulator a{} = {};\n", r, start);
  }
  std::vector<std::string> inner = at;
  int levels = 0;
  for (std::size_t d = kept; d < group.shape.size(); ++d, ++levels) {
    inner.push_back(fmt::format("r{}", d));
    text += indented(
        fmt::format("for (Index r{0} = 0; r{0} < {1}; ++r{0}) {{\n", d, group.shape[d]), levels);
  }
  text += indented(values(group, inner, results), levels);
  for (std::size_t r = 0; r < results.size(); ++r) {
    const std::string step = body.reduction == "amax"   ? "a{0} = tsr_maximum(a{0}, {1});\n"
                             : body.reduction == "amin" ? "a{0} = tsr_minimum(a{0}, {1});\n"
                             : body.reduction == "prod" ? "a{0} *= {1};\n"
                                                        : "a{0} += {1};\n";
    text += indented(fmt::format(fmt::runtime(step), r, results[r]), levels);
  }
  while (levels > 0) text += indented("}\n", --levels);
  const int64_t count = product(group.shape) / std::max<int64_t>(1, product(outer));
  for (std::size_t r = 0; r < group.dag.results.size(); ++r) {
    std::string value = fmt::format("float(a{})", r);
    if (body.reduction == "mean") value = fmt::format("float(a{} / {})", r, count);
    std::vector<std::string> last = {value};
    if (!body.finish.empty()) text += evaluate(body.finish, {value}, fmt::format("f{}_", r), last);
    text += store(group.outputs[r], at, last.front());
  }
  return {
      .name = fmt::format("reduced{}", number), .items = product(outer), .body = indented(text)};
}

Result<std::vector<Loop>> write(const rules::Pattern& pattern) {
  const auto* body = dynamic_cast<const PointwiseBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(no_skeleton, "the pattern has no pointwise body"));
  std::vector<Loop> out;
  for (std::size_t g = 0; g < body->groups.size(); ++g) {
    out.push_back(body->reduction.empty() ? elementwise(body->groups[g], g)
                                          : reduction(*body, body->groups[g], g));
  }
  return out;
}

}  // namespace

extern const Skeleton pointwise;
const Skeleton pointwise = {.rule = "pointwise", .write = write};

}  // namespace tessera::skeleton
