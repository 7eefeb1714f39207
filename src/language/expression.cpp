#include "language/elaborator.h"

namespace tessera::language {
namespace {

Value constant_of(syntax::Constant c) {
  if (c == syntax::Constant::truth) return {true};
  if (c == syntax::Constant::falsehood) return {false};
  return {};
}

Value sequence(std::vector<Value> items) {
  return {Sequence{std::make_shared<const std::vector<Value>>(std::move(items))}};
}

}  // namespace

const Elaborator::Bound* Elaborator::find(const std::string& name) const {
  named_.insert(name);
  for (std::size_t i = frames_.size(); i-- > 0;) {
    const auto known = frames_[i].names.find(name);
    if (known != frames_[i].names.end()) return &known->second;
    if (frames_[i].of == Frame::Of::function && i > 0) {
      const auto global = frames_.front().names.find(name);
      return global == frames_.front().names.end() ? nullptr : &global->second;
    }
  }
  return nullptr;
}

std::vector<std::string> Elaborator::names() const {
  std::vector<std::string> out = builtin_names("");
  for (const Frame& f : frames_)
    for (const auto& [name, bound] : f.names) out.push_back(name);
  return out;
}

Diagnostic Elaborator::unknown(const std::string& name, Span span) const {
  const std::string near = nearest(name, names());
  const std::string help = near == name
                               ? fmt::format(
                                     "`{}` has a value where the function is called: give it as an "
                                     "argument",
                                     name)
                           : near.empty() ? "give it a value before it is used"
                                          : fmt::format("did you mean `{}`?", near);
  return fail(no_such_name, "`{}` is not known here", name)
      .label(label(span))
      .expect("a name that has a value here, or a word of the language")
      .but_found("`{}`", name)
      .help("{}", help);
}

/// `a.b.c` where `a` is no name of the file's.
std::optional<std::string> Elaborator::path_of(const syntax::Expr& e) const {
  if (const auto* n = e.as<syntax::Name>())
    return find(n->id) == nullptr ? std::optional(n->id) : std::nullopt;
  const auto* a = e.as<syntax::Attribute>();
  if (a == nullptr) return {};
  const auto front = path_of(*a->of);
  if (!front) return {};
  return *front + "." + a->name;
}

std::optional<Value> Elaborator::named(const std::string& path) const {
  if (const Builtin* b = find_builtin(path)) return Value{BuiltinRef{b, nullptr}};
  if (const auto t = parse_dtype(path); t && short_name(*t) == path) return Value{*t};
  if (const pointwise::Function* f = pointwise::find(path)) return Value{PointwiseRef{f}};
  if (const arch::Form* f = find_form_by_path(path)) return Value{FormRef{f}};
  if (is_namespace(path)) return Value{Namespace{path}};
  return {};
}

Result<Value> Elaborator::evaluate(const syntax::Expr& e) {
  if (const auto* n = e.as<syntax::Integer>()) return Value{n->value};
  if (const auto* f = e.as<syntax::Float>()) return Value{f->value};
  if (const auto* s = e.as<syntax::String>()) return Value{s->value};
  if (const auto* c = e.as<syntax::Constant>()) return constant_of(*c);
  if (const auto* n = e.as<syntax::Name>())
    if (const Bound* b = find(n->id)) return b->value;
  if (const auto path = path_of(e)) {
    const auto v = named(*path);
    if (v) {
      const auto* b = v->as<BuiltinRef>();
      return b != nullptr && b->builtin->property ? invoke(*b->builtin, nullptr, {}, e.span) : *v;
    }
    if (const auto* n = e.as<syntax::Name>()) return error(unknown(n->id, e.span));
  }
  if (const auto* a = e.as<syntax::Attribute>()) {
    TESSERA_TRY(of, evaluate(*a->of));
    return attribute(of, a->name, e.span);
  }
  if (const auto* c = e.as<syntax::Call>()) return call(*c, e.span);
  if (const auto* s = e.as<syntax::Subscript>()) {
    if (const auto* n = s->of->as<syntax::Name>(); n != nullptr && n->id == "Tensor")
      return tensor_type(*s, e.span);
    TESSERA_TRY(of, evaluate(*s->of));
    return subscript(of, *s, e.span);
  }
  if (const auto* u = e.as<syntax::Unary>()) {
    TESSERA_TRY(v, evaluate(*u->operand));
    return unary(u->op, v, e.span);
  }
  if (const auto* b = e.as<syntax::Binary>()) return operation(*b, e.span);
  if (const auto* c = e.as<syntax::Compare>()) return comparison(*c, e.span);
  if (const auto* c = e.as<syntax::Conditional>()) return conditional(*c, e.span);
  const bool tuple = e.as<syntax::Tuple>() != nullptr;
  if (tuple || e.as<syntax::List>() != nullptr) {
    std::vector<Value> items;
    for (const syntax::Expr& i :
         tuple ? e.as<syntax::Tuple>()->items : e.as<syntax::List>()->items) {
      TESSERA_TRY(v, evaluate(i));
      items.push_back(std::move(v));
    }
    return sequence(std::move(items));
  }
  const bool lambda = e.as<syntax::Lambda>() != nullptr;
  return error(
      fail(wrong_place, "{} not stand here", lambda ? "a `lambda` does" : "a slice or `:=` does")
          .label(label(e.span))
          .help("{}", lambda ? "write a function by `def`, and name it"
                             : "slices stand in brackets; names are given by `=`"));
}

Result<Value> Elaborator::operation(const syntax::Binary& b, Span span) {
  if (b.op == "and" || b.op == "or") return logical(b, span);
  TESSERA_TRY(left, evaluate(*b.left));
  TESSERA_TRY(right, evaluate(*b.right));
  return binary(b.op, left, right, span);
}

Result<Value> Elaborator::logical(const syntax::Binary& b, Span span) {
  TESSERA_TRY(left, condition(*b.left));
  const bool stops = b.op == "or";
  if (const bool* known = std::get_if<bool>(&left); known != nullptr && *known == stops)
    return Value{stops};
  TESSERA_TRY(right, condition(*b.right));
  if (std::holds_alternative<bool>(left)) {
    if (const bool* known = std::get_if<bool>(&right)) return Value{*known};
    return Value{std::get<Term>(right)};
  }
  if (const bool* known = std::get_if<bool>(&right))
    return *known == stops ? Value{stops} : Value{std::get<Term>(left)};
  return terms(b.op, std::get<Term>(left), std::get<Term>(right), span);
}

Result<Value> Elaborator::comparison(const syntax::Compare& c, Span span) {
  std::optional<Value> all;
  std::vector<Value> values;
  for (const syntax::Expr& e : c.values) {
    TESSERA_TRY(v, evaluate(e));
    values.push_back(std::move(v));
  }
  for (std::size_t i = 0; i < c.ops.size(); ++i) {
    TESSERA_TRY(v, compare(c.ops[i], values[i], values[i + 1], span));
    if (const bool* known = v.as<bool>()) {
      if (!*known) return Value{false};
      if (!all) all = v;
    } else if (!all || all->as<bool>() != nullptr) {
      all = v;
    } else {
      TESSERA_TRY(both, terms("and", *all->as<Term>(), *v.as<Term>(), span));
      all = both;
    }
  }
  return *all;
}

Result<Value> Elaborator::conditional(const syntax::Conditional& c, Span span) {
  TESSERA_TRY(test, condition(*c.condition));
  if (const bool* known = std::get_if<bool>(&test)) return evaluate(*known ? *c.yes : *c.no);
  TESSERA_TRY(yes, evaluate(*c.yes));
  TESSERA_TRY(no, evaluate(*c.no));
  TESSERA_TRY(a, number(yes, c.yes->span));
  TESSERA_TRY(b, number(no, c.no->span));
  auto made = builder_->kernel().pool->make(term::Op::select, {std::get<Term>(test), a, b});
  if (!made) return error(std::move(made.error()).label(label(span)));
  return Value{*made};
}

Result<Value> Elaborator::attribute(const Value& of, std::string_view name, Span span) {
  if (const auto* loop = of.as<LoopRef>(); loop != nullptr && loop->attribute) {
    TESSERA_TRY(v, loop->attribute(*this, name));
    if (v.as<None>() == nullptr) return v;
  }
  const std::string prefix = fmt::format(".{}.", method_key(of));
  if (const Builtin* b = find_builtin(prefix + std::string(name))) {
    auto self = std::make_shared<const Value>(of);
    if (b->property) return invoke(*b, std::move(self), {}, span);
    return Value{BuiltinRef{b, std::move(self)}};
  }
  std::vector<std::string> known;
  const auto* space = of.as<Namespace>();
  const std::string path = space != nullptr ? space->path + "." : prefix;
  for (const std::string& n : builtin_names(path)) known.push_back(n.substr(path.size()));
  const std::string near = nearest(name, known);
  return error(fail(no_such_name, "{} has no `{}`",
                    space != nullptr ? "`" + space->path + "`" : std::string(kind_of(of)), name)
                   .label(label(span))
                   .expect("{}", known.empty() ? "no attribute" : "one of: " + join(known, ", "))
                   .but_found("`{}`", name)
                   .help("{}", near.empty() ? "name one of these"
                                            : fmt::format("did you mean `{}`?", near)));
}

}  // namespace tessera::language
