#include "core/verify.h"

#include <algorithm>

#include "core/verifier.h"

namespace tessera::core {
namespace {

class Verifier {
 public:
  Verifier(const Kernel& k, const arch::Arch& arch) : top_(k, arch, out_) {}

  std::vector<Diagnostic> run() {
    verify_head(top_);
    if (!out_.empty()) return std::move(out_);  // nothing below can be trusted
    verify_storages(top_);
    body(top_.kernel.body, top_);
    roles();
    verify_budget(top_, changes_);
    std::stable_sort(out_.begin(), out_.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    return std::move(out_);
  }

 private:
  /// The ops of a body; what they declare is known to those after them.
  void body(const Body& ops, Site site) {
    for (const Op& op : ops) {
      site.op = &op;
      if (const auto* i = op.as<Issue>()) issue({site, *i});
      if (const auto* c = op.as<Compute>()) verify_compute(site, *c);
      if (const auto* t = op.as<Tag>()) verify_tag(site, *t);
      if (const auto* a = op.as<AssertTag>()) verify_assertion(site, *a);
      if (const auto* d = op.as<Declare>()) {
        verify_declared(site, d->registers);
        site.declared.push_back(d->registers);
      }
      if (const auto* f = op.as<For>()) loop(*f, site);
      if (const auto* i = op.as<If>()) branch(*i, site);
      if (const auto* e = op.as<Elected>()) {
        Site inside = site;
        inside.elected = true;
        body(e->body, inside);
      }
      if (const auto* r = op.as<Role>()) role(*r, site);
    }
  }

  void issue(const Issued& i) {
    const arch::Form& form = *i.issue.form;
    if (!i.site.arch.has(form.capability))
      return i.site.report(
          fail(bad_argument, "`{}` is no instruction of {}", form.name, i.site.arch.name)
              .expect("an architecture that has `{}`", form.capability));
    if (const Status s = arch::check(form, i.issue.choices); !s) {
      Diagnostic d = fail(bad_argument, "{}", s.error().message);
      d.expected = s.error().expected;
      return i.site.report(std::move(d));
    }
    verify_issuer(i);
    if (!verify_arguments(i)) return;
    verify_common(i);
    verify_boxes(i);
    verify_matrices(i);
    verify_fragments(i);
    for (const arch::Event& e : form.effects.events) {
      if (e.kind != arch::EventKind::register_pool) continue;
      const auto* n = std::get_if<Integers>(i.argument(e.amount.name));
      const auto values = n == nullptr ? std::nullopt : i.site.values(n->values[0]);
      if (!values || values->size() != 1) continue;
      changes_.push_back({i.site.op, i.site.role, e.verb == arch::Verb::awaits,
                          i.site.control.empty() && !i.site.elected, values->front()});
    }
  }

  void loop(const For& f, const Site& site) {
    const Span span = site.op->span;
    const bool terms =
        site.known(f.lower, span) && site.known(f.upper, span) && site.known(f.step, span);
    if (!terms) return;
    const term::Symbol* s = f.counter ? f.counter->symbol : nullptr;
    if (s == nullptr || s->kind != term::Op::counter || s->bounds.lower != f.lower ||
        s->bounds.upper != f.upper)
      return site.report(fail(bad_structure, "a loop's counter has other bounds than the loop")
                             .expect("a counter of the pool with the loop's bounds"));
    if (!name_is_free(s->name, site)) return;
    if (!f.step->facts.at_least(1))
      site.report(fail(bad_structure, "a loop's step may be below 1")
                      .expect("at least 1")
                      .but_found("`{}`", term::to_string(f.step)));
    const auto fixed = [](Term t) { return t->facts.constant().has_value(); };
    if (f.unroll && (!fixed(f.lower) || !fixed(f.upper) || !fixed(f.step)))
      site.report(fail(bad_structure, "an unrolled loop has bounds that change")
                      .expect("constants")
                      .help("write `range` for a loop that counts at run time"));
    const auto from = f.lower->facts.constant(), to = f.upper->facts.constant();
    if (from && to && *from >= *to) return;  // no one ever comes to its body
    Site inside = site;
    inside.loops.push_back(&f);
    if (!carried(f, site, inside)) return;
    if (!f.unroll)
      for (const Term t : {f.lower, f.upper, f.step}) inside.control.push_back(t);
    if (f.step->facts.constant() != 1 && f.step->facts.at_least(1))
      inside.conditions.push_back(
          equals(floor_mod(f.counter - f.lower, f.step), site.pool().constant(0)));
    body(f.body, inside);
  }

  /// Sums over the turns before: false where what follows would be told again.
  bool carried(const For& f, const Site& site, const Site& inside) {
    if (f.unroll && !f.carried.empty())
      site.report(fail(bad_structure, "an unrolled loop carries a sum from turn to turn")
                      .expect("sums in loops that count at run time"));
    for (const Carried& c : f.carried) {
      const term::Symbol* s = c.symbol ? c.symbol->symbol : nullptr;
      if (s == nullptr || s->kind != term::Op::counter ||
          s->bounds.lower != site.pool().constant(0) ||
          s->bounds.upper != site.pool().constant(most_carried)) {
        site.report(fail(bad_structure, "a sum over turns is no counter of its own")
                        .expect("a counter of the pool from 0 to 2^62"));
        return false;
      }
      if (!name_is_free(s->name, site) || !inside.known(c.amount, site.op->span)) return false;
      const bool of_itself = any_node(c.amount, [&](Term n) {
        return std::any_of(f.carried.begin(), f.carried.end(),
                           [&](const Carried& o) { return o.symbol == n; });
      });
      const Term zero = site.pool().constant(0);
      if (of_itself)
        site.report(fail(bad_structure, "`{}` is added up and made of such sums", s->name)
                        .expect("an amount of the loop's counter"));
      else
        inside.prove({.holds = less_equal(zero, c.amount),
                      .code = bad_structure,
                      .wrong = fmt::format("`{}` may count down", s->name),
                      .expected = "an amount of at least 0",
                      .found = fmt::format("`{}`", term::to_string(c.amount)),
                      .whether = fmt::format("`{}` counts up", s->name)},
                     site.op->span);
    }
    return true;
  }

  void branch(const If& i, const Site& site) {
    if (!site.known(i.condition, site.op->span, true)) return;
    Site inside = site;
    inside.control.push_back(i.condition);
    inside.conditions.push_back(i.condition);
    body(i.body, inside);
    inside.conditions.back() = logical_not(i.condition);
    body(i.otherwise, inside);
  }

  void role(const Role& r, const Site& site) {
    if (site.role != nullptr || site.elected || !site.control.empty() || !site.loops.empty())
      return site.report(fail(bad_structure, "role `{}` stands in a block", r.name)
                             .expect("roles in the kernel's own body"));
    const term::Symbol* s = r.warp ? r.warp->symbol : nullptr;
    if (!is_name(r.name) || s == nullptr || s->kind != term::Op::coordinate ||
        s->bounds.upper != site.pool().constant(r.warps))
      return site.report(fail(bad_structure, "role `{}` has no coordinate of its warps", r.name)
                             .expect("a name, and a coordinate of {} values", r.warps));
    if (!name_is_free(s->name, site)) return;
    roles_.push_back({&r, site.op});
    Site inside = site;
    inside.role = &r;
    inside.declared.clear();  // those of the block belong to all its threads
    body(r.body, inside);
  }

  /// Names of counters and of roles' warps, against the storages and the names around them.
  bool name_is_free(const std::string& name, const Site& site) const {
    const Kernel& k = site.kernel;
    const auto named = [&](const auto& all) {
      return std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == name; });
    };
    bool free = !named(k.tensors) && !named(k.maps) && !named(k.shared) && !named(k.barriers) &&
                k.constants.count(name) == 0 && is_name(name);
    for (const RegistersId r : site.declared) free = free && k[r].name != name;
    for (const For* f : site.loops) {
      free = free && f->counter->symbol->name != name;
      for (const Carried& c : f->carried) free = free && c.symbol->symbol->name != name;
    }
    if (!free)
      site.report(fail(bad_structure, "`{}` is no free name here", name)
                      .expect("a name of Python that no storage and no loop around it has"));
    return free;
  }

  void roles() {
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      const Role& r = *roles_[i].first;
      Site site = top_;
      site.op = roles_[i].second;
      if (r.first_warp < 0 || r.warps < 1 || r.first_warp + r.warps > top_.kernel.threads / 32)
        site.report(fail(bad_structure, "role `{}` has warps beyond the block's", r.name)
                        .expect("warps 0 to {}", top_.kernel.threads / 32 - 1)
                        .but_found("{} to {}", r.first_warp, r.first_warp + r.warps - 1));
      for (std::size_t j = 0; j < i; ++j) {
        const Role& other = *roles_[j].first;
        if (r.first_warp < other.first_warp + other.warps &&
            other.first_warp < r.first_warp + r.warps)
          site.report(fail(bad_structure, "roles `{}` and `{}` share warps", other.name, r.name)
                          .expect("every warp in one role at most")
                          .but_found("warps {} to {} and {} to {}", other.first_warp,
                                     other.first_warp + other.warps - 1, r.first_warp,
                                     r.first_warp + r.warps - 1));
        if (r.name == other.name)
          site.report(fail(bad_structure, "two roles are called `{}`", r.name));
      }
    }
  }

  std::vector<Diagnostic> out_;
  Site top_;
  std::vector<std::pair<const Role*, const Op*>> roles_;
  std::vector<RegisterChange> changes_;
};

}  // namespace

const Argument* Issued::argument(std::string_view operand) const {
  const std::size_t i = index(operand);
  return i < issue.arguments.size() ? &issue.arguments[i] : nullptr;
}

std::size_t Issued::index(std::string_view operand) const {
  const arch::Operand* o = form().operand(operand);
  return o == nullptr ? form().operands.size()
                      : static_cast<std::size_t>(o - form().operands.data());
}

std::vector<Diagnostic> verify(const Kernel& k, const arch::Arch& arch) {
  return Verifier(k, arch).run();
}

}  // namespace tessera::core
