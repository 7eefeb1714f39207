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

/// The place in a dim of `n` elements that a padded place stands for; nullopt where a pad is not of
/// this kind. Places beside the dim are at most `n` away.
std::optional<std::string> mirrored(std::string_view mode, const std::string& at, int64_t n) {
  if (mode == "reflect")
    return fmt::format("({0} < 0 ? -{0} : {0} >= {1} ? {2} - {0} : {0})", at, n, 2 * (n - 1));
  if (mode == "replicate")
    return fmt::format("({0} < 0 ? 0 : {0} >= {1} ? {2} : {0})", at, n, n - 1);
  if (mode == "circular") return fmt::format("(({0} + {1}) % {1})", at, n);
  return std::nullopt;
}

/// The pads come in pairs, the last dim first.
std::optional<Moved> padded(const graph::Node& node, const std::vector<int64_t>& shape,
                            const Indices& at, const std::string& mode) {
  const bool constant = mode.empty() || mode == "constant";
  std::vector<int64_t> pad = node.integers("pad");
  if (pad.empty()) pad = node.integers("padding");
  Moved out{.at = at,
            .condition = "",
            .otherwise = fmt::format("float({})", node.number("value").value_or(0))};
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const std::size_t d = at.size() - 1 - i;
    out.at[d] = fmt::format("({} - {})", at[d], pad[2 * i]);
    if (!constant) {
      const auto place = mirrored(mode, out.at[d], shape[d]);
      if (!place) return std::nullopt;
      out.at[d] = *place;
      continue;
    }
    out.condition += fmt::format("{0}{1} >= 0 && {1} < {2}", out.condition.empty() ? "" : " && ",
                                 out.at[d], shape[d]);
  }
  return out;
}

/// Windows of `size` elements, `step` apart; the last index is the place in the window.
std::optional<Moved> windows(const graph::Node& node, const Indices& at) {
  if (at.size() < 2) return std::nullopt;  // of a tensor without dims
  const std::size_t d = graph::wrap_dim(node.integer("dimension").value_or(0), at.size() - 1);
  Moved out{.at = Indices(at.begin(), at.end() - 1), .condition = ""};
  out.at[d] = fmt::format("({} * {} + {})", at[d], node.integer("step").value_or(1), at.back());
  return out;
}

/// The tensor side by side with itself, along new dims in front too.
std::optional<Moved> repeated(const std::vector<int64_t>& shape, const Indices& at) {
  Moved out{.at = Indices(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end()),
            .condition = ""};
  for (std::size_t d = 0; d < shape.size(); ++d)
    out.at[d] = fmt::format("({} % {})", out.at[d], std::max<int64_t>(1, shape[d]));
  return out;
}

/// Each element `repeats` times along one dim.
std::optional<Moved> interleaved(const graph::Node& node, const std::vector<int64_t>& shape,
                                 const Indices& at) {
  const auto repeats = node.integer("repeats"), dim = node.integer("dim");
  if (!repeats || *repeats < 1 || !dim) return std::nullopt;
  Moved out{.at = at, .condition = ""};
  const std::size_t d = graph::wrap_dim(*dim, shape.size());
  out.at[d] = fmt::format("({} / {})", at[d], *repeats);
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
  if (op == "aten.pad" || op == "aten.constant_pad_nd")
    return padded(node, shape, at, node.text("mode"));
  if (op.starts_with("aten.reflection_pad")) return padded(node, shape, at, "reflect");
  if (op.starts_with("aten.replication_pad")) return padded(node, shape, at, "replicate");
  if (op == "aten.unfold") return windows(node, at);
  if (op == "aten.repeat") return repeated(shape, at);
  if (op == "aten.repeat_interleave") return interleaved(node, shape, at);
  if (op == "aten.clone" || op == "aten.contiguous") return Moved{.at = at, .condition = ""};
  return std::nullopt;
}

}  // namespace tessera::skeleton
