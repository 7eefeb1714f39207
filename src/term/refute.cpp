#include "term/refute.h"

#include <algorithm>
#include <set>

namespace tessera::term {
namespace {

constexpr std::size_t most_values = 10;  // of a symbol
constexpr int most_trials = 512;         // assignments of the symbols that are not walked

std::set<int64_t> constants_of(Term t) {
  std::set<int64_t> out;
  any_node(t, [&](Term n) {
    if (n->op == Op::constant && n->value > 0 && n->value < (int64_t{1} << 40))
      out.insert(n->value);
    return out.size() > 64;
  });
  return out;
}

// The bounds under the values so far; nullopt if they cannot be evaluated or leave nothing.
std::optional<Facts> range(Term leaf, const Assignment& so_far) {
  Facts f = leaf->symbol->facts;
  const Bounds& b = leaf->symbol->bounds;
  if (b.lower) {
    const Result<int64_t> low = evaluate(b.lower, so_far);
    if (!low) return std::nullopt;
    f.lower = f.lower ? std::max(*f.lower, *low) : *low;
  }
  if (b.upper) {
    const Result<int64_t> end = evaluate(b.upper, so_far);
    if (!end || *end == std::numeric_limits<int64_t>::min()) return std::nullopt;
    f.upper = f.upper ? std::min(*f.upper, *end - 1) : *end - 1;
  }
  if (f.lower && f.upper && *f.lower > *f.upper) return std::nullopt;
  f = facts_of(f.lower, f.upper, f.modulus, f.residue);
  if (f.lower && f.upper && *f.lower > *f.upper) return std::nullopt;
  return f;
}

std::vector<int64_t> values_of(Term leaf, const Assignment& so_far,
                               const std::set<int64_t>& constants) {
  const auto f = range(leaf, so_far);
  if (!f) return {};
  const int64_t step = std::max<int64_t>(f->modulus, 1);
  const int64_t first = f->lower ? *f->lower : f->upper && *f->upper < 0 ? *f->upper : f->residue;
  std::set<int64_t> out;
  const auto offer = [&](Wide value) {
    const auto v = narrow(value);
    if (v && f->holds(*v)) out.insert(*v);
  };
  for (int i = 0; i < 3; ++i) offer(Wide{first} + Wide{step} * i);
  if (!f->lower) offer(Wide{first} - step);
  if (f->upper) offer(*f->upper);
  for (const int64_t c : constants) {
    if (out.size() >= most_values) break;
    const int64_t aligned = c - floor_remainder(c - f->residue, step);
    for (const int64_t near : {aligned, aligned + step}) offer(near);
  }
  return {out.begin(), out.end()};
}

class Trials {
 public:
  Trials(Term claim, Term reduced, const Effort& effort)
      : claim_(claim),
        reduced_(reduced),
        left_(effort.operations),
        constants_(constants_of(reduced)) {
    for (Term s : symbols_of({claim, reduced})) {
      if (is_walked(s))
        axes_.push_back(axis_of(s));
      else
        open_.push_back(s);
    }
    reads_ = any_node(reduced, [](Term n) { return n->op == Op::read; });
  }

  std::optional<Assignment> run() {
    return points(axes_) == int64_t{0} ? std::nullopt : open_from(0);
  }

 private:
  std::optional<Assignment> open_from(std::size_t i) {
    if (i == open_.size()) return walked();
    for (const int64_t value : values_of(open_[i], so_far_, constants_)) {
      so_far_.symbols[open_[i]->symbol->name] = value;
      if (auto found = open_from(i + 1)) return found;
      if (trials_ >= most_trials || left_ <= 0) break;
    }
    so_far_.symbols.erase(open_[i]->symbol->name);
    return std::nullopt;
  }

  // Leaves that the reduced predicate does not have keep their first value.
  std::optional<Assignment> walked() {
    for (uint64_t seed = 0; seed < (reads_ ? 3 : 1); ++seed) {
      ++trials_;
      Program program({reduced_}, seed);
      std::vector<Axis> axes;
      for (Term leaf : program.inputs()) {
        if (is_walked(leaf))
          axes.push_back(axis_of(leaf));
        else
          axes.push_back({leaf, so_far_.symbols.at(leaf->symbol->name), 1, 1});
      }
      while (!points(axes)) {  // the walk ends with the budget long before
        Axis& longest =
            *std::max_element(axes.begin(), axes.end(),
                              [](const Axis& a, const Axis& b) { return a.count < b.count; });
        longest.count /= 2;
      }
      if (auto found = first_failure(program, axes, seed)) return found;
    }
    return std::nullopt;
  }

  std::optional<Assignment> first_failure(Program& program, const std::vector<Axis>& axes,
                                          uint64_t seed) {
    std::optional<Assignment> found;
    walk(program, axes, [&](int64_t begin, int count) {
      left_ -= count * program.operations();
      for (int i = 0; i < count && !found; ++i)
        if (program.output(0)[i] == 0) found = whole(axes, begin + i, seed);
      return !found && left_ > 0;
    });
    return found;
  }

  std::optional<Assignment> whole(const std::vector<Axis>& axes, int64_t at, uint64_t seed) {
    Assignment a = so_far_;
    for (const Axis& axis : axes_) a.symbols[axis.leaf->symbol->name] = axis.first;
    const std::vector<int64_t> values = point(axes, at);
    for (std::size_t i = 0; i < axes.size(); ++i) a.symbols[axes[i].leaf->symbol->name] = values[i];
    a.seed = seed;
    Assignment used = a;
    const Result<int64_t> value = evaluate(claim_, a, &used);
    used.seed.reset();
    if (!value || *value != 0 || !admissible(symbols_of({claim_}), used)) return std::nullopt;
    return used;
  }

  Term claim_, reduced_;
  int64_t left_;
  std::set<int64_t> constants_;
  std::vector<Axis> axes_;
  std::vector<Term> open_;
  bool reads_ = false;
  int trials_ = 0;
  Assignment so_far_;
};

bool complete_from(const std::vector<Term>& symbols, std::size_t i, Assignment& a) {
  if (i == symbols.size()) return true;
  const std::string& name = symbols[i]->symbol->name;
  if (a.symbols.contains(name)) return complete_from(symbols, i + 1, a);
  for (const int64_t value : values_of(symbols[i], a, {})) {
    a.symbols[name] = value;
    if (complete_from(symbols, i + 1, a)) return true;
    a.symbols.erase(name);
  }
  return false;
}

}  // namespace

std::optional<Assignment> complete(const std::vector<Term>& symbols, const Assignment& fixed) {
  Assignment a = fixed;
  if (!complete_from(symbols, 0, a)) return std::nullopt;
  return a;
}

std::optional<Assignment> refute(Term claim, Term reduced, const Effort& effort) {
  return Trials(claim, reduced, effort).run();
}

std::optional<Assignment> refute_at(Term claim, const std::vector<Axis>& axes,
                                    const std::vector<int64_t>& values) {
  Assignment a;
  for (std::size_t i = 0; i < axes.size(); ++i) a.symbols[axes[i].leaf->symbol->name] = values[i];
  const std::vector<Term> symbols = symbols_of({claim});
  std::optional<Assignment> whole = complete(symbols, a);
  if (!whole) return std::nullopt;
  whole->seed = 0;
  Assignment used = *whole;
  const Result<int64_t> value = evaluate(claim, *whole, &used);
  used.seed.reset();
  if (!value || *value != 0 || !admissible(symbols, used)) return std::nullopt;
  return used;
}

}  // namespace tessera::term
