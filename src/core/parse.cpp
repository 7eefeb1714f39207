#include "core/parse.h"

#include "base/text.h"

#include "core/reader.h"
#include "syntax/parse.h"

namespace tessera::core {
namespace {

using syntax::Expr;

const std::vector<std::string> statements_of_core = {
    "issue", "map",     "registers", "shared", "barriers",  "tensor_map", "range",       "unrolled",
    "role",  "elected", "carried",   "tag",    "reset_tag", "assert_tag", "assert_apart"};

}  // namespace

Diagnostic bad_text_at(const Source& source, Span span, std::string_view what,
                       std::string_view expected) {
  return fail(bad_text, "{}", what).label(source.label(span)).expect("{}", expected);
}

Diagnostic with_nearest(Diagnostic d, std::string_view word,
                        const std::vector<std::string>& choices) {
  // Of a single letter every other is a neighbour.
  const std::string near = word.size() > 1 ? nearest(word, choices) : "";
  return near.empty() ? std::move(d) : std::move(d).help("did you mean `{}`?", near);
}

Status Reader::statements(const syntax::Block& block, Body& body) {
  for (const syntax::Statement& s : block) TESSERA_CHECK(statement(s, body));
  return {};
}

Result<Body> Reader::inner(const syntax::Block& block) {
  Body body;
  scope_.open();
  ++depth_;
  TESSERA_CHECK(statements(block, body));
  --depth_;
  scope_.close();
  return body;
}

Status Reader::statement(const syntax::Statement& s, Body& body) {
  TESSERA_TRY(declared, storage(s, body));
  if (declared) return {};
  if (const auto* e = s.as<syntax::Evaluate>()) return simple(e->value, {}, s, body);
  if (const auto* a = s.as<syntax::Assign>();
      a != nullptr && a->value && a->op.empty() && !a->annotation)
    return simple(*a->value, a->targets, s, body);
  if (const auto* f = s.as<syntax::For>()) return loop(*f, s, body);
  if (const auto* i = s.as<syntax::If>()) return branch(*i, s, body);
  if (const auto* w = s.as<syntax::With>()) return with(*w, s, body);
  if (s.as<syntax::Pass>() != nullptr) return {};
  return error(bad_text_at(*source_, s.span, "this statement is not one of the core's",
                           "a storage, `issue`, `map`, `for`, `if` or `with`")
                   .but_found("{}", scope_.quoted(s.span)));
}

Status Reader::simple(const Expr& value, const std::vector<Expr>& targets,
                      const syntax::Statement& s, Body& body) {
  std::string_view name;
  const syntax::Call* c = call_of(value, &name);
  const std::string* alias = targets.size() == 1 ? name_of(targets[0]) : nullptr;
  if (alias != nullptr && (c == nullptr || name == "min" || name == "max" || name == "select")) {
    TESSERA_TRY(t, scope_.term(pool(), value));
    return scope_.define(*alias, t, targets[0].span);
  }
  if (alias != nullptr && name == "carried") return carried(*alias, *c, targets[0].span, s.span);
  if (c != nullptr && name == "issue" && targets.empty()) return issue(*c, s, body);
  if (c != nullptr && name == "map" && !targets.empty()) return compute(targets, *c, s, body);
  if (c != nullptr && is_tags(name) && targets.empty()) return tags(name, *c, s, body);
  if (c == nullptr || name == "issue" || name == "map")
    return error(bad_text_at(*source_, s.span, "this does nothing in the core",
                             "`issue(...)`, or `out[0, \"4:1\"] = map(...)`")
                     .but_found("{}", scope_.quoted(s.span)));
  return error(with_nearest(
      bad_text_at(*source_, c->function->span, fmt::format("the core has no `{}`", name),
                  "issue, map, tensor_map, shared, barriers, registers"),
      name, statements_of_core));
}

Status Reader::loop(const syntax::For& f, const syntax::Statement& s, Body& body) {
  std::string_view kind;
  const syntax::Call* c = call_of(f.over, &kind);
  if (c == nullptr || (kind != "range" && kind != "unrolled"))
    return error(
        with_nearest(bad_text_at(*source_, f.over.span, "a loop counts and does nothing else",
                                 "`range(low, high)` or `unrolled(low, high)`, perhaps with a step")
                         .but_found("{}", scope_.quoted(f.over.span)),
                     kind, {"range", "unrolled"}));
  const std::string* name = f.targets.size() == 1 ? name_of(f.targets[0]) : nullptr;
  if (name == nullptr) return wrong(s.span, "a loop has one counter", "a name");
  static const Signature signature{"range", {"low", "high", "step"}, {}, {"step"}};
  TESSERA_TRY(given, Call::bind(*source_, signature, *c, f.over.span));
  TESSERA_TRY(lower, scope_.term(pool(), given["low"]));
  TESSERA_TRY(upper, scope_.term(pool(), given["high"]));
  Term step = pool().constant(1);
  if (const Expr* e = given.find("step")) {
    TESSERA_TRY(t, scope_.term(pool(), *e));
    step = t;
  }
  scope_.open();
  TESSERA_CHECK(scope_.define(*name, Term(), f.targets[0].span));
  const Result<Term> counter = pool().counter(*name, lower, upper);
  if (!counter)
    return error(Diagnostic(counter.error())
                     .label(source_->label(f.targets[0].span))
                     .help("loops of other bounds have counters of other names"));
  scope_.redefine(*name, *counter);
  std::vector<Carried> sums;
  carried_.push_back({depth_ + 1, &sums});
  TESSERA_TRY(inside, inner(f.body));
  carried_.pop_back();
  scope_.close();
  body.push_back(
      {For{*counter, lower, upper, step, kind == "unrolled", std::move(inside), std::move(sums)},
       s.span});
  return {};
}

Status Reader::carried(const std::string& name, const syntax::Call& c, Span target, Span span) {
  static const Signature signature{"carried", {"amount"}, {}, {}};
  TESSERA_TRY(given, Call::bind(*source_, signature, c, span));
  if (carried_.empty() || carried_.back().depth != depth_)
    return wrong(span, "a sum over turns stands outside of their loop",
                 "`carried` in the body of a `for` itself");
  TESSERA_TRY(amount, scope_.term(pool(), given["amount"]));
  const Result<Term> symbol =
      pool().counter(name, pool().constant(0), pool().constant(most_carried));
  if (!symbol) return placed(symbol.error(), target);
  TESSERA_CHECK(scope_.define(name, *symbol, target));
  carried_.back().sums->push_back({*symbol, amount});
  return {};
}

Status Reader::branch(const syntax::If& i, const syntax::Statement& s, Body& body) {
  TESSERA_TRY(condition, scope_.term(pool(), i.condition));
  TESSERA_TRY(yes, inner(i.body));
  TESSERA_TRY(no, inner(i.otherwise));
  body.push_back({If{condition, std::move(yes), std::move(no)}, s.span});
  return {};
}

Status Reader::with(const syntax::With& w, const syntax::Statement& s, Body& body) {
  std::string_view name;
  const syntax::Call* c = w.items.size() == 1 ? call_of(w.items[0].value, &name) : nullptr;
  if (c != nullptr && name == "role") return role(*c, w.items[0], w, s, body);
  if (c == nullptr || name != "elected" || w.items[0].name)
    return error(with_nearest(bad_text_at(*source_, s.span, "`with` opens a role or elects a lane",
                                          "`role(...) as warp` or `elected()`")
                                  .but_found("{}", scope_.quoted(w.items[0].value.span)),
                              name, {"role", "elected"}));
  static const Signature signature{"elected", {}, {}};
  TESSERA_TRY(ignored, Call::bind(*source_, signature, *c, w.items[0].value.span));
  TESSERA_TRY(inside, inner(w.body));
  body.push_back({Elected{std::move(inside)}, s.span});
  return {};
}

/// `with role(consumer, warps=[4, 12]) as consumer_warp:`
Status Reader::role(const syntax::Call& c, const syntax::WithItem& item, const syntax::With& w,
                    const syntax::Statement& s, Body& body) {
  static const Signature signature{"role", {"name"}, {"warps"}};
  TESSERA_TRY(given, Call::bind(*source_, signature, c, item.value.span));
  const std::string* name = name_of(given["name"]);
  if (name == nullptr) return wrong(given["name"].span, "a role's name is no string", "a name");
  TESSERA_TRY(warps, scope_.numbers(given["warps"], "`warps`"));
  if (warps.size() != 2 || warps[0] < 0 || warps[1] <= warps[0] || warps[1] > 1 << 16)
    return error(bad_text_at(*source_, given["warps"].span, "a role has no such warps",
                             "[first, end], where first is below end")
                     .but_found("{}", scope_.quoted(given["warps"].span)));
  if (!item.name)
    return wrong(s.span, fmt::format("the warps of role `{}` have no name", *name),
                 fmt::format("`as {}_warp`", *name));
  scope_.open();
  TESSERA_CHECK(scope_.define(*item.name, Term(), s.span));
  const Result<Term> warp = pool().coordinate(*item.name, warps[1] - warps[0]);
  if (!warp) return placed(warp.error(), s.span);
  scope_.redefine(*item.name, *warp);
  TESSERA_TRY(inside, inner(w.body));
  scope_.close();
  body.push_back({Role{*name, static_cast<int>(warps[0]), static_cast<int>(warps[1] - warps[0]),
                       *warp, std::move(inside)},
                  s.span});
  return {};
}

Result<Kernel> Reader::run(const syntax::Module& module) {
  const syntax::Function* f =
      module.body.empty() ? nullptr : module.body.front().as<syntax::Function>();
  if (f == nullptr || module.body.size() != 1) {
    const Span span = module.body.empty() ? Span()
                      : f == nullptr      ? module.body.front().span
                                          : module.body[1].span;
    return wrong(span, "a text is one kernel", "`@kernel(...)` and one `def`");
  }
  TESSERA_CHECK(head(*f));
  TESSERA_CHECK(statements(f->body, kernel_->body));
  return std::move(*kernel_);
}

Result<Kernel> parse(std::shared_ptr<const Source> source) {
  syntax::Parsed parsed = syntax::parse(*source);
  if (!parsed.errors.empty()) return error(std::move(parsed.errors.front()));
  return Reader(std::move(source)).run(parsed.module);
}

Result<Kernel> parse(std::string name, std::string text) {
  return parse(std::make_shared<const Source>(std::move(name), std::move(text)));
}

}  // namespace tessera::core
