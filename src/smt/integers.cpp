#include <stdexcept>

#include "smt/numbers.h"
#include "term/rules.h"

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
    if (facts.modulus > 1) {
      Expr rest = session_.call<&F::mk_mod>(value, constant(facts.modulus));
      all.push_back(session_.equal(rest, constant(facts.residue)));
    }
    return session_.all(all);
  }

  Expr arithmetic(Term t, const std::vector<Expr>& x, const Encode& encode) override {
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
        return bitwise(t, x, encode);
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
    for (int64_t s = *by.upper - 1; s >= *by.lower; --s) {
      Expr here = session_.equal(amount, constant(s)), value = moved(s);
      out = session_.choice(here, value, out);
    }
    return out;
  }

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

  // The bits of x, which is in [0, 2^n), the least first, as truth values.
  const std::vector<Expr>& bits(Expr x, unsigned n) {
    const auto known = bits_.find({x, n});
    if (known != bits_.end()) return known->second;
    std::vector<Expr> b;
    for (unsigned i = 0; i < n; ++i)
      b.push_back(session_.call<&F::mk_fresh_const>("b", session_.call<&F::mk_bool_sort>()));
    conditions.push_back(session_.equal(x, number(b)));
    return bits_[{x, n}] = b;
  }
  Expr number(const std::vector<Expr>& bits) {
    Expr none = constant(0), out = none;
    for (std::size_t i = 0; i < bits.size(); ++i)
      out = sum(out, session_.choice(bits[i], constant(int64_t{1} << i), none));
    return out;
  }
  Expr joined(Op op, const std::vector<Expr>& a, const std::vector<Expr>& b) {
    std::vector<Expr> out;
    for (std::size_t i = 0; i < a.size(); ++i)
      out.push_back(op == Op::bit_xor   ? session_.call<&F::mk_xor>(a[i], b[i])
                    : op == Op::bit_and ? session_.all({a[i], b[i]})
                                        : session_.any({a[i], b[i]}));
    return number(out);
  }

  // By the bits of the narrower operand y, of n bits beside its sign, of which the first f are 0.
  // Of x only the bits from f to n - 1 are needed: they are (x // 2^f) % 2^(n-f), whose normal form
  // often is the same for several x. Beyond n, y has its sign alone.
  Expr bitwise(Term t, const std::vector<Expr>& operands, const Encode& encode) {
    const unsigned widths[] = {width_of(t->args[0]->facts), width_of(t->args[1]->facts)};
    const int narrow = widths[0] <= widths[1] ? 0 : 1;
    const unsigned n = widths[narrow];
    if (n > most_bits) {
      abstract = true;
      const char* name = t->op == Op::bit_xor ? "^" : t->op == Op::bit_and ? "&" : "|";
      return session_.applied(name, operands, sort_);
    }
    const Term x = t->args[1 - narrow], y = t->args[narrow];
    const unsigned f = zeros_of(y->facts, n);
    const int64_t unit = int64_t{1} << f, whole = int64_t{1} << n;
    const auto middle = [&](Term of) {
      return bits(encode(simplify(floor_mod(floor_div(of, unit), whole / unit))), n - f);
    };
    const std::vector<Expr> of_x = middle(x), of_y = middle(y);
    Expr step = constant(unit), minus = constant(-1);
    Expr both = product(step, joined(t->op, of_x, of_y));
    Expr alone = product(step, number(of_x));
    Expr change = sum(both, product(minus, alone));
    Expr all_x = operands[1 - narrow];
    Expr positive = t->op == Op::bit_and ? both : sum(all_x, change);
    if (y->facts.at_least(0)) return positive;
    // 2^n * h + low: a negative y turns, keeps or sets h.
    Expr low = encode(simplify(floor_mod(x, whole)));
    Expr minus_high = sum(low, product(minus, all_x)), changed = sum(low, change);
    Expr negative = t->op == Op::bit_xor   ? sum(sum(minus_high, changed), -whole)
                    : t->op == Op::bit_and ? sum(product(minus, minus_high), both)
                                           : sum(changed, -whole);
    return session_.choice(less(operands[narrow], constant(0)), negative, positive);
  }

  Sort sort_;
  bool products_ = false;
  std::map<std::pair<Expr, Expr>, std::pair<Expr, Expr>> divided_;
  std::map<std::pair<Expr, unsigned>, std::vector<Expr>> bits_;
};

}  // namespace

std::unique_ptr<Numbers> integers(Session& session) {
  return std::make_unique<Integers>(session);
}

}  // namespace tessera::smt
