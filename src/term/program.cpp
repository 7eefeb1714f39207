#include "term/program.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "term/evaluate.h"

namespace tessera::term {
namespace {

constexpr int64_t small_limit = int64_t{1} << 31;

void gather(Term t, std::map<const Node*, int>& seen, std::map<int32_t, Term>& leaves) {
  if (!seen.emplace(t.node(), 0).second) return;
  if (t->leaf() && t->symbol != nullptr) leaves[t->symbol->index] = t;
  for (Term a : t->args) gather(a, seen, leaves);
}

template <class F>
void each(Program::Register& to, const Program::Register& a, const Program::Register& b, F f) {
  for (int i = 0; i < Program::block; ++i) to[i] = f(a[i], b[i]);
}

template <class F>
bool each_watched(Program::Register& to, const Program::Register& a, const Program::Register& b,
                  F overflows) {
  bool lost = false;
  for (int i = 0; i < Program::block; ++i) lost |= overflows(a[i], b[i], &to[i]);
  return !lost;
}

}  // namespace

Program::Program(const std::vector<Term>& outputs, uint64_t seed) : seed_(seed) {
  std::map<const Node*, int> seen;
  std::map<int32_t, Term> leaves;
  for (Term t : outputs) gather(t, seen, leaves);
  registers_.reserve(seen.size());
  for (const auto& [index, leaf] : leaves) {
    places_[leaf.node()] = static_cast<int>(inputs_.size());
    inputs_.push_back(leaf);
    registers_.emplace_back();
  }
  for (Term t : outputs) {
    compile(t);
    outputs_.push_back(places_.at(t.node()));
  }
}

void Program::compile(Term t) {
  if (places_.contains(t.node())) return;
  for (Term a : t->args) compile(a);
  const int to = static_cast<int>(registers_.size());
  registers_.emplace_back();
  places_[t.node()] = to;
  if (t->op == Op::constant || t->op == Op::truth) {
    registers_[to].fill(t->value);
    return;
  }
  Instruction i;
  i.op = t->op;
  i.to = to;
  i.watched = !t->predicate() && !(t->facts.lower && t->facts.upper);
  if (t->op == Op::read) {
    i.memory = t->symbol;
    for (Term a : t->args) i.indices.push_back(places_.at(a.node()));
  } else {
    const auto place = [&](std::size_t k) {
      return k < t->args.size() ? places_.at(t->args[k].node()) : 0;
    };
    i.a = place(0);
    i.b = place(1);
    i.c = place(2);
    if (t->args.size() == 2 && t->args[1]->op == Op::constant) i.immediate = t->args[1]->value;
    if (t->op == Op::divide || t->op == Op::remainder)
      i.small = t->args[0]->facts.within(0, small_limit - 1) &&
                t->args[1]->facts.within(1, small_limit - 1);
  }
  code_.push_back(std::move(i));
}

bool Program::run() {
  bool fits = true;
  for (const Instruction& i : code_) fits &= execute(i);
  return fits;
}

bool Program::execute(const Instruction& i) {
  switch (i.op) {
    case Op::read:
      read(i);
      return true;
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::shift_left:
      return arithmetic(i);
    case Op::divide:
    case Op::remainder:
      return divide(i);
    case Op::select: {
      const Register &p = registers_[i.a], &x = registers_[i.b], &y = registers_[i.c];
      Register& to = registers_[i.to];
      for (int k = 0; k < block; ++k) to[k] = p[k] != 0 ? x[k] : y[k];
      return true;
    }
    case Op::bit_xor:
    case Op::bit_and:
    case Op::bit_or:
    case Op::shift_right:
    case Op::min:
    case Op::max:
      bits(i);
      return true;
    default:
      compare(i);
      return true;
  }
}

bool Program::arithmetic(const Instruction& i) {
  const Register &a = registers_[i.a], &b = registers_[i.b];
  Register& to = registers_[i.to];
  if (i.op == Op::shift_left) {
    return each_watched(to, a, b, [](int64_t x, int64_t y, int64_t* out) {
      return y < 0 || y > 62 || __builtin_mul_overflow(x, int64_t{1} << y, out);
    });
  }
  if (i.watched) {
    if (i.op == Op::add)
      return each_watched(to, a, b, [](int64_t x, int64_t y, int64_t* out) {
        return __builtin_add_overflow(x, y, out);
      });
    if (i.op == Op::subtract)
      return each_watched(to, a, b, [](int64_t x, int64_t y, int64_t* out) {
        return __builtin_sub_overflow(x, y, out);
      });
    return each_watched(to, a, b, [](int64_t x, int64_t y, int64_t* out) {
      return __builtin_mul_overflow(x, y, out);
    });
  }
  // Values of points beyond the last are those of the last, so nothing here overflows.
  if (i.op == Op::add) each(to, a, b, [](int64_t x, int64_t y) { return x + y; });
  if (i.op == Op::subtract) each(to, a, b, [](int64_t x, int64_t y) { return x - y; });
  if (i.op == Op::multiply) each(to, a, b, [](int64_t x, int64_t y) { return x * y; });
  return true;
}

bool Program::divide(const Instruction& i) {
  const Register &a = registers_[i.a], &b = registers_[i.b];
  Register& to = registers_[i.to];
  const bool quotient = i.op == Op::divide;
  if (i.immediate && std::has_single_bit(static_cast<uint64_t>(*i.immediate))) {
    const int shift = std::countr_zero(static_cast<uint64_t>(*i.immediate));
    const int64_t mask = *i.immediate - 1;
    for (int k = 0; k < block; ++k) to[k] = quotient ? a[k] >> shift : a[k] & mask;
    return true;
  }
  if (i.small) {
    each(to, a, b, [quotient](int64_t x, int64_t y) -> int64_t {
      const auto n = static_cast<uint32_t>(x), d = static_cast<uint32_t>(y);
      return quotient ? n / d : n % d;
    });
    return true;
  }
  bool possible = true;
  each(to, a, b, [&](int64_t x, int64_t y) -> int64_t {
    possible &= y >= 1;
    if (y < 1) return 0;
    return quotient ? floor_quotient(x, y) : floor_remainder(x, y);
  });
  return possible;
}

void Program::bits(const Instruction& i) {
  const Register &a = registers_[i.a], &b = registers_[i.b];
  Register& to = registers_[i.to];
  switch (i.op) {
    case Op::bit_xor:
      return each(to, a, b, [](int64_t x, int64_t y) { return x ^ y; });
    case Op::bit_and:
      return each(to, a, b, [](int64_t x, int64_t y) { return x & y; });
    case Op::bit_or:
      return each(to, a, b, [](int64_t x, int64_t y) { return x | y; });
    case Op::min:
      return each(to, a, b, [](int64_t x, int64_t y) { return std::min(x, y); });
    case Op::max:
      return each(to, a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
    default:
      return each(to, a, b, [](int64_t x, int64_t y) { return x >> (y & 63); });
  }
}

void Program::compare(const Instruction& i) {
  const Register &a = registers_[i.a], &b = registers_[i.b];
  Register& to = registers_[i.to];
  switch (i.op) {
    case Op::equal:
      return each(to, a, b, [](int64_t x, int64_t y) -> int64_t { return x == y; });
    case Op::not_equal:
      return each(to, a, b, [](int64_t x, int64_t y) -> int64_t { return x != y; });
    case Op::less:
      return each(to, a, b, [](int64_t x, int64_t y) -> int64_t { return x < y; });
    case Op::less_equal:
      return each(to, a, b, [](int64_t x, int64_t y) -> int64_t { return x <= y; });
    case Op::logical_and:
      return each(to, a, b, [](int64_t x, int64_t y) { return x & y; });
    case Op::logical_or:
      return each(to, a, b, [](int64_t x, int64_t y) { return x | y; });
    case Op::logical_not:
      return each(to, a, a, [](int64_t x, int64_t) -> int64_t { return x == 0; });
    default:
      throw std::logic_error("term: an operator without code");
  }
}

void Program::read(const Instruction& i) {
  std::vector<int64_t> at(i.indices.size());
  for (int k = 0; k < block; ++k) {
    for (std::size_t j = 0; j < at.size(); ++j) at[j] = registers_[i.indices[j]][k];
    registers_[i.to][k] = invented(*i.memory, at, seed_);
  }
}

std::optional<int64_t> points(const std::vector<Axis>& axes) {
  int64_t total = 1;
  for (const Axis& a : axes) {
    if (a.count == 0) return 0;
    if (total > (int64_t{1} << 62) / a.count) return std::nullopt;
    total *= a.count;
  }
  return total;
}

std::vector<int64_t> point(const std::vector<Axis>& axes, int64_t index) {
  std::vector<int64_t> out(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    out[i] = axes[i].first + axes[i].step * (index % axes[i].count);
    index /= axes[i].count;
  }
  return out;
}

namespace {

// The values of one axis at the points from `begin` on; `inner` points have the same one in a row.
void fill(Program::Register& to, const Axis& axis, int64_t inner, int64_t begin, int64_t total) {
  int64_t within = begin % inner, index = (begin / inner) % axis.count;
  const int count = static_cast<int>(std::min<int64_t>(Program::block, total - begin));
  for (int i = 0; i < count;) {
    const int run = static_cast<int>(std::min<int64_t>(inner - within, count - i));
    std::fill_n(to.begin() + i, run, axis.first + axis.step * index);
    i += run;
    within = 0;
    if (++index == axis.count) index = 0;
  }
  std::fill(to.begin() + count, to.end(), to[count - 1]);
}

}  // namespace

Walk walk(Program& program, const std::vector<Axis>& axes,
          const std::function<bool(int64_t, int)>& see) {
  const int64_t total = points(axes).value();
  struct Input {
    std::size_t place;
    const Axis* axis;
    int64_t inner;
  };
  std::vector<Input> inputs;
  for (std::size_t i = 0; i < program.inputs().size(); ++i) {
    const auto it = std::find_if(axes.begin(), axes.end(),
                                 [&](const Axis& a) { return a.leaf == program.inputs()[i]; });
    if (it == axes.end()) throw std::logic_error("term: an input without an axis");
    int64_t inner = 1;
    for (auto after = it + 1; after != axes.end(); ++after) inner *= after->count;
    inputs.push_back({i, &*it, inner});
  }
  for (int64_t begin = 0; begin < total; begin += Program::block) {
    for (const Input& i : inputs) {
      // An axis that stays as it is for all points is filled once.
      if (begin > 0 && i.axis->count == 1) continue;
      fill(program.input(i.place), *i.axis, i.inner, begin, total);
    }
    if (!program.run()) return Walk::overflowed;
    if (!see(begin, static_cast<int>(std::min<int64_t>(Program::block, total - begin))))
      return Walk::stopped;
  }
  return Walk::done;
}

}  // namespace tessera::term
