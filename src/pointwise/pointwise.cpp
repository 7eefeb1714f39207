// The pointwise DAG: building, evaluating, printing and emitting it.
#include "pointwise/pointwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <stdexcept>

namespace tessera::pointwise {
namespace {

using DagNode = Dag::Node;

bool same_constant(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

/// The index of an equal node, or of `node` appended: equal subexpressions are one node.
int intern(std::vector<DagNode>& nodes, DagNode node) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const DagNode& n = nodes[i];
    if (n.kind == node.kind && n.operand == node.operand &&
        same_constant(n.constant, node.constant) && n.function == node.function &&
        n.arguments == node.arguments) {
      return static_cast<int>(i);
    }
  }
  nodes.push_back(std::move(node));
  return static_cast<int>(nodes.size()) - 1;
}

/// How many of the reachable nodes read each node; results count as readers.
std::vector<int> reader_counts(const Dag& dag) {
  std::vector<int> counts(dag.nodes.size(), 0);
  for (const int r : dag.results) counts[static_cast<std::size_t>(r)]++;
  for (std::size_t i = dag.nodes.size(); i-- > 0;) {
    if (counts[i] == 0) continue;
    for (const int a : dag.nodes[i].arguments) counts[static_cast<std::size_t>(a)]++;
  }
  return counts;
}

/// Prints calls that several readers share once, as `$0 = ...; `, in the order in which they are
/// first needed.
class Printer {
 public:
  explicit Printer(const Dag& dag)
      : dag_(dag), counts_(reader_counts(dag)), names_(dag.nodes.size()) {}

  std::string print() {
    std::string results;
    for (const int r : dag_.results) results += (results.empty() ? "" : "; ") + text(r);
    return lets_ + results;
  }

 private:
  std::string text(int index) {
    const auto i = static_cast<std::size_t>(index);
    const DagNode& n = dag_.nodes[i];
    if (n.kind == DagNode::Kind::operand) return fmt::format("%{}", n.operand);
    if (n.kind == DagNode::Kind::constant) return fmt::format("{}", n.constant);
    if (!names_[i].empty()) return names_[i];
    std::string call(n.function->name);
    call += "(";
    for (std::size_t k = 0; k < n.arguments.size(); ++k)
      call += (k ? ", " : "") + text(n.arguments[k]);
    call += ")";
    if (counts_[i] < 2) return call;
    names_[i] = fmt::format("${}", next_++);
    lets_ += fmt::format("{} = {}; ", names_[i], call);
    return names_[i];
  }

  const Dag& dag_;
  std::vector<int> counts_;
  std::vector<std::string> names_;
  std::string lets_;
  int next_ = 0;
};

std::string literal(double value) {
  const auto f = static_cast<float>(value);
  if (std::isnan(f)) return "tsr_nan()";
  if (std::isinf(f)) return f > 0 ? "tsr_inf()" : "(-tsr_inf())";
  std::string text = fmt::format("{}", f);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return std::signbit(f) ? fmt::format("({}f)", text) : text + "f";
}

std::string expand(std::string_view expression, const std::vector<std::string>& arguments) {
  std::string out;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '{') {
      out += arguments.at(static_cast<std::size_t>(expression[i + 1] - '0'));
      i += 2;
    } else {
      out += expression[i];
    }
  }
  return out;
}

}  // namespace

int Dag::add_operand(int operand) {
  return intern(nodes, {.kind = DagNode::Kind::operand, .operand = operand});
}

int Dag::add_constant(double value) {
  return intern(nodes, {.kind = DagNode::Kind::constant, .constant = value});
}

int Dag::add_call(std::string_view function, std::vector<int> arguments) {
  const Function* f = find(function);
  if (f == nullptr) throw std::logic_error(fmt::format("no pointwise function `{}`", function));
  if (static_cast<int>(arguments.size()) != f->arity) {
    throw std::logic_error(
        fmt::format("`{}` takes {} arguments, not {}", function, f->arity, arguments.size()));
  }
  return intern(nodes,
                {.kind = DagNode::Kind::call, .function = f, .arguments = std::move(arguments)});
}

int Dag::operand_count() const {
  int count = 0;
  for (const DagNode& n : nodes) count = std::max(count, n.operand + 1);
  return count;
}

Dag Dag::ordered() const {
  Dag out;
  for (int i = 0; i < operand_count(); ++i) out.add_operand(i);
  std::vector<int> place(nodes.size(), -1);
  const std::function<int(int)> take = [&](int i) {
    int& at = place[static_cast<std::size_t>(i)];
    if (at >= 0) return at;
    DagNode n = nodes[static_cast<std::size_t>(i)];
    for (int& a : n.arguments) a = take(a);
    return at = intern(out.nodes, std::move(n));
  };
  for (const int r : results) out.results.push_back(take(r));
  return out;
}

std::vector<double> Dag::eval(std::span<const double> operands) const {
  std::vector<double> values;
  values.reserve(nodes.size());
  for (const DagNode& n : nodes) {
    if (n.kind == DagNode::Kind::operand) {
      values.push_back(operands[static_cast<std::size_t>(n.operand)]);
    } else if (n.kind == DagNode::Kind::constant) {
      values.push_back(n.constant);
    } else {
      std::vector<double> arguments;
      for (const int a : n.arguments) arguments.push_back(values[static_cast<std::size_t>(a)]);
      values.push_back(n.function->eval(arguments));
    }
  }
  std::vector<double> out;
  for (const int r : results) out.push_back(values[static_cast<std::size_t>(r)]);
  return out;
}

std::string Dag::to_string() const {
  return Printer(*this).print();
}

std::string emit(const Dag& dag, std::span<const std::string> operands, std::string_view prefix,
                 std::vector<std::string>* results) {
  const std::vector<int> counts = reader_counts(dag);
  std::vector<std::string> names(dag.nodes.size());
  std::string out;
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode& n = dag.nodes[i];
    if (counts[i] == 0) continue;
    if (n.kind == DagNode::Kind::operand) {
      names[i] = operands[static_cast<std::size_t>(n.operand)];
    } else if (n.kind == DagNode::Kind::constant) {
      names[i] = literal(n.constant);
    } else {
      std::vector<std::string> arguments;
      for (const int a : n.arguments) arguments.push_back(names[static_cast<std::size_t>(a)]);
      names[i] = fmt::format("{}{}", prefix, i);
      out += fmt::format("const float {} = {};\n", names[i],
                         expand(n.function->expression, arguments));
    }
  }
  results->clear();
  for (const int r : dag.results) results->push_back(names[static_cast<std::size_t>(r)]);
  return out;
}

}  // namespace tessera::pointwise
