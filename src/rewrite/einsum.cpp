// einsum of two operands as a matrix product over regrouped dims.
#include <algorithm>
#include <map>

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

struct Equation {
  std::string a;
  std::string b;
  std::string out;
};

/// "bij,jk->bik"; an equation without an arrow names the labels that occur once, in order.
std::optional<Equation> parse(std::string text) {
  std::erase(text, ' ');
  const std::size_t comma = text.find(',');
  const std::size_t arrow = text.find("->");
  if (comma == std::string::npos || text.find('.') != std::string::npos) return std::nullopt;
  Equation e;
  e.a = text.substr(0, comma);
  e.b = text.substr(comma + 1, arrow == std::string::npos ? arrow : arrow - comma - 1);
  if (e.b.find(',') != std::string::npos) return std::nullopt;
  if (arrow != std::string::npos) {
    e.out = text.substr(arrow + 2);
    return e;
  }
  for (const char c : e.a + e.b) {
    if ((e.a.find(c) == std::string::npos) != (e.b.find(c) == std::string::npos)) e.out += c;
  }
  std::sort(e.out.begin(), e.out.end());
  return e;
}

bool distinct(std::string labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) == labels.end();
}

bool has(const std::string& labels, char c) {
  return labels.find(c) != std::string::npos;
}

/// The labels by their part in the product; nullopt when it is none (a label summed on one side
/// alone, a diagonal, nothing summed).
struct Roles {
  std::string batch;
  std::string m;
  std::string n;
  std::string k;
};

std::optional<Roles> roles_of(const Equation& e) {
  if (!distinct(e.a) || !distinct(e.b) || !distinct(e.out)) return std::nullopt;
  Roles r;
  for (const char c : e.out) {
    if (!has(e.a, c) && !has(e.b, c)) return std::nullopt;
    (has(e.a, c) && has(e.b, c) ? r.batch : has(e.a, c) ? r.m : r.n) += c;
  }
  for (const char c : e.a) {
    if (has(e.out, c)) continue;
    if (!has(e.b, c)) return std::nullopt;
    r.k += c;
  }
  for (const char c : e.b) {
    if (!has(e.out, c) && !has(e.a, c)) return std::nullopt;
  }
  return r.k.empty() ? std::nullopt : std::optional(r);
}

using Sizes = std::map<char, int64_t>;

bool collect_sizes(const std::string& labels, const std::vector<int64_t>& shape, Sizes& sizes) {
  if (labels.size() != shape.size()) return false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!sizes.emplace(labels[i], shape[i]).second && sizes[labels[i]] != shape[i]) return false;
  }
  return true;
}

std::vector<int64_t> shape_of(const std::string& labels, const Sizes& sizes) {
  std::vector<int64_t> out;
  for (const char c : labels) out.push_back(sizes.at(c));
  return out;
}

int64_t count(const std::string& labels, const Sizes& sizes) {
  int64_t n = 1;
  for (const char c : labels) n *= sizes.at(c);
  return n;
}

std::vector<int64_t> order(const std::string& from, const std::string& to) {
  std::vector<int64_t> out;
  for (const char c : to) out.push_back(static_cast<int64_t>(from.find(c)));
  return out;
}

ValueId product(Graph& g, ValueId left, ValueId right, NodeId before, const Node& like) {
  const TensorType& a = g.value(left).type;
  const TensorType& b = g.value(right).type;
  std::vector<int64_t> shape(a.shape.begin(), a.shape.end() - 1);
  shape.push_back(b.shape.back());
  const bool batched = b.shape.size() == 3;
  return insert(g,
                {batched ? "bmm" : "matmul",
                 batched ? "aten.bmm.default" : "aten.matmul.default",
                 {{"self", left}, {batched ? "mat2" : "other", right}},
                 {a.dtype, shape, contiguous_strides(shape)}},
                before, like);
}

bool rewrite_one(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  if (!is_op(n, "aten.einsum")) return false;
  const std::vector<ValueId> operands = tensor_arguments(n);
  const auto e = parse(n.text("equation"));
  if (!e || operands.size() != 2) return false;
  const auto r = roles_of(*e);
  Sizes sizes;
  if (!r || !collect_sizes(e->a, g.value(operands[0]).type.shape, sizes) ||
      !collect_sizes(e->b, g.value(operands[1]).type.shape, sizes))
    return false;
  // Without batch dims the rows keep their dims: a product with a weight is a linear then.
  const bool batched = !r->batch.empty();
  const int64_t batch = count(r->batch, sizes);
  const int64_t k = count(r->k, sizes);
  std::vector<int64_t> rows = batched ? std::vector<int64_t>{batch, count(r->m, sizes)}
                                      : shape_of(r->m.empty() ? "" : r->m, sizes);
  if (rows.empty()) rows = {1};
  std::vector<int64_t> left_shape = rows;
  left_shape.push_back(k);
  std::vector<int64_t> right_shape = {k, count(r->n, sizes)};
  if (batched) right_shape.insert(right_shape.begin(), batch);
  const ValueId left = regrouped(
      g, permuted(g, operands[0], order(e->a, r->batch + r->m + r->k), id, n), left_shape, id, n);
  const ValueId right = regrouped(
      g, permuted(g, operands[1], order(e->b, r->batch + r->k + r->n), id, n), right_shape, id, n);
  const ValueId made = product(g, left, right, id, n);
  const std::string grouped = r->batch + r->m + r->n;
  ValueId out = regrouped(g, made, shape_of(grouped, sizes), id, n);
  out = permuted(g, out, order(grouped, e->out), id, n);
  if (out != made) g.node(g.value(made).producer).covers = n.covers;
  substitute(g, log, "einsum that is a product", id, out, {id});
  return true;
}

}  // namespace

bool rewrite_einsum(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> nodes = g.order;
  for (const NodeId id : nodes) changed |= rewrite_one(g, log, id);
  return changed;
}

}  // namespace tessera::rewrite
