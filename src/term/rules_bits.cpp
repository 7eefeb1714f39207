// ^ & | << >>. Operands are integers of two's complement without end, so x // 2**s and x % 2**s are
// their upper and lower bits.
#include <algorithm>
#include <bit>
#include <set>

#include "term/rules.h"
#include "term/sum.h"

namespace tessera::term {
namespace {

using Bits = std::optional<uint64_t>;  // those that may be set; without: the term may be negative
                                       // or has no bound

Bits bits_by_facts(const Facts& f) {
  if (!f.at_least(0) || !f.upper) return std::nullopt;
  const int width = std::bit_width(static_cast<uint64_t>(*f.upper));
  uint64_t out = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
  const int known = f.modulus == 0 ? 63 : std::countr_zero(static_cast<uint64_t>(f.modulus));
  const uint64_t low = (uint64_t{1} << known) - 1;
  return out & (~low | static_cast<uint64_t>(f.residue));
}

Bits bits_of(Term t);

// Parts that share no bit are put side by side.
Bits bits_of_parts(const Sum& s) {
  if (s.constant < 0) return std::nullopt;
  auto out = static_cast<uint64_t>(s.constant);
  for (const Part& p : s.parts) {
    const Bits atom = bits_of(p.atom);
    if (!atom || p.coefficient < 1 || !std::has_single_bit(static_cast<uint64_t>(p.coefficient)))
      return std::nullopt;
    const int by = std::countr_zero(static_cast<uint64_t>(p.coefficient));
    if (static_cast<int>(std::bit_width(*atom)) + by > 63 || (out & (*atom << by)) != 0)
      return std::nullopt;
    out |= *atom << by;
  }
  return out;
}

Bits bits_of(Term t) {
  const Bits known = bits_by_facts(t->facts);
  if (!known) return known;
  Bits here;
  if (t->op == Op::add || t->op == Op::subtract || t->op == Op::multiply) {
    const Sum s = sum_of(t);
    if (s != Sum{0, {{t, 1}}}) here = bits_of_parts(s);
  } else if (t->op == Op::bit_xor || t->op == Op::bit_or) {
    const Bits a = bits_of(t->args[0]), b = bits_of(t->args[1]);
    if (a && b) here = *a | *b;
  } else if (t->op == Op::bit_and) {
    const Bits a = bits_of(t->args[0]), b = bits_of(t->args[1]);
    here = a && b ? Bits(*a & *b) : a ? a : b;
  }
  return here ? Bits(*known & *here) : known;
}

std::vector<Term> operands(Op op, Term t) {
  if (t->op != op) return {t};
  std::vector<Term> out = operands(op, t->args[0]);
  for (Term x : operands(op, t->args[1])) out.push_back(x);
  return out;
}

Term chain(Pool& pool, Op op, const std::vector<Term>& xs) {
  Term out = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) out = pool.must(op, {out, xs[i]});
  return out;
}

int64_t fold(Op op, int64_t a, int64_t b) {
  return op == Op::bit_xor ? a ^ b : op == Op::bit_and ? a & b : a | b;
}

// Constants folded into one, which stands last; x ^ x = 0, x & x = x; neutral and absorbing
// constants.
Term gather(Pool& pool, Term t) {
  const Op op = t->op;
  if (op == Op::shift_left || op == Op::shift_right) return t;
  const int64_t neutral = op == Op::bit_and ? -1 : 0;
  int64_t constant = neutral;
  std::vector<Term> xs;
  for (Term x : operands(op, t)) {
    if (x->op == Op::constant)
      constant = fold(op, constant, x->value);
    else
      xs.push_back(x);
  }
  if ((op == Op::bit_and && constant == 0) || (op == Op::bit_or && constant == -1))
    return pool.constant(constant);
  std::sort(xs.begin(), xs.end(), [](Term a, Term b) { return a->id < b->id; });
  std::vector<Term> kept;
  for (Term x : xs) {
    if (kept.empty() || kept.back() != x)
      kept.push_back(x);
    else if (op == Op::bit_xor)
      kept.pop_back();
  }
  if (constant != neutral || kept.empty()) kept.push_back(pool.constant(constant));
  return chain(pool, op, kept);
}

Term shift(Pool& pool, Term t) {
  if ((t->op != Op::shift_left && t->op != Op::shift_right) || t->args[1]->op != Op::constant)
    return t;
  const Term power = pool.constant(int64_t{1} << t->args[1]->value);
  return t->op == Op::shift_left ? t->args[0] * power : floor_div(t->args[0], power);
}

// x & mask as the sum of the fields that the mask's runs of ones select.
Term mask(Pool& /*pool*/, Term t) {
  if (t->op != Op::bit_and || t->args[1]->op != Op::constant) return t;
  const Term x = t->args[0];
  const int64_t constant = t->args[1]->value;
  auto left = static_cast<uint64_t>(constant < 0 ? ~constant : constant);
  Term out;
  for (int runs = 0; left != 0; ++runs) {
    if (runs == 4) return t;
    const int low = std::countr_zero(left), length = std::countr_one(left >> low);
    if (length > 62 || low + length > 62) return t;
    left &= ~(((uint64_t{1} << length) - 1) << low);
    const Term field =
        floor_mod(floor_div(x, int64_t{1} << low), int64_t{1} << length) * (int64_t{1} << low);
    out = out ? out + field : field;
  }
  if (!out) return t;
  return constant < 0 ? x - out : out;
}

Term disjoint(Pool& pool, Term t) {
  if (t->op == Op::shift_left || t->op == Op::shift_right) return t;
  const Bits a = bits_of(t->args[0]), b = bits_of(t->args[1]);
  if (!a || !b || (*a & *b) != 0) return t;
  return t->op == Op::bit_and ? pool.constant(0) : t->args[0] + t->args[1];
}

Term or_constant(Pool& pool, Term t) {
  if (t->op != Op::bit_or || t->args[1]->op != Op::constant) return t;
  return t->args[0] + t->args[1] - pool.must(Op::bit_and, {t->args[0], t->args[1]});
}

Term xor_negative(Pool& pool, Term t) {
  if (t->op != Op::bit_xor || t->args[1]->op != Op::constant || t->args[1]->value >= 0) return t;
  const Term rest = bit_xor(t->args[0], pool.constant(~t->args[1]->value));
  return pool.constant(-1) - rest;
}

struct Field {
  int low = 0;    // bits below are 0
  int high = 64;  // bits from here on are 0; 64: not known
};

Field field_of(Term x) {
  if (const Bits bits = bits_of(x))
    return {*bits == 0 ? 0 : std::countr_zero(*bits), static_cast<int>(std::bit_width(*bits))};
  const Facts& f = x->facts;
  const uint64_t tail = static_cast<uint64_t>(f.modulus) | static_cast<uint64_t>(f.residue);
  return {tail == 0 ? 0 : std::countr_zero(tail), 64};
}

// Where a sum falls into bits above s, multiples of 2**s, and bits below, whose parts stay in [0,
// 2**s).
void cuts_of_sum(Term x, std::set<int>& cuts) {
  const Sum s = sum_of(x);
  for (const Part& p : s.parts) {
    const int at = std::countr_zero(static_cast<uint64_t>(p.coefficient));
    if (at < 1 || at > 62) continue;
    Sum low;
    for (const Part& q : s.parts)
      if (std::countr_zero(static_cast<uint64_t>(q.coefficient)) < at) low.parts.push_back(q);
    low.constant = floor_remainder(s.constant, int64_t{1} << at);
    if (low != Sum{} && facts_of_sum(low).within(0, (int64_t{1} << at) - 1)) cuts.insert(at);
  }
}

// The bits at which some operand falls apart, begins or ends.
std::set<int> cuts_of(const std::vector<Term>& xs) {
  std::set<int> cuts;
  std::vector<Field> fields;
  int low = 64, high = 0;
  for (Term x : xs) {
    fields.push_back(field_of(x));
    low = std::min(low, fields.back().low);
    high = std::max(high, fields.back().high);
    cuts_of_sum(x, cuts);
  }
  if (low > 0) cuts.insert(low);
  for (const Field& f : fields) {
    if (f.low > low) cuts.insert(f.low);
    if (f.high < high) cuts.insert(f.high);
  }
  cuts.erase(cuts.begin(), cuts.lower_bound(1));
  cuts.erase(cuts.upper_bound(62), cuts.end());
  return cuts;
}

Term xor_cut(Pool& pool, Term t) {
  if (t->op != Op::bit_xor) return t;
  const std::vector<Term> xs = operands(Op::bit_xor, t);
  for (const int at : cuts_of(xs)) {
    const int64_t power = int64_t{1} << at;
    std::vector<Term> low, high;
    for (Term x : xs) {
      low.push_back(simplify(floor_mod(x, power)));
      high.push_back(floor_div(x, power));
    }
    // Bounds may know what facts do not: that all operands end below the cut.
    if (low != xs) return chain(pool, Op::bit_xor, high) * power + chain(pool, Op::bit_xor, low);
  }
  return t;
}

constexpr Rule rules[] = {
    {"bits_gather", "(x ^ 5) ^ y ^ x ^ 1 = y ^ 4",
     "one operator; operands in order, constants folded", gather},
    {"bits_shift", "x << k = x * 2**k;  x >> k = x // 2**k", "k a constant", shift},
    {"bits_mask", "x & 0b1110 = 2*((x // 2) % 8);  x & ~m = x - (x & m)",
     "the mask is a constant of at most four runs of ones, below bit 62", mask},
    {"bits_disjoint", "x ^ y = x | y = x + y;  x & y = 0",
     "x and y are bounded, not negative, and share no bit", disjoint},
    {"bits_or_constant", "x | c = x + c - (x & c)", "c a constant", or_constant},
    {"bits_xor_negative", "x ^ c = -1 - (x ^ ~c)", "c a constant below 0", xor_negative},
    {"bits_xor_cut", "x ^ y = 2**s*((x // 2**s) ^ (y // 2**s)) + ((x % 2**s) ^ (y % 2**s))",
     "an operand ends, begins or falls apart at bit s, and not all end below it", xor_cut},
};

}  // namespace

std::span<const Rule> bit_rules() {
  return rules;
}

}  // namespace tessera::term
