// Instructions and computations of a kernel's text:
//
//   issue("tma.load", a[s, 0, 0], A_map, [k * 64, row], full[s], rank=2)
//   out[0, "32:1"] = map(lambda x0: x0, acc[c * 32, "32:1"], count=32)
#include "base/text.h"

#include "core/lambda.h"
#include "core/reader.h"

namespace tessera::core {
namespace {

using syntax::Expr;

Diagnostic no_form(const Source& source, Span span, const std::string& name) {
  std::vector<std::string> known;
  for (const arch::Family* family : arch::instructions::all())
    for (const arch::Form& form : family->forms()) known.push_back(form.name);
  return with_nearest(bad_text_at(source, span, fmt::format("there is no instruction `{}`", name),
                                  "a form of docs/instructions.md"),
                      name, known);
}

}  // namespace

Status Reader::issue(const syntax::Call& c, const syntax::Statement& s, Body& body) {
  if (c.arguments.empty() || !c.arguments[0].keyword.empty())
    return wrong(s.span, "no instruction is named", "`issue(\"wgmma.fence\")`");
  TESSERA_TRY(name, scope_.string(c.arguments[0].value, "an instruction's name"));
  Issue out;
  out.form = arch::find_form(name);
  if (out.form == nullptr) return error(no_form(*source_, c.arguments[0].span, name));
  for (std::size_t i = 1; i < c.arguments.size(); ++i) {
    const syntax::Argument& a = c.arguments[i];
    if (a.keyword.empty()) {
      TESSERA_TRY(one, argument(a.value));
      out.arguments.push_back(std::move(one));
      out.spans.push_back(a.span);
      continue;
    }
    TESSERA_TRY(one, choice(*out.form, a));
    for (const auto& [key, value] : out.choices)
      if (key == one.first)
        return wrong(a.span, fmt::format("`{}` is told its `{}` twice", name, key),
                     "each modifier once");
    out.choices.push_back(std::move(one));
  }
  body.push_back({std::move(out), s.span});
  return {};
}

Result<std::pair<std::string_view, std::string>> Reader::choice(const arch::Form& form,
                                                                const syntax::Argument& a) const {
  const arch::Modifier* m = form.modifier(a.keyword);
  if (m == nullptr) {
    std::vector<std::string> known;
    for (const arch::Modifier& other : form.modifiers) known.emplace_back(other.name);
    return error(
        with_nearest(bad_text_at(*source_, a.span,
                                 fmt::format("`{}` has no modifier `{}`", form.name, a.keyword),
                                 known.empty() ? "none" : "one of: " + join(known, ", ")),
                     a.keyword, known));
  }
  if (const auto* n = a.value.as<syntax::Integer>())
    return std::make_pair(m->name, std::to_string(n->value));
  TESSERA_TRY(text, scope_.string(a.value, fmt::format("`{}`", m->name)));
  return std::make_pair(m->name, std::move(text));
}

Result<Argument> Reader::argument(const Expr& e) {
  if (const auto* l = e.as<syntax::List>()) {
    TESSERA_TRY(values, scope_.terms(pool(), l->items));
    return Integers{std::move(values)};
  }
  const auto* sub = e.as<syntax::Subscript>();
  const std::string* name = name_of(sub == nullptr ? e : *sub->of);
  const Meaning* m = name == nullptr ? nullptr : scope_.find(*name);
  if (m != nullptr && sub == nullptr && std::holds_alternative<MapId>(*m))
    return MapRef{std::get<MapId>(*m)};
  if (sub != nullptr && name != nullptr) {
    TESSERA_TRY(meaning, scope_.at(*name, sub->of->span));
    const auto* none = sub->indices.size() == 1 ? sub->indices[0].as<syntax::Tuple>() : nullptr;
    TESSERA_TRY(at,
                scope_.terms(pool(), none != nullptr && none->items.empty() ? std::vector<Expr>()
                                                                            : sub->indices));
    if (const auto* s = std::get_if<SharedId>(&meaning)) return SharedAt{*s, std::move(at)};
    if (const auto* t = std::get_if<TensorId>(&meaning)) return GlobalAt{*t, std::move(at)};
    const auto* b = std::get_if<BarriersId>(&meaning);
    const auto* r = std::get_if<RegistersId>(&meaning);
    if ((b != nullptr || r != nullptr) && at.size() != 1)
      return error(bad_text_at(*source_, e.span, fmt::format("`{}` has one index", *name),
                               b != nullptr ? "the barrier's number" : "the first element slot")
                       .but_found("{} indices", at.size()));
    if (b != nullptr) return BarrierAt{*b, at[0]};
    if (r != nullptr) return Slice{*r, at[0]};
    return error(bad_text_at(*source_, sub->of->span, fmt::format("`{}` has no elements", *name),
                             "shared memory, a tensor, barriers or registers")
                     .but_found("{}", kind_of(meaning)));
  }
  if (m != nullptr && !std::holds_alternative<Term>(*m) && !std::holds_alternative<Decision>(*m))
    return error(bad_text_at(*source_, e.span, fmt::format("`{}` has no index", *name),
                             fmt::format("`{}[...]`", *name))
                     .but_found("{} as a whole", kind_of(*m)));
  TESSERA_TRY(t, scope_.term(pool(), e));
  return Integers{{t}};
}

/// `acc[first, "32:1"]`
Result<Run> Reader::run_of(const Expr& e) {
  const auto* sub = e.as<syntax::Subscript>();
  const std::string* name = sub == nullptr ? nullptr : name_of(*sub->of);
  if (name == nullptr)
    return error(bad_text_at(*source_, e.span, "these are no registers",
                             "a run of element slots: `acc[0, \"32:1\"]`"));
  TESSERA_TRY(meaning, scope_.at(*name, sub->of->span));
  const auto* r = std::get_if<RegistersId>(&meaning);
  if (r == nullptr)
    return error(bad_text_at(*source_, sub->of->span, fmt::format("`{}` is no registers", *name),
                             "registers: computations read and write nothing else")
                     .but_found("{}", kind_of(meaning)));
  if (sub->indices.size() != 2)
    return error(bad_text_at(*source_, e.span, "this is no run of element slots",
                             fmt::format("the first slot and a layout: `{}[0, \"32:1\"]`", *name))
                     .but_found("{}", scope_.quoted(e.span)));
  TESSERA_TRY(first, scope_.term(pool(), sub->indices[0]));
  TESSERA_TRY(steps, scope_.layout(sub->indices[1]));
  return Run{*r, first, std::move(steps)};
}

Status Reader::compute(const std::vector<Expr>& targets, const syntax::Call& c,
                       const syntax::Statement& s, Body& body) {
  Compute out;
  for (const Expr& t : targets) {
    TESSERA_TRY(run, run_of(t));
    out.results.push_back(std::move(run));
  }
  const Expr *count = nullptr, *element = nullptr;
  for (const syntax::Argument& a : c.arguments) {
    if (a.keyword.empty()) continue;
    if (a.keyword != "count" && a.keyword != "element")
      return error(
          with_nearest(bad_text_at(*source_, a.span, fmt::format("`map` takes no `{}`", a.keyword),
                                   "`count=` and `element=`"),
                       a.keyword, {"count", "element"}));
    (a.keyword == "count" ? count : element) = &a.value;
  }
  if (count == nullptr)
    return wrong(s.span, "`map`: missing argument `count`", "`count=`, how many elements");
  TESSERA_TRY(n, scope_.small(*count, "`count`"));
  if (n < 1) return wrong(count->span, "`count` is out of range", "at least 1");
  out.count = n;
  scope_.open();
  if (element != nullptr) {
    const std::string* name = name_of(*element);
    if (name == nullptr) return wrong(element->span, "an element is a name", "`element=e`");
    TESSERA_CHECK(scope_.define(*name, Term(), element->span));
    const Result<Term> t = pool().coordinate(*name, n);
    if (!t) return placed(t.error(), element->span);
    scope_.redefine(*name, *t);
    out.element = *t;
  }
  TESSERA_CHECK(take_inputs(c, out));
  scope_.close();
  if (out.dag->results.size() != targets.size())
    return error(bad_text_at(*source_, s.span, "a function has other results than there are runs",
                             fmt::format("{}, as many as runs", targets.size()))
                     .but_found("{}", out.dag->results.size()));
  body.push_back({std::move(out), s.span});
  return {};
}

/// The lambda and what it is applied to: runs where registers are named, else terms.
Status Reader::take_inputs(const syntax::Call& c, Compute& out) {
  for (const syntax::Argument& a : c.arguments) {
    if (!a.keyword.empty()) continue;
    if (out.dag == nullptr) {
      TESSERA_TRY(dag, read_lambda(*source_, a.value));
      out.dag = std::make_shared<const pointwise::Dag>(std::move(dag));
      continue;
    }
    if (a.value.as<syntax::Subscript>() != nullptr) {
      TESSERA_TRY(run, run_of(a.value));
      out.inputs.emplace_back(std::move(run));
    } else {
      TESSERA_TRY(t, scope_.term(pool(), a.value));
      out.inputs.emplace_back(t);
    }
  }
  if (out.dag == nullptr) return wrong(c.function->span, "`map`: missing function", "a lambda");
  const auto parameters = static_cast<std::size_t>(out.dag->operand_count());
  if (parameters == out.inputs.size()) return {};
  return error(bad_text_at(*source_, c.arguments[0].span,
                           "a function has other parameters than there are inputs",
                           fmt::format("{}, as many as inputs", out.inputs.size()))
                   .but_found("{}", parameters));
}

}  // namespace tessera::core
