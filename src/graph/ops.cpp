// Looking up op records, and what a node costs unfused.
#include "graph/ops.h"

#include <algorithm>
#include <map>
#include <set>

#include "pointwise/pointwise.h"

namespace tessera::graph {
namespace {

const std::map<std::string_view, const OpRecord*>& index() {
  static const std::map<std::string_view, const OpRecord*> table = [] {
    std::map<std::string_view, const OpRecord*> t;
    for (const OpRecord& record : records()) t.emplace(record.name, &record);
    return t;
  }();
  return table;
}

/// dropout is a no-op in evaluation, and with p = 0.
bool draws_nothing(const Node& n) {
  const auto train = n.flag("train");
  if (!train) return false;
  return !*train || n.number("p").value_or(1) == 0;
}

}  // namespace

std::string_view name_of(OpKind kind) {
  static constexpr std::string_view names[] = {"pointwise", "view",      "copy",      "reduction",
                                               "normalize", "matmul",    "attention", "convolution",
                                               "pooling",   "recurrent", "scan",      "gather",
                                               "loss",      "random",    "create",    "opaque"};
  return names[static_cast<std::size_t>(kind)];
}

std::span<const OpRecord> records() {
  static const std::vector<OpRecord> table = [] {
    std::vector<OpRecord> all;
    for (const OpFamily* family : ops::all())
      all.insert(all.end(), family->ops.begin(), family->ops.end());
    for (const pointwise::Function& f : pointwise::functions())
      if (!f.aten.empty()) all.push_back({f.aten, OpKind::pointwise, Elements(f.name)});
    return all;
  }();
  return table;
}

const OpRecord* find_op(std::string_view op) {
  const auto it = index().find(base_name(op));
  return it == index().end() ? nullptr : it->second;
}

OpKind kind_of(const Node& node) {
  const OpRecord* record = find_op(node.op);
  if (record == nullptr) return OpKind::opaque;
  if (record->kind == OpKind::random && draws_nothing(node)) return OpKind::view;
  return record->kind;
}

bool draws(const Node& node) {
  const bool drops = node.number("dropout_p").value_or(0) != 0 ||  // of attention
                     (node.number("dropout").value_or(0) != 0 && node.flag("train") == true);
  return drops || kind_of(node) == OpKind::random;
}

double flops_of(const Graph& g, const Node& node) {
  const OpRecord* record = find_op(node.op);
  if (record != nullptr && record->flops != nullptr) return record->flops(g, node);
  const OpKind kind = kind_of(node);
  if (kind == OpKind::view || kind == OpKind::copy || kind == OpKind::create) return 0;
  double n = 0;
  if (kind == OpKind::reduction || kind == OpKind::loss) {
    for (const ValueId v : tensor_arguments(node))
      n = std::max(n, static_cast<double>(g.value(v).type.numel()));
  } else {
    for (const ValueId v : node.outputs) n += static_cast<double>(g.value(v).type.numel());
  }
  return n;
}

int64_t bytes_of(const Graph& g, const Node& node) {
  if (kind_of(node) == OpKind::view) return 0;
  std::set<ValueId> seen;
  int64_t bytes = 0;
  for (const ValueId v : tensor_arguments(node)) {
    if (seen.insert(v).second) bytes += g.value(v).type.bytes();
  }
  for (const ValueId v : node.outputs) bytes += g.value(v).type.bytes();
  return bytes;
}

}  // namespace tessera::graph
