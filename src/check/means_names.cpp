#include "check/means_names.h"

#include <map>

#include "syntax/parse.h"

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

namespace {

/// The one statement of a text.
std::optional<syntax::Statement> parsed(const std::string& text) {
  const Source source("means", text + "\n");
  syntax::Parsed out = syntax::parse(source);
  if (!out.errors.empty() || out.module.body.size() != 1) return std::nullopt;
  return std::move(out.module.body.front());
}

}  // namespace

/// Python assigns to no call, so an equation with a sum on its left is read by halves.
tl::expected<std::pair<syntax::Expr, syntax::Expr>, std::string> sides_of(const std::string& text) {
  const auto no_assignment = tl::unexpected(std::string("it is not one assignment"));
  if (const std::size_t at = text.find(" = "); text.starts_with("sum(") && at != text.npos) {
    const auto left = parsed(text.substr(0, at)), right = parsed(text.substr(at + 3));
    if (!left || !right) return no_assignment;
    const auto* from = left->as<syntax::Evaluate>();
    const auto* to = right->as<syntax::Evaluate>();
    if (from != nullptr && to != nullptr) return std::pair(from->value, to->value);
    return tl::unexpected(std::string("its sides are no expressions"));
  }
  const auto whole = parsed(text);
  const auto* assign = whole ? whole->as<syntax::Assign>() : nullptr;
  if (assign == nullptr || assign->targets.size() != 1 || !assign->value || !assign->op.empty())
    return no_assignment;
  return std::pair(assign->targets.front(), *assign->value);
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
