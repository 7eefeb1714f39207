// Random numbers; dropout that draws none counts as a view.
#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph::ops {
namespace {

int dropout(ElementCall& c) {
  const bool active =
      c.node().flag("train").value_or(false) && c.node().number("p").value_or(0) != 0;
  return active ? c.failed("dropout draws random numbers") : same_value(c);
}

constexpr OpRecord records[] = {
    {"aten.dropout", OpKind::random, dropout},
    {"aten.native_dropout", OpKind::random},
    {"aten.feature_dropout", OpKind::random, dropout},
    {"aten.alpha_dropout", OpKind::random, dropout},
    {"aten.feature_alpha_dropout", OpKind::random, dropout},
    {"aten.rrelu", OpKind::random},
    {"aten.rrelu_with_noise_functional", OpKind::random},
    {"aten.rand", OpKind::random},
    {"aten.randn", OpKind::random},
    {"aten.rand_like", OpKind::random},
    {"aten.randn_like", OpKind::random},
    {"aten.randint", OpKind::random},
    {"aten.randint_like", OpKind::random},
    {"aten.bernoulli", OpKind::random},
    {"aten.multinomial", OpKind::random},
    {"aten.randperm", OpKind::random},
    {"aten.poisson", OpKind::random},
    {"aten.normal", OpKind::random},
    {"aten.normal_functional", OpKind::random},
    {"aten.uniform", OpKind::random},
    {"aten.exponential", OpKind::random},
    {"aten.geometric", OpKind::random},
    {"aten.cauchy", OpKind::random},
    {"aten.log_normal", OpKind::random},
};

}  // namespace

extern const OpFamily random{"random", records};

}  // namespace tessera::graph::ops
