#include "check/launch.h"

#include <algorithm>

namespace tessera::check {
namespace {

class Launches {
 public:
  Launches(const core::Kernel& kernel, const std::vector<const core::For*>& loops, Term t,
           const Known& known, bool holds)
      : kernel_(kernel), loops_(loops), term_(t), grid_(kernel.grid), holds_(holds) {
    std::vector<Term> all = {t,
                             kernel.grid,
                             kernel.at.block,
                             kernel.at.blocks,
                             kernel.at.rank,
                             kernel.at.multiprocessors};
    for (const core::For* f : loops) {
      bounds_.push_back({Expression(f->lower), Expression(f->upper), Expression(f->step)});
      all.insert(all.end(), {f->lower, f->upper, f->step, f->counter});
    }
    all.insert(all.end(), kernel.parameters.begin(), kernel.parameters.end());
    std::vector<Term> asked = {t, kernel.grid};
    for (const core::For* f : loops) asked.insert(asked.end(), {f->lower, f->upper});
    const std::vector<Term> matter = term::symbols_of(asked);
    for (Term p : kernel.parameters)
      matters_.push_back(std::find(matter.begin(), matter.end(), p) != matter.end());
    int most = 0;
    for (Term s : term::symbols_of(all)) most = std::max(most, s->symbol->index);
    for (const auto& [node, value] : known) most = std::max(most, node->symbol->index);
    values_.assign(static_cast<std::size_t>(most) + 1, 0);
    for (const auto& [node, value] : known)
      values_[static_cast<std::size_t>(node->symbol->index)] = value;
  }

  std::optional<std::string> find() {
    parameter(0);
    return found_;
  }

 private:
  int64_t& at(Term leaf) { return values_[static_cast<std::size_t>(leaf->symbol->index)]; }

  // NOLINTNEXTLINE(misc-no-recursion): a parameter after the other
  void parameter(std::size_t i) {
    if (found_) return;
    if (i == kernel_.parameters.size()) return launch();
    const term::Facts& f = kernel_.parameters[i]->symbol->facts;
    const int64_t step = std::max<int64_t>(f.modulus, 1), low = f.lower.value_or(1);
    for (int64_t n : {low, low + step, low + 40 * step, low + 150 * step}) {
      if (f.upper && n > *f.upper) continue;
      at(kernel_.parameters[i]) = n;
      parameter(i + 1);
      if (!matters_[i]) break;
    }
  }

  void launch() {
    for (int64_t multiprocessors : {1, 3}) {
      at(kernel_.at.multiprocessors) = multiprocessors;
      const int64_t blocks = grid_(values_).value_or(0);
      at(kernel_.at.blocks) = blocks;
      for (int64_t b = 0; b < std::min<int64_t>(blocks, 3) && !found_; ++b) {
        at(kernel_.at.block) = b;
        at(kernel_.at.rank) = b % kernel_.cluster;
        turn(0);
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): loops nest
  void turn(std::size_t i) {
    if (found_) return;
    if (i == loops_.size()) return see();
    const auto& [lower, upper, step] = bounds_[i];
    const int64_t from = lower(values_).value_or(0),
                  by = std::max<int64_t>(step(values_).value_or(1), 1);
    const int64_t end = std::min(upper(values_).value_or(0), from + 3 * by);
    for (int64_t n = from; n < end && !found_; n += by) {
      at(loops_[i]->counter) = n;
      turn(i + 1);
    }
  }

  void see() {
    const std::optional<int64_t> value = term_(values_);
    if (!value) return;
    const auto where = [&] {
      std::string out = holds_ ? "" : fmt::format("{} at ", *value);
      const char* before = "";
      const auto tell = [&](Term leaf) {
        out += fmt::format("{}{} = {}", before, leaf->symbol->name, at(leaf));
        before = ", ";
      };
      for (Term p : kernel_.parameters) tell(p);
      tell(kernel_.at.block);
      tell(kernel_.at.blocks);
      for (const core::For* f : loops_) tell(f->counter);
      return out;
    };
    if (holds_) {
      if (*value == 0) found_ = where();
    } else if (!first_) {
      first_ = value;
      first_where_ = where();
    } else if (*value != *first_) {
      found_ = first_where_ + "; " + where();
    }
  }

  const core::Kernel& kernel_;
  const std::vector<const core::For*>& loops_;
  Expression term_, grid_;
  bool holds_;
  std::vector<bool> matters_;  // by parameter: the term, or how often it is met, depends on it
  std::vector<std::array<Expression, 3>> bounds_;
  Values values_;
  std::optional<int64_t> first_;
  std::string first_where_;
  std::optional<std::string> found_;
};

}  // namespace

std::optional<std::string> varies(const core::Kernel& kernel,
                                  const std::vector<const core::For*>& loops, Term t,
                                  const Known& known) {
  return Launches(kernel, loops, t, known, false).find();
}

std::optional<std::string> fails(const core::Kernel& kernel,
                                 const std::vector<const core::For*>& loops, Term predicate,
                                 const Known& known) {
  return Launches(kernel, loops, predicate, known, true).find();
}

std::optional<std::string> fails_at_lengths(const core::Kernel& kernel,
                                            const std::vector<const core::For*>& loops,
                                            Term predicate, const Lengths& lengths) {
  if (lengths.queries->op != term::Op::parameter || lengths.keys->op != term::Op::parameter)
    return std::nullopt;
  const Expression claim(predicate), grid(kernel.grid);
  std::vector<Term> all = {predicate,        kernel.grid,    kernel.at.block,
                           kernel.at.blocks, kernel.at.rank, kernel.at.multiprocessors};
  all.insert(all.end(), kernel.parameters.begin(), kernel.parameters.end());
  for (const core::For* f : loops) all.insert(all.end(), {f->lower, f->upper, f->counter});
  int most = 0;
  for (Term s : term::symbols_of(all)) most = std::max(most, s->symbol->index);
  Values at(static_cast<std::size_t>(most) + 1, 0);
  const auto value = [&](Term leaf) -> int64_t& {
    return at[static_cast<std::size_t>(leaf->symbol->index)];
  };
  for (Term p : kernel.parameters) value(p) = p->symbol->facts.lower.value_or(1);
  value(kernel.at.multiprocessors) = 132;
  const Expression upper(loops.empty() ? kernel.pool->constant(1) : loops.back()->upper);
  const int64_t rows = lengths.rows, dense = 3 * lengths.block + 1;
  for (const int64_t q : {int64_t{1}, rows / 2, rows, rows + 2, 2 * rows})
    for (int64_t k = 1; k <= std::max(dense, 8 * rows); k += k < dense ? 1 : 7) {
      value(lengths.queries) = q;
      value(lengths.keys) = k;
      const int64_t blocks = grid(at).value_or(0);
      value(kernel.at.blocks) = blocks;
      for (int64_t b = 0; b < std::min<int64_t>(blocks, 3); ++b) {
        value(kernel.at.block) = b;
        for (int64_t t = 0; t < upper(at).value_or(0); ++t) {
          if (!loops.empty()) value(loops.back()->counter) = t;
          if (claim(at) == 0)
            return fmt::format(
                "{} = {}, {} = {}, block = {}{}", lengths.queries->symbol->name, q,
                lengths.keys->symbol->name, k, b,
                loops.empty() ? ""
                              : fmt::format(", {} = {}", loops.back()->counter->symbol->name, t));
        }
        if (!loops.empty()) value(loops.back()->counter) = 0;
      }
    }
  return std::nullopt;
}

}  // namespace tessera::check
