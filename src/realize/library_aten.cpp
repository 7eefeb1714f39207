// The pattern's own ATen nodes, run eagerly: the candidate that every pattern has, so that a plan
// never loses to eager.
#include "realize/realize.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern&, const graph::Graph&, const arch::Arch&) {
  Candidate c;
  c.realizer = "library_aten";
  c.kind = Kind::library;
  c.config = {{"backend", "aten"}};
  c.call = LibraryCall{.function = "aten"};
  return Space{.candidates = {std::move(c)}, .pruned = {}};
}

}  // namespace

extern const Realizer library_aten = {
    .name = "library_aten",
    .doc = "the pattern's own ATen nodes, one after the other: what eager PyTorch does",
    .kind = Kind::library,
    .rule = "",
    .realize = realize,
};

}  // namespace tessera::realize
