// The calls of PyTorch's ops that a pattern's rule knows of.
#include "realize/realize.h"

namespace tessera::realize {
namespace {

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch&) {
  const rules::Rule* rule = rules::find(pattern.rule);
  Space space;
  if (rule == nullptr || rule->library == nullptr) return space;
  for (LibraryCall& call : rule->library(pattern)) {
    Candidate c;
    c.realizer = "library_op";
    c.kind = Kind::library;
    c.config = {{"backend", call.arguments.value("op", call.function)}, {"call", call.arguments}};
    c.call = std::move(call);
    space.candidates.push_back(std::move(c));
  }
  return space;
}

}  // namespace

extern const Realizer library_op = {
    .name = "library_op",
    .doc = "PyTorch's ops that compute the pattern, as its rule says",
    .kind = Kind::library,
    .rule = "",
    .realize = realize,
};

}  // namespace tessera::realize
