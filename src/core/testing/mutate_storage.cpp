// Edits of storages and of bounds, which have no site of their own among the instructions.
#include <algorithm>
#include <functional>

#include "core/testing/mutate.h"

namespace tessera::core::testing {
namespace {

// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term replaced(Term t, const std::function<Term(Term)>& by) {
  const Term own = by(t);
  if (own != t) return own;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(replaced(a, by));
  return args == t->args ? t : t.pool().must(t->op, std::move(args));
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void each(Body& body, const std::function<void(Op&)>& see) {
  for (Op& op : body) {
    see(op);
    if (auto* loop = std::get_if<For>(&op.node)) each(loop->body, see);
    if (auto* branch = std::get_if<If>(&op.node)) {
      each(branch->body, see);
      each(branch->otherwise, see);
    }
    if (auto* elected = std::get_if<Elected>(&op.node)) each(elected->body, see);
    if (auto* role = std::get_if<Role>(&op.node)) each(role->body, see);
  }
}

class Edits {
 public:
  explicit Edits(const Kernel& kernel) : kernel_(kernel) {}

  void add(const std::string& name, Breaks breaks, const std::string& edit,
           const std::function<void(Kernel&)>& apply) {
    int site = 0;
    for (const Mutant& m : out) site += m.name == name ? 1 : 0;
    Mutant m{name, breaks, site, edit, kernel_};
    apply(m.kernel);
    out.push_back(std::move(m));
  }

  void buffers() {
    for (std::size_t i = 1; i < kernel_.shared.size(); ++i)
      add("alias_buffers", Breaks::synchronization,
          fmt::format("`{}` lies where `{}` does", kernel_.shared[i].name,
                      kernel_.shared[i - 1].name),
          [=](Kernel& k) { k.shared[i].at = k.shared[i - 1].at; });
    for (std::size_t i = 0; i < kernel_.shared.size(); ++i) {
      add("buffer_moved", Breaks::synchronization,
          fmt::format("`{}` begins 1024 bytes earlier", kernel_.shared[i].name),
          [=](Kernel& k) { k.shared[i].at -= k.shared[i].at >= 1024 ? 1024 : 0; });
      add("barriers_in_buffer", Breaks::synchronization,
          fmt::format("`{}` lies over the first barriers", kernel_.shared[i].name),
          [=](Kernel& k) { k.barriers[0].at = k.shared[i].at; });
    }
  }

  void maps() {
    for (std::size_t i = 0; i < kernel_.maps.size(); ++i) {
      const std::string& name = kernel_.maps[i].name;
      add("fill_nan", Breaks::data, fmt::format("`{}` fills with nan", name),
          [=](Kernel& k) { k.maps[i].fill = arch::OutOfBounds::nan; });
      add("dims_exchanged", Breaks::data, fmt::format("`{}` has its dimensions exchanged", name),
          [=](Kernel& k) { std::swap(k.maps[i].dims[0], k.maps[i].dims[1]); });
      add("other_tensor", Breaks::data, fmt::format("`{}` is of the next map's tensor", name),
          [=](Kernel& k) { k.maps[i].tensor = k.maps[(i + 1) % k.maps.size()].tensor; });
      add("smaller_box", Breaks::data, fmt::format("the box of `{}` has half its rows", name),
          [=](Kernel& k) { k.maps[i].box[1] /= 2; });
    }
  }

  /// Loops that leave out the last part of an extent: `K // 64` for `(K + 63) // 64`, in all roles.
  void floors() {
    std::vector<Term> counters;
    Kernel seen = kernel_;
    each(seen.body, [&](Op& op) {
      const auto* loop = op.as<For>();
      if (loop != nullptr && !loop->unroll &&
          std::find(counters.begin(), counters.end(), loop->counter) == counters.end())
        counters.push_back(loop->counter);
    });
    const auto floor = [](Term t) {
      if (t->op != term::Op::divide || t->args[0]->op != term::Op::add) return t;
      const Term more = t->args[0]->args[1];
      if (more->op != term::Op::constant || t->args[1]->op != term::Op::constant) return t;
      return more->value == t->args[1]->value - 1 ? term::floor_div(t->args[0]->args[0], t->args[1])
                                                  : t;
    };
    for (Term counter : counters)
      add("floor_for_ceil", Breaks::data,
          fmt::format("the loops over `{}` leave out what is no whole tile", to_string(counter)),
          [=](Kernel& k) {
            const Result<Term> fresh =
                k.pool->counter(counter->symbol->name + "_floor", counter->symbol->bounds.lower,
                                replaced(counter->symbol->bounds.upper, floor));
            if (!fresh) return;
            rename(k, counter, *fresh, floor);
          });
  }

  /// A wait's slot and parity begin anew in every turn of the outer loop.
  void resets() {
    Kernel seen = kernel_;
    std::size_t ops = 0;
    each(seen.body, [&](Op& op) {
      const std::size_t here = ops++;
      const auto* issue = op.as<Issue>();
      if (issue == nullptr || issue->form->name != "mbarrier.wait") return;
      const auto& parity = std::get<Integers>(issue->arguments[1]).values[0];
      const auto& at = std::get<BarrierAt>(issue->arguments[0]);
      for (Term counter : term::symbols_of({parity, at.slot})) {
        if (counter->op != term::Op::counter) continue;
        add("reset_phase", Breaks::synchronization,
            fmt::format("a wait's phase does not depend on `{}`", to_string(counter)),
            [=](Kernel& k) {
              const auto zero = [&](Term t) { return t == counter ? k.pool->constant(0) : t; };
              std::size_t n = 0;
              each(k.body, [&](Op& o) {
                if (n++ != here) return;
                auto& wait = std::get<Issue>(o.node);
                Term& p = std::get<Integers>(wait.arguments[1]).values[0];
                p = replaced(p, zero);
              });
            });
      }
    });
  }

  std::vector<Mutant> out;

 private:
  /// All loops over `from` run over `to`, and everything within says so.
  static void rename(Kernel& k, Term from, Term to, const std::function<Term(Term)>& bound) {
    // What counts turns by the number of them, as slots and phases do, has the new number.
    const Term old = from->symbol->bounds.upper, less = replaced(old, bound);
    const auto renamed = [&](Term t) { return t == from ? to : t == old ? less : t; };
    const auto apply = [&](Term& t) {
      if (t) t = replaced(t, renamed);
    };
    each(k.body, [&](Op& op) {
      if (auto* loop = std::get_if<For>(&op.node)) {
        apply(loop->counter);
        apply(loop->lower);
        apply(loop->upper);
      }
      if (auto* branch = std::get_if<If>(&op.node)) apply(branch->condition);
      auto* issue = std::get_if<Issue>(&op.node);
      if (issue == nullptr) return;
      for (Argument& a : issue->arguments) {
        if (auto* n = std::get_if<Integers>(&a))
          for (Term& t : n->values) apply(t);
        if (auto* s = std::get_if<SharedAt>(&a))
          for (Term& t : s->at) apply(t);
        if (auto* g = std::get_if<GlobalAt>(&a))
          for (Term& t : g->at) apply(t);
        if (auto* b = std::get_if<BarrierAt>(&a)) apply(b->slot);
        if (auto* s = std::get_if<Slice>(&a)) apply(s->first);
      }
    });
  }

  const Kernel& kernel_;
};

}  // namespace

std::vector<Mutant> storage_mutants(const Kernel& kernel) {
  Edits e(kernel);
  e.buffers();
  e.maps();
  e.floors();
  e.resets();
  return std::move(e.out);
}

}  // namespace tessera::core::testing
