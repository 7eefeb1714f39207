#include "core/site.h"

#include <algorithm>

#include "core/print.h"
#include "term/query.h"

namespace tessera::core {
namespace {

/// A question may take some milliseconds.
constexpr term::Effort effort{.operations = int64_t{1} << 23};
constexpr int64_t most_values = 1 << 16;

bool is_one_of(Term t, const std::vector<Term>& all) {
  return std::find(all.begin(), all.end(), t) != all.end();
}

/// The symbols that stand in the term itself.
void collect(Term t, std::vector<Term>& out) {
  if (t->op == term::Op::coordinate || t->op == term::Op::counter || t->op == term::Op::parameter) {
    if (!is_one_of(t, out)) out.push_back(t);
  }
  for (const Term a : t->args) collect(a, out);
}

}  // namespace

void Site::report(Diagnostic d, Span span) const {
  if (kernel.source != nullptr && span.end > span.begin)
    out_.push_back(std::move(d).label(kernel.source->label(span)));
  else if (op != nullptr)
    out_.push_back(std::move(d).note("in `{}`", head_of(kernel, *op)));
  else
    out_.push_back(std::move(d));
}

bool Site::prove(const Claim& c, Span span) const {
  term::Verdict v = term::always(c.holds, effort);
  if (!v.proved() && !conditions.empty()) {
    Term all = c.holds;
    for (const Term condition : conditions) all = logical_or(logical_not(condition), all);
    v = term::always(all, effort);
  }
  if (v.proved()) return true;
  Diagnostic d = v.refuted() ? fail(c.code, "{}", c.wrong)
                             : fail(undecided, "could not decide whether {}", c.whether);
  d.expected = c.expected;
  d.found = c.found;
  if (v.refuted()) {
    if (const std::string at = to_string(v.witness, pool()); !at.empty())
      d.notes.push_back("at " + at);
    if (!c.help.empty()) d.helps.push_back(c.help);
  } else {
    d.level = Level::warning;
    d.notes.push_back(v.reason);
    d.helps.emplace_back("declare bounds and moduli of the parameters it depends on");
  }
  report(std::move(d), span);
  return false;
}

bool Site::prove_range(Term t, int64_t count, int64_t high, const Code& code, std::string_view what,
                       Span span) const {
  if (t->facts.within(0, high - count)) return true;
  const Term zero = pool().constant(0);
  return prove(
      {.holds = logical_and(less_equal(zero, t), less_equal(t, pool().constant(high - count))),
       .code = code,
       .wrong = fmt::format("{} lies outside", what),
       .expected = high == count ? std::string("0") : fmt::format("0 to {}", high - count),
       .found = fmt::format("`{}`", term::to_string(t)),
       .whether = fmt::format("{} lies inside", what)},
      span);
}

std::optional<std::vector<int64_t>> Site::values(Term t) const {
  std::vector<Term> wanted;
  collect(t, wanted);
  std::vector<const For*> used;
  std::vector<Term> counters;
  for (const For* f : loops)
    if (f->unroll) counters.push_back(f->counter);
  if (over != nullptr)
    for (const Term s : *over)
      if (s->symbol->bounds.upper->facts.constant()) counters.push_back(s);
  for (const Term s : wanted)
    if (!is_one_of(s, counters)) return std::nullopt;
  std::vector<Term> filters;
  for (const Term c : conditions) {
    std::vector<Term> names;
    collect(c, names);
    if (std::all_of(names.begin(), names.end(), [&](Term s) { return is_one_of(s, wanted); }))
      filters.push_back(c);
  }
  std::vector<term::Assignment> points = {{}};
  const auto each = [&](Term symbol, int64_t lower, int64_t upper, int64_t step) {
    std::vector<term::Assignment> longer;
    for (const term::Assignment& p : points)
      for (int64_t i = lower; i < upper; i += step) {
        if (static_cast<int64_t>(longer.size()) == most_values) return false;
        longer.push_back(p);
        longer.back().symbols[symbol->symbol->name] = i;
      }
    points = std::move(longer);
    return true;
  };
  for (const For* f : loops) {
    if (!is_one_of(f->counter, wanted)) continue;
    const auto lower = f->lower->facts.constant(), upper = f->upper->facts.constant(),
               step = f->step->facts.constant();
    if (!lower || !upper || !step || *step < 1) return std::nullopt;
    if (!each(f->counter, *lower, *upper, *step)) return std::nullopt;
  }
  if (over != nullptr)
    for (const Term s : *over)
      if (is_one_of(s, wanted) && !each(s, 0, *s->symbol->bounds.upper->facts.constant(), 1))
        return std::nullopt;
  std::vector<int64_t> out;
  for (const term::Assignment& p : points) {
    const bool here = std::all_of(filters.begin(), filters.end(),
                                  [&](Term c) { return term::evaluate(c, p).value_or(1) != 0; });
    if (!here) continue;
    const Result<int64_t> v = term::evaluate(t, p);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Site::may_name(Term s) const {
  const Coordinates& at = kernel.at;
  if (s == at.lane || s == at.block || s == at.blocks || s == at.rank || s == warp()) return true;
  if (is_one_of(s, kernel.parameters)) return true;
  if (compute != nullptr && s == compute->element) return true;
  if (over != nullptr && is_one_of(s, *over)) return true;
  return std::any_of(loops.begin(), loops.end(), [&](const For* f) {
    return f->counter == s || std::any_of(f->carried.begin(), f->carried.end(),
                                          [&](const Carried& c) { return c.symbol == s; });
  });
}

bool Site::known(Term t, Span span, bool predicate) const {
  if (!t || t->pool != kernel.pool.get()) {
    report(fail(bad_structure, "a term is missing, or of another kernel's pool"), span);
    return false;
  }
  if (t->predicate() != predicate) {
    report(fail(bad_structure, "`{}` stands where a {} is needed", term::to_string(t),
                predicate ? "condition" : "number")
               .expect("{}", predicate ? "a comparison" : "a number: `select(..., 1, 0)`"),
           span);
    return false;
  }
  if (any_node(t, [](Term n) { return n->op == term::Op::read; })) {
    report(
        fail(bad_structure, "`{}` reads a memory that the kernel does not have", term::to_string(t))
            .expect("parameters, counters and coordinates")
            .help("load the value into registers"),
        span);
    return false;
  }
  std::vector<Term> names;
  collect(t, names);
  for (const Term s : names) {
    if (may_name(s)) continue;
    Diagnostic d = fail(bad_structure, "`{}` is not known here", s->symbol->name)
                       .expect("parameters, coordinates, counters of the loops around it")
                       .but_found("`{}`", term::to_string(t));
    if (s == kernel.at.warp && role != nullptr)
      d.helps.push_back(fmt::format("in role `{}` say `{}`: the warp's place in the role",
                                    role->name, term::to_string(role->warp)));
    report(std::move(d), span);
    return false;
  }
  return true;
}

bool Site::is_declared(RegistersId r) const {
  return std::find(declared.begin(), declared.end(), r) != declared.end();
}

bool depends_on(Term t, Term symbol) {
  return any_node(t, [&](Term n) { return n == symbol; });
}

Term replaced(Term t, Term symbol, Term by) {
  if (t == symbol) return by;
  if (t->args.empty() || !depends_on(t, symbol)) return t;
  std::vector<Term> args;
  args.reserve(t->args.size());
  for (const Term a : t->args) args.push_back(replaced(a, symbol, by));
  return t.pool().must(t->op, std::move(args));
}

Term offset_term(term::Pool& pool, const Layout& mode, Term index) {
  if (index->op == term::Op::constant && index->value >= 0 && index->value < mode.size())
    return pool.constant(mode(index->value));
  const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
  Term sum, rest = index;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool last = i + 1 == extents.size();
    if (strides[i] != 0) {
      const Term part = (last ? rest : floor_mod(rest, extents[i])) * strides[i];
      sum = sum ? sum + part : part;
    }
    if (!last) rest = floor_div(rest, extents[i]);
  }
  return sum ? sum : pool.constant(0);
}

std::string quoted(Term t) {
  return fmt::format("`{}`", term::to_string(term::simplify(t)));
}

Term address_term(const Kernel& k, const SharedAt& a) {
  const Shared& s = k[a.shared];
  Term sum = k.pool->constant(0);
  for (int i = 0; i < s.layout.rank(); ++i)
    sum = sum + offset_term(*k.pool, s.layout.mode(i), a.at[i]);
  return sum * int64_t{size_of(s.element)} + s.at;
}

}  // namespace tessera::core
