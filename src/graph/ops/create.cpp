// New tensors from numbers.
#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph::ops {
namespace {

int fill(ElementCall& c) {
  return c.present("fill_value") ? c.arg("fill_value") : c.arg("value");
}

int zeros(ElementCall& c) {
  return c.constant(0);
}

int ones(ElementCall& c) {
  return c.constant(1);
}

int scalar(ElementCall& c) {
  return c.arg("s");
}

constexpr OpRecord records[] = {
    {"aten.full", OpKind::create, fill},
    {"aten.full_like", OpKind::create, fill},
    {"aten.fill", OpKind::create, fill},
    {"aten.zeros", OpKind::create, zeros},
    {"aten.zeros_like", OpKind::create, zeros},
    {"aten.ones", OpKind::create, ones},
    {"aten.ones_like", OpKind::create, ones},
    {"aten.new_zeros", OpKind::create},
    {"aten.new_ones", OpKind::create},
    {"aten.new_full", OpKind::create},
    {"aten.empty", OpKind::create},
    {"aten.empty_like", OpKind::create},
    {"aten.arange", OpKind::create},
    {"aten.linspace", OpKind::create},
    {"aten.eye", OpKind::create},
    {"aten.scalar_tensor", OpKind::create, scalar},
    {"aten.tril_indices", OpKind::create},
    {"aten.triu_indices", OpKind::create},
};

}  // namespace

extern const OpFamily create{"create", records};

}  // namespace tessera::graph::ops
