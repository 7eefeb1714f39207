#include "check/means_names.h"

#include <map>

namespace tessera::check {

// NOLINTNEXTLINE(misc-no-recursion): a remainder is taken once
std::optional<NamedIndex> index_of(const syntax::Expr& e) {
  if (const auto* n = e.as<syntax::Name>()) return NamedIndex{n->id};
  if (const auto* i = e.as<syntax::Integer>()) return NamedIndex{"", i->value};
  const auto* b = e.as<syntax::Binary>();
  const auto* by = b == nullptr ? nullptr : b->right->as<syntax::Integer>();
  if (by == nullptr) return std::nullopt;
  std::optional<NamedIndex> of = index_of(*b->left);
  if (!of || of->name.empty() || of->modulus != 0) return std::nullopt;
  if (b->op == "%" && by->value > 0)
    of->modulus = by->value;
  else if ((b->op == "+" || b->op == "-") && of->number == 0)
    of->number = b->op == "+" ? by->value : -by->value;
  else
    return std::nullopt;
  return of;
}

std::string_view function_of(std::string_view name) {
  static const std::map<std::string_view, std::string_view> others = {
      {"+", "add"}, {"-", "sub"},       {"*", "mul"},      {"/", "div"}, {"**", "pow"},
      {"<", "lt"},  {"<=", "le"},       {">", "gt"},       {">=", "ge"}, {"==", "eq"},
      {"!=", "ne"}, {"max", "maximum"}, {"min", "minimum"}};
  const auto found = others.find(name);
  return found == others.end() ? name : found->second;
}

}  // namespace tessera::check
