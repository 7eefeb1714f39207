#include "skeleton/common/text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tessera::skeleton {

std::string element(const rules::TensorView& v, const std::vector<std::string>& indices) {
  std::string at;
  for (std::size_t d = 0; d < v.strides.size() && d < indices.size(); ++d) {
    if (v.strides[d] == 0 || v.shape[d] == 1) continue;
    at += at.empty() ? "" : " + ";
    at += v.strides[d] == 1 ? indices[d] : fmt::format("{} * {}", indices[d], v.strides[d]);
  }
  if (v.offset != 0) at += (at.empty() ? "" : " + ") + std::to_string(v.offset);
  return fmt::format("t{}[{}]", v.tensor, at.empty() ? "0" : at);
}

std::string load(const rules::TensorView& v, const std::vector<std::string>& indices) {
  return "load(" + element(v, indices) + ")";
}

std::string store(const rules::TensorView& v, const std::vector<std::string>& indices,
                  const std::string& value) {
  return fmt::format("store(&{}, {});\n", element(v, indices), value);
}

std::string split_item(const std::vector<int64_t>& shape, const std::string& prefix,
                       std::vector<std::string>& names) {
  std::string out;
  int64_t below = 1, total = 1;
  for (const int64_t n : shape) total *= n;
  std::vector<std::string> lines;
  names.assign(shape.size(), "");
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) {
      names[d] = "0";
      continue;
    }
    names[d] = fmt::format("{}{}", prefix, d);
    const std::string whole = below == 1 ? "item" : fmt::format("item / {}", below);
    const bool outermost = below * shape[d] >= total;
    const std::string value = outermost ? whole : fmt::format("{} % {}", whole, shape[d]);
    lines.push_back(fmt::format("const Index {} = {};  // of {}\n", names[d], value, shape[d]));
    below *= shape[d];
  }
  for (std::size_t i = lines.size(); i-- > 0;) out += lines[i];
  return out;
}

std::string evaluate(const pointwise::Dag& dag, const std::vector<std::string>& operands,
                     const std::string& prefix, std::vector<std::string>& results) {
  return pointwise::emit(dag, operands, prefix, &results);
}

std::string indented(const std::string& text, int levels) {
  std::string out;
  const std::string margin(static_cast<std::size_t>(2 * levels), ' ');
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) out += margin + line + "\n";
  }
  return out;
}

}  // namespace tessera::skeleton
