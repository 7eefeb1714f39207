#include <stdexcept>
#include <tuple>

#include "smt/numbers.h"

namespace tessera::smt {
namespace {

using term::Facts;
using term::Op;
using term::Term;
using F = Functions;

constexpr unsigned most_bits = 32;  // of a number whose bits become unknowns

class Integers final : public Numbers {
 public:
  explicit Integers(Session& session) : Numbers(session), sort_(session.call<&F::mk_int_sort>()) {}

  [[nodiscard]] const char* logic(bool reads) const override {
    if (products_) return reads ? "QF_UFNIA" : "QF_NIA";
    return reads ? "QF_UFLIA" : "QF_LIA";
  }
  [[nodiscard]] Sort sort() const override { return sort_; }
  Expr constant(int64_t value) override { return session_.call<&F::mk_int64>(value, sort_); }

  Expr unknown(const std::string& name, const Facts& facts) override {
    if (const auto known = facts.constant()) return constant(*known);
    Expr q = session_.named(name, sort_);
    // Bounds are values of the residue class, so that rounding down takes the residue away.
    const auto bound = [&](int64_t x) { return constant(term::floor_quotient(x, facts.modulus)); };
    if (facts.lower) conditions.push_back(less_equal(bound(*facts.lower), q));
    if (facts.upper) conditions.push_back(less_equal(q, bound(*facts.upper)));
    return facts.modulus == 1 ? q : sum(product(constant(facts.modulus), q), facts.residue);
  }

  Expr agrees(Expr value, const Facts& facts) override {
    if (const auto known = facts.constant()) return session_.equal(value, constant(*known));
    std::vector<Expr> all;
    if (facts.lower) all.push_back(less_equal(constant(*facts.lower), value));
    if (facts.upper) all.push_back(less_equal(value, constant(*facts.upper)));
    if (facts.modulus > 1)
      all.push_back(session_.equal(session_.call<&F::mk_mod>(value, constant(facts.modulus)),
                                   constant(facts.residue)));
    return session_.all(all);
  }

  Expr arithmetic(Term t, const std::vector<Expr>& x) override {
    switch (t->op) {
      case Op::add:
        return sum(x[0], x[1]);
      case Op::subtract: {
        const Expr both[] = {x[0], x[1]};
        return session_.call<&F::mk_sub>(2U, both);
      }
      case Op::multiply:
        products_ = products_ || !(is_constant(t->args[0]) || is_constant(t->args[1]));
        return product(x[0], x[1]);
      case Op::divide:
        return is_constant(t->args[1]) ? session_.call<&F::mk_div>(x[0], x[1])
                                       : divided(t, x[0], x[1]).first;
      case Op::remainder:
        return is_constant(t->args[1]) ? session_.call<&F::mk_mod>(x[0], x[1])
                                       : divided(t, x[0], x[1]).second;
      case Op::shift_left:
      case Op::shift_right:
        return shifted(t, x[0], x[1]);
      case Op::bit_xor:
      case Op::bit_and:
      case Op::bit_or:
        return bitwise(t, x);
      default:
        throw std::logic_error("smt: no arithmetic operator");
    }
  }

  Expr less(Expr a, Expr b) override { return session_.call<&F::mk_lt>(a, b); }
  Expr less_equal(Expr a, Expr b) override { return session_.call<&F::mk_le>(a, b); }

  std::optional<int64_t> value(Expr e) override {
    int64_t out = 0;
    if (!session_.call<&F::get_numeral_int64>(session_.value(e), &out)) return std::nullopt;
    return out;
  }

 private:
  static bool is_constant(Term t) { return t->facts.constant().has_value(); }
  Expr sum(Expr a, Expr b) {
    const Expr both[] = {a, b};
    return session_.call<&F::mk_add>(2U, both);
  }
  Expr sum(Expr a, int64_t b) { return b == 0 ? a : sum(a, constant(b)); }
  Expr product(Expr a, Expr b) {
    const Expr both[] = {a, b};
    return session_.call<&F::mk_mul>(2U, both);
  }
  Expr fresh(const char* name) { return session_.call<&F::mk_fresh_const>(name, sort_); }

  // x = d * q + r with 0 <= r < d: products of unknowns, which Z3's own division by a term is too,
  // but without its cases for divisors below 1.
  std::pair<Expr, Expr> divided(Term t, Expr x, Expr d) {
    products_ = true;
    const auto known = divided_.find({x, d});
    if (known != divided_.end()) return known->second;
    Expr q = fresh("q"), r = fresh("r");
    conditions.push_back(session_.equal(x, sum(product(d, q), r)));
    conditions.push_back(less_equal(constant(0), r));
    conditions.push_back(less(r, d));
    // What is clear of a quotient is not to Z3, which has to find it through a product.
    if (t->args[0]->facts.at_least(0)) {
      conditions.push_back(less_equal(constant(0), q));
      conditions.push_back(less_equal(q, x));
      conditions.push_back(less_equal(r, x));
    }
    return divided_[{x, d}] = {q, r};
  }

  // A case for every amount.
  Expr shifted(Term t, Expr x, Expr amount) {
    const Facts& by = t->args[1]->facts;
    const auto moved = [&](int64_t s) {
      Expr power = constant(int64_t{1} << s);
      return t->op == Op::shift_left ? product(x, power) : session_.call<&F::mk_div>(x, power);
    };
    Expr out = moved(*by.upper);
    for (int64_t s = *by.upper - 1; s >= *by.lower; --s)
      out = session_.choice(session_.equal(amount, constant(s)), moved(s), out);
    return out;
  }

  // A number as 2^n * high + its bits from `first` to n - 1 + `low`, which is below 2^first.
  struct Bits {
    unsigned first = 0;
    Expr low = nullptr;
    std::vector<Expr> bits;  // truth values, the least first
    Expr high = nullptr;
  };

  // The bits of a bounded number beside its sign; more than most_bits where there is no bound.
  static unsigned width_of(const Facts& f) {
    unsigned n = 0;
    while (n <= most_bits && !f.within(-(int64_t{1} << n), (int64_t{1} << n) - 1)) ++n;
    return n;
  }

  static unsigned zeros_of(const Facts& f, unsigned most) {
    unsigned k = 0;
    while (k < most && f.multiple_of(int64_t{2} << k)) ++k;
    return k;
  }

  Expr joined(const Bits& b) {
    const std::size_t n = b.first + b.bits.size();
    Expr out = sum(product(constant(int64_t{1} << n), b.high), b.low);
    for (std::size_t i = b.first; i < n; ++i)
      out = sum(out, session_.choice(b.bits[i - b.first], constant(int64_t{1} << i), constant(0)));
    return out;
  }

  // x, which has `low` and `high` where these are known.
  const Bits& bits(Expr x, unsigned first, unsigned n, Expr low, Expr high) {
    const auto known = bits_.find({x, first, n});
    if (known != bits_.end()) return known->second;
    Bits b{first, low, {}, high};
    if (low == nullptr) {
      b.low = first == 0 ? constant(0) : fresh("l");
      conditions.push_back(less_equal(constant(0), b.low));
      conditions.push_back(less(b.low, constant(int64_t{1} << first)));
    }
    if (high == nullptr) b.high = fresh("h");
    for (unsigned i = first; i < n; ++i)
      b.bits.push_back(session_.call<&F::mk_fresh_const>("b", session_.call<&F::mk_bool_sort>()));
    conditions.push_back(session_.equal(x, joined(b)));
    return bits_[{x, first, n}] = b;
  }

  // By the bits of the narrower operand: below them it is 0, and beyond them it has its sign alone,
  // so that the other operand counts as a whole there.
  Expr bitwise(Term t, const std::vector<Expr>& x) {
    const unsigned widths[] = {width_of(t->args[0]->facts), width_of(t->args[1]->facts)};
    const int narrow = widths[0] <= widths[1] ? 0 : 1;
    const unsigned n = widths[narrow];
    if (n > most_bits) {
      abstract = true;
      const char* name = t->op == Op::bit_xor ? "^" : t->op == Op::bit_and ? "&" : "|";
      return session_.applied(name, x, sort_);
    }
    const Facts& facts = t->args[narrow]->facts;
    const unsigned first = zeros_of(facts, n);
    Expr none = constant(0), all = constant(-1);
    Expr negative = facts.at_least(0) ? session_.truth(false) : less(x[narrow], none);
    const Bits a = bits(x[narrow], first, n, none, session_.choice(negative, all, none));
    const Bits b = bits(x[1 - narrow], first, n, nullptr, nullptr);
    Bits out{first, t->op == Op::bit_and ? none : b.low, {}, nullptr};
    for (unsigned i = 0; i < n - first; ++i) {
      out.bits.push_back(t->op == Op::bit_xor   ? session_.call<&F::mk_xor>(a.bits[i], b.bits[i])
                         : t->op == Op::bit_and ? session_.all({a.bits[i], b.bits[i]})
                                                : session_.any({a.bits[i], b.bits[i]}));
    }
    out.high = t->op == Op::bit_xor
                   ? session_.choice(negative, sum(product(all, b.high), -1), b.high)
               : t->op == Op::bit_and ? session_.choice(negative, b.high, none)
                                      : session_.choice(negative, all, b.high);
    return joined(out);
  }

  Sort sort_;
  bool products_ = false;
  std::map<std::pair<Expr, Expr>, std::pair<Expr, Expr>> divided_;
  std::map<std::tuple<Expr, unsigned, unsigned>, Bits> bits_;  // by number, first and n
};

}  // namespace

std::unique_ptr<Numbers> integers(Session& session) {
  return std::make_unique<Integers>(session);
}

}  // namespace tessera::smt
