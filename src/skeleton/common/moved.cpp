#include "skeleton/common/moved.h"

#include <algorithm>
#include <fmt/format.h>

#include "graph/ops.h"

namespace tessera::skeleton {
namespace {

using Indices = std::vector<std::string>;

std::optional<Moved> rolled(const graph::Node& node, const std::vector<int64_t>& shape,
                            const Indices& at) {
  const auto shifts = node.integers("shifts"), dims = node.integers("dims");
  if (dims.size() != shifts.size()) return std::nullopt;
  Moved out{.at = at, .condition = ""};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = graph::wrap_dim(dims[i], at.size());
    const int64_t n = std::max<int64_t>(1, shape[d]);
    out.at[d] = fmt::format("({} + {}) % {}", out.at[d], ((-shifts[i] % n) + n) % n, n);
  }
  return out;
}

std::optional<Moved> flipped(const graph::Node& node, const std::vector<int64_t>& shape,
                             const Indices& at) {
  Moved out{.at = at, .condition = ""};
  for (const int64_t dim : node.integers("dims")) {
    const std::size_t d = graph::wrap_dim(dim, at.size());
    out.at[d] = fmt::format("({} - {})", shape[d] - 1, at[d]);
  }
  return out;
}

std::optional<Moved> triangle(const graph::Node& node, const Indices& at, const char* relation) {
  if (at.size() < 2) return std::nullopt;
  return Moved{.at = at,
               .condition = fmt::format("{} - {} {} {}", at.back(), at[at.size() - 2], relation,
                                        node.integer("diagonal").value_or(0))};
}

/// The pads come in pairs, the last dim first.
std::optional<Moved> padded(const graph::Node& node, const std::vector<int64_t>& shape,
                            const Indices& at) {
  const std::string mode = node.text("mode");
  if (!mode.empty() && mode != "constant") return std::nullopt;
  const std::vector<int64_t> pad = node.integers("pad");
  Moved out{.at = at,
            .condition = "",
            .otherwise = fmt::format("float({})", node.number("value").value_or(0))};
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const std::size_t d = at.size() - 1 - i;
    out.at[d] = fmt::format("({} - {})", at[d], pad[2 * i]);
    out.condition += fmt::format("{0}{1} >= 0 && {1} < {2}", out.condition.empty() ? "" : " && ",
                                 out.at[d], shape[d]);
  }
  return out;
}

}  // namespace

std::optional<Moved> moved(const graph::Node& node, const std::vector<int64_t>& shape,
                           const Indices& at) {
  const std::string_view op = graph::base_name(node.op);
  if (op == "aten.roll") return rolled(node, shape, at);
  if (op == "aten.flip") return flipped(node, shape, at);
  if (op == "aten.tril") return triangle(node, at, "<=");
  if (op == "aten.triu") return triangle(node, at, ">=");
  if (op == "aten.pad" || op == "aten.constant_pad_nd") return padded(node, shape, at);
  if (op == "aten.clone" || op == "aten.contiguous") return Moved{.at = at, .condition = ""};
  return std::nullopt;
}

}  // namespace tessera::skeleton
