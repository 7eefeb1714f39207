// Edits of what a softmax computes: its greatest scores, its powers, and what corrects its sums.
#include <limits>
#include <memory>

#include "core/testing/mutate.h"
#include "core/testing/ops.h"

namespace tessera::core::testing {
namespace {

using pointwise::Dag;
using Kind = Dag::Node::Kind;

/// Changes one DAG; false where it does not apply.
using Edit = bool (*)(Dag&);

bool is_call(const Dag::Node& n, std::string_view name) {
  return n.kind == Kind::call && n.function->name == name;
}
bool has_call(const Dag& dag, std::string_view name) {
  for (const Dag::Node& n : dag.nodes)
    if (is_call(n, name)) return true;
  return false;
}
Dag::Node* call(Dag& dag, std::string_view name) {
  for (Dag::Node& n : dag.nodes)
    if (is_call(n, name)) return &n;
  return nullptr;
}

bool zero_for_infinity(Dag& dag) {
  for (Dag::Node& n : dag.nodes)
    if (n.kind == Kind::constant && n.constant == -std::numeric_limits<double>::infinity())
      return n.constant = 0, true;
  return false;
}

/// e for 2, or the other way round.
bool other_base(Dag& dag) {
  if (!has_call(dag, "exp2_flushed") && !has_call(dag, "exp2")) return false;
  bool any = false;
  for (Dag::Node& n : dag.nodes)
    if (n.kind == Kind::constant && n.constant != 0) n.constant *= 0.6931471805599453, any = true;
  return any;
}

bool exchanged_difference(Dag& dag) {
  Dag::Node* const n = call(dag, "sub");
  if (n == nullptr) return false;
  std::swap(n->arguments[0], n->arguments[1]);
  return true;
}

bool least_for_greatest(Dag& dag) {
  Dag::Node* const n = call(dag, "maximum");
  if (n == nullptr) return false;
  n->function = pointwise::find("minimum");
  return true;
}

/// The first product within a sum is its first factor alone.
bool dropped_factor(Dag& dag) {
  for (Dag::Node& n : dag.nodes) {
    if (!is_call(n, "add") && !is_call(n, "sub")) continue;
    for (int& a : n.arguments) {
      const Dag::Node& from = dag.nodes[static_cast<std::size_t>(a)];
      if (is_call(from, "mul")) return a = from.arguments[0], true;
    }
  }
  return false;
}

/// The power of a power: of what was a power, nothing else changes.
bool twice_the_exponent(Dag& dag) {
  Dag::Node* const n = call(dag, "exp2_flushed");
  if (n == nullptr) return false;
  const int exponent = n->arguments[0];
  const std::size_t at = static_cast<std::size_t>(n - dag.nodes.data());
  // Nodes stand in topological order: the doubled exponent before the power.
  Dag out;
  std::vector<int> moved;
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    Dag::Node node = dag.nodes[i];
    for (int& a : node.arguments) a = moved[static_cast<std::size_t>(a)];
    if (i == at) {
      const int x = moved[static_cast<std::size_t>(exponent)];
      node.arguments[0] = out.add_call("add", {x, x});
    }
    out.nodes.push_back(std::move(node));
    moved.push_back(static_cast<int>(out.nodes.size()) - 1);
  }
  for (const int r : dag.results) out.results.push_back(moved[static_cast<std::size_t>(r)]);
  dag = std::move(out);
  return true;
}

struct Operator {
  const char* name;
  const char* what;
  Edit edit;
};
constexpr Operator operators[] = {
    {"zero_for_infinity", "-inf is 0", zero_for_infinity},
    {"other_base", "powers are of another base", other_base},
    {"exchanged_difference", "a difference is the other way round", exchanged_difference},
    {"least_for_greatest", "the least of two is taken, not the greatest", least_for_greatest},
    {"dropped_factor", "a factor within a sum is left out", dropped_factor},
    {"twice_the_exponent", "a power has twice the exponent", twice_the_exponent},
};

std::vector<Compute*> computes_of(Kernel& kernel) {
  std::vector<Compute*> out;
  for (Op* op : ops_of(kernel.body))
    if (auto* c = std::get_if<Compute>(&op->node)) out.push_back(c);
  return out;
}

}  // namespace

std::vector<Mutant> power_mutants(const Kernel& kernel) {
  std::vector<Mutant> out;
  for (const Operator& o : operators) {
    Kernel seen = kernel;
    const std::vector<Compute*> all = computes_of(seen);
    for (std::size_t i = 0, found = 0; i < all.size(); ++i) {
      Dag dag = *all[i]->dag;
      if (!o.edit(dag)) continue;
      Mutant m{o.name, Breaks::data, static_cast<int>(found++), o.what, kernel};
      computes_of(m.kernel)[i]->dag = std::make_shared<Dag>(std::move(dag));
      out.push_back(std::move(m));
    }
  }
  return out;
}

}  // namespace tessera::core::testing
