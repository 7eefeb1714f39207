#include "core/lambda.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"

#include "core/parse.h"

namespace tessera::core {
namespace {

using pointwise::Dag;
using syntax::Expr;

std::string number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return fmt::format("{}", v);
}

struct Writer {
  const Dag& dag;
  std::vector<int> uses = std::vector<int>(dag.nodes.size());
  std::map<int, int> named = {};  // node to the number of its name

  std::string operator()(int i) {
    const Dag::Node& n = dag.nodes[i];
    if (n.kind == Dag::Node::Kind::operand) return fmt::format("x{}", n.operand);
    if (n.kind == Dag::Node::Kind::constant) return number(n.constant);
    if (const auto known = named.find(i); known != named.end())
      return fmt::format("t{}", known->second);
    std::vector<std::string> arguments;
    for (const int a : n.arguments) arguments.push_back((*this)(a));
    const std::string call = fmt::format("{}({})", n.function->name, join(arguments, ", "));
    if (uses[i] < 2) return call;
    const auto name = static_cast<int>(named.size());
    named[i] = name;
    return fmt::format("(t{} := {})", name, call);
  }
};

std::optional<double> number_of(const Expr& e) {
  if (const auto* i = e.as<syntax::Integer>()) return static_cast<double>(i->value);
  if (const auto* f = e.as<syntax::Float>()) return f->value;
  if (const auto* n = e.as<syntax::Name>()) {
    if (n->id == "inf") return INFINITY;
    if (n->id == "nan") return NAN;
  }
  if (const auto* u = e.as<syntax::Unary>(); u != nullptr && u->op == "-")
    if (const auto v = number_of(*u->operand)) return -*v;
  return std::nullopt;
}

struct Reader {
  const Source& source;
  std::map<std::string, int> names = {};
  Dag dag = {};

  Result<int> node(const Expr& e) {
    if (const auto* n = e.as<syntax::Name>(); n != nullptr && names.count(n->id) > 0)
      return names.at(n->id);
    if (const auto value = number_of(e)) return dag.add_constant(*value);
    if (const auto* n = e.as<syntax::Named>()) {
      TESSERA_TRY(i, node(*n->value));
      names[n->name] = i;
      return i;
    }
    const auto* c = e.as<syntax::Call>();
    const auto* name = c == nullptr ? nullptr : c->function->as<syntax::Name>();
    if (name == nullptr)
      return error(bad_text_at(source, e.span, "this is no function of single elements",
                               "a parameter, a number or a call of a pointwise function"));
    TESSERA_TRY(f, function(*c, name->id, e.span));
    std::vector<int> arguments;
    for (const syntax::Argument& a : c->arguments) {
      TESSERA_TRY(i, node(a.value));
      arguments.push_back(i);
    }
    return dag.add_call(f->name, std::move(arguments));
  }

  Result<const pointwise::Function*> function(const syntax::Call& c, const std::string& name,
                                              Span span) const {
    const pointwise::Function* f = pointwise::find(name);
    if (f == nullptr) {
      std::vector<std::string> known;
      for (const auto& other : pointwise::functions()) known.emplace_back(other.name);
      return error(
          with_nearest(bad_text_at(source, c.function->span,
                                   fmt::format("no pointwise function is called `{}`", name),
                                   "a function of pointwise/functions/"),
                       name, known));
    }
    if (static_cast<int>(c.arguments.size()) != f->arity)
      return error(bad_text_at(source, span, fmt::format("`{}` has other arguments", name),
                               fmt::format("{} arguments", f->arity))
                       .but_found("{}", c.arguments.size()));
    return f;
  }
};

}  // namespace

std::string lambda_text(const Dag& dag, std::size_t inputs) {
  Writer node{dag};
  for (const Dag::Node& n : dag.nodes)
    for (const int a : n.arguments) ++node.uses[a];
  for (const int r : dag.results) ++node.uses[r];
  std::vector<std::string> results;
  for (const int r : dag.results) results.push_back(node(r));
  const std::size_t count = std::max(inputs, static_cast<std::size_t>(dag.operand_count()));
  std::string parameters;
  for (std::size_t i = 0; i < count; ++i) parameters += fmt::format("{} x{}", i > 0 ? "," : "", i);
  const std::string body = join(results, ", ");
  return "lambda" + parameters + ": " + (results.size() == 1 ? body : "(" + body + ")");
}

Result<Dag> read_lambda(const Source& source, const Expr& e) {
  const auto* l = e.as<syntax::Lambda>();
  if (l == nullptr)
    return error(bad_text_at(source, e.span, "this is no function of single elements",
                             "a lambda: `lambda x0, x1: add(x0, x1)`"));
  Reader reader{source};
  for (std::size_t i = 0; i < l->parameters.size(); ++i)
    if (!reader.names.emplace(l->parameters[i], reader.dag.add_operand(static_cast<int>(i))).second)
      return error(bad_text_at(source, e.span,
                               fmt::format("two parameters are called `{}`", l->parameters[i]),
                               "a name of its own for each"));
  std::vector<const Expr*> results = {&*l->body};
  if (const auto* t = l->body->as<syntax::Tuple>()) {
    results.clear();
    for (const Expr& item : t->items) results.push_back(&item);
  }
  for (const Expr* r : results) {
    TESSERA_TRY(i, reader.node(*r));
    reader.dag.results.push_back(i);
  }
  return std::move(reader.dag);
}

}  // namespace tessera::core
