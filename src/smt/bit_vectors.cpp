#include <bit>
#include <set>
#include <stdexcept>

#include "smt/numbers.h"

namespace tessera::smt {
namespace {

using term::Facts;
using term::Op;
using term::Term;
using F = Functions;

// Bits of two's complement for every value from `low` to `high`.
unsigned signed_width(int64_t low, int64_t high) {
  const auto bits = [](int64_t v) {
    return 1U + static_cast<unsigned>(std::bit_width(static_cast<uint64_t>(v < 0 ? ~v : v)));
  };
  return std::max(bits(low), bits(high));
}

bool widen(Term t, std::set<const term::Node*>& seen, unsigned& width) {
  if (!t || !seen.insert(t.node()).second) return true;
  if (!t->predicate()) {
    if (!t->facts.lower || !t->facts.upper) return false;
    width = std::max(width, signed_width(*t->facts.lower, *t->facts.upper));
  }
  if (t->symbol != nullptr && (!widen(t->symbol->bounds.lower, seen, width) ||
                               !widen(t->symbol->bounds.upper, seen, width)))
    return false;
  for (Term a : t->args)
    if (!widen(a, seen, width)) return false;
  return true;
}

class BitVectors final : public Numbers {
 public:
  BitVectors(Session& session, unsigned width)
      : Numbers(session), width_(width), sort_(session.call<&F::mk_bv_sort>(width)) {}

  [[nodiscard]] const char* logic(bool reads) const override { return reads ? "QF_UFBV" : "QF_BV"; }
  [[nodiscard]] Sort sort() const override { return sort_; }
  Expr constant(int64_t value) override { return session_.call<&F::mk_int64>(value, sort_); }

  // modulus * q + residue, where q has as few bits as its range needs.
  Expr unknown(const std::string& name, const Facts& facts) override {
    if (const auto known = facts.constant()) return constant(*known);
    const int64_t first = *facts.lower;
    const uint64_t most = (static_cast<uint64_t>(*facts.upper) - static_cast<uint64_t>(first)) /
                          static_cast<uint64_t>(facts.modulus);
    if (most == 0) return constant(first);
    const auto bits = static_cast<unsigned>(std::bit_width(most));
    Expr q = session_.named(name, session_.call<&F::mk_bv_sort>(bits));
    if (bits < width_) q = session_.call<&F::mk_zero_ext>(width_ - bits, q);
    if (!std::has_single_bit(most + 1))
      conditions.push_back(less_equal(q, constant(static_cast<int64_t>(most))));
    Expr scaled = facts.modulus == 1 ? q : session_.call<&F::mk_bvmul>(q, constant(facts.modulus));
    return first == 0 ? scaled : session_.call<&F::mk_bvadd>(scaled, constant(first));
  }

  Expr agrees(Expr value, const Facts& facts) override {
    if (const auto known = facts.constant()) return session_.equal(value, constant(*known));
    std::vector<Expr> all{less_equal(constant(*facts.lower), value),
                          less_equal(value, constant(*facts.upper))};
    if (facts.modulus > 1) {
      Expr above = session_.call<&F::mk_bvsub>(value, constant(*facts.lower));
      Expr rest = session_.call<&F::mk_bvurem>(above, constant(facts.modulus));
      all.push_back(session_.equal(rest, constant(0)));
    }
    return session_.all(all);
  }

  Expr arithmetic(Term t, const std::vector<Expr>& x, const Encode&) override {
    switch (t->op) {
      case Op::add:
        return session_.call<&F::mk_bvadd>(x[0], x[1]);
      case Op::subtract:
        return session_.call<&F::mk_bvsub>(x[0], x[1]);
      case Op::multiply:
        return session_.call<&F::mk_bvmul>(x[0], x[1]);
      case Op::divide:
        return quotient(t, x[0], x[1]);
      case Op::remainder:
        return rest(t, x[0], x[1]);
      case Op::bit_xor:
        return session_.call<&F::mk_bvxor>(x[0], x[1]);
      case Op::bit_and:
        return session_.call<&F::mk_bvand>(x[0], x[1]);
      case Op::bit_or:
        return session_.call<&F::mk_bvor>(x[0], x[1]);
      case Op::shift_left:
        return session_.call<&F::mk_bvshl>(x[0], x[1]);
      case Op::shift_right:
        return session_.call<&F::mk_bvashr>(x[0], x[1]);
      default:
        throw std::logic_error("smt: no arithmetic operator");
    }
  }

  Expr less(Expr a, Expr b) override { return session_.call<&F::mk_bvslt>(a, b); }
  Expr less_equal(Expr a, Expr b) override { return session_.call<&F::mk_bvsle>(a, b); }

  std::optional<int64_t> value(Expr e) override {
    uint64_t bits = 0;
    if (!session_.call<&F::get_numeral_uint64>(session_.value(e), &bits)) return std::nullopt;
    const unsigned unused = 64 - width_;
    return static_cast<int64_t>(bits << unused) >> unused;
  }

 private:
  static std::optional<int> power_of_two(Term divisor) {
    const auto d = divisor->facts.constant();
    if (!d || !std::has_single_bit(static_cast<uint64_t>(*d))) return std::nullopt;
    return std::countr_zero(static_cast<uint64_t>(*d));
  }

  // Rounded down: shifts of two's complement are; else x // d = ~(~x // d) for x < 0.
  Expr quotient(Term t, Expr x, Expr d) {
    if (const auto s = power_of_two(t->args[1]))
      return session_.call<&F::mk_bvashr>(x, constant(*s));
    Expr whole = session_.call<&F::mk_bvudiv>(x, d);
    if (t->args[0]->facts.at_least(0)) return whole;
    Expr turned = session_.call<&F::mk_bvudiv>(session_.call<&F::mk_bvnot>(x), d);
    Expr negative = less(x, constant(0)), back = session_.call<&F::mk_bvnot>(turned);
    return session_.choice(negative, back, whole);
  }

  Expr rest(Term t, Expr x, Expr d) {
    if (const auto s = power_of_two(t->args[1]))
      return session_.call<&F::mk_bvand>(x, constant((int64_t{1} << *s) - 1));
    if (t->args[0]->facts.at_least(0)) return session_.call<&F::mk_bvurem>(x, d);
    return session_.call<&F::mk_bvsub>(x, session_.call<&F::mk_bvmul>(quotient(t, x, d), d));
  }

  unsigned width_;
  Sort sort_;
};

}  // namespace

std::optional<unsigned> common_width(const std::vector<Term>& terms) {
  std::set<const term::Node*> seen;
  unsigned width = 1;
  for (Term t : terms)
    if (!widen(t, seen, width)) return std::nullopt;
  return width;
}

std::unique_ptr<Numbers> bit_vectors(Session& session, unsigned width) {
  return std::make_unique<BitVectors>(session, width);
}

}  // namespace tessera::smt
