// Scaled dot-product attention and its backends.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

/// Two products, Q K^T and P V; half of them when causal (q_length = kv_length).
double two_products(const Graph& g, const Node& n) {
  const auto& q = g.value(n.tensor("query")).type.shape;
  const auto& k = g.value(n.tensor("key")).type.shape;
  const auto& v = g.value(n.tensor("value")).type.shape;
  double rows = 1;
  for (std::size_t i = 0; i + 1 < q.size(); ++i) rows *= static_cast<double>(q[i]);
  const auto keys = static_cast<double>(k[k.size() - 2]);
  const double flops = 2 * rows * keys * static_cast<double>(q.back() + v.back());
  return n.flag("is_causal").value_or(false) ? flops / 2 : flops;
}

constexpr OpRecord records[] = {
    {"aten.scaled_dot_product_attention", OpKind::attention, {}, two_products},
    {"aten._scaled_dot_product_flash_attention", OpKind::attention, {}, two_products},
    {"aten._scaled_dot_product_flash_attention_for_cpu", OpKind::attention, {}, two_products},
    {"aten._scaled_dot_product_efficient_attention", OpKind::attention, {}, two_products},
    {"aten._scaled_dot_product_cudnn_attention", OpKind::attention, {}, two_products},
    {"aten._scaled_dot_product_attention_math", OpKind::attention, {}, two_products},
};

}  // namespace

extern const OpFamily attention{"attention", records};

}  // namespace tessera::graph::ops
