#include "commands/common/kernel_interface.h"

namespace tessera::commands {
namespace {

Json of_term(term::Term t) {
  if (!t) return nullptr;
  if (t->op == term::Op::constant) return t->value;
  return term::to_string(t);
}

Json of_terms(const std::vector<term::Term>& all) {
  Json out = Json::array();
  for (const term::Term t : all) out.push_back(of_term(t));
  return out;
}

}  // namespace

Json interface_of(const core::Kernel& kernel) {
  Json out = {
      {"schema", "tessera.interface/1"}, {"ints", Json::array()}, {"tensors", Json::array()}};
  for (const term::Term p : kernel.parameters) {
    const term::Bounds& b = p->symbol->bounds;
    out["ints"].push_back({{"name", p->symbol->name},
                           {"lower", of_term(b.lower)},
                           {"below", of_term(b.upper)},
                           {"multiple", b.modulus},
                           {"residue", b.residue}});
  }
  for (const core::Tensor& t : kernel.tensors) {
    if (t.access == core::Access::workspace) continue;
    out["tensors"].push_back({{"name", t.name},
                              {"dtype", std::string(name_of(t.element))},
                              {"access", t.access == core::Access::output ? "output" : "input"},
                              {"extents", of_terms(t.extents)},
                              {"strides", of_terms(t.strides)}});
  }
  return out;
}

}  // namespace tessera::commands
