#include "lower/address.h"

#include "lower/codes.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::lower {
namespace {

using core::Kernel;

/// The offset of coordinate `at` in one mode of a layout, perhaps a nested one.
Term offset_in(term::Pool& pool, const Layout& mode, Term at) {
  const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
  Term sum = pool.constant(0);
  int64_t below = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    Term digit = below == 1 ? at : floor_div(at, below);
    if (i + 1 < extents.size()) digit = floor_mod(digit, extents[i]);
    sum = sum + digit * strides[i];
    below *= extents[i];
  }
  return sum;
}

Term unswizzled(const Kernel& k, const core::SharedAt& a) {
  const core::Shared& s = k[a.shared];
  Term sum = k.pool->constant(0);
  for (std::size_t i = 0; i < a.at.size(); ++i)
    sum = sum + offset_in(*k.pool, s.layout.mode(static_cast<int>(i)), a.at[i]);
  return term::simplify(sum * size_of(s.element));
}

}  // namespace

Term byte_of(const Kernel& k, const core::SharedAt& a) {
  const Term plain = unswizzled(k, a);
  const Swizzle s = arch::swizzle_of(k[a.shared].swizzle);
  if (s.bits == 0 || plain->facts.multiple_of(s.period())) return plain;
  const Term row = floor_mod(floor_div(plain, int64_t{1} << (s.base + s.shift)), 1 << s.bits);
  return term::simplify(bit_xor(plain, row * (int64_t{1} << s.base)));
}

Term chunk_of(const Kernel& k, const core::SharedAt& a) {
  return term::simplify(floor_div(unswizzled(k, a), 16));
}

Term byte_of(const Kernel& /*k*/, const core::BarrierAt& a) {
  return a.slot * 8;
}

Term element_of(const Kernel& k, const core::GlobalAt& a) {
  const core::Tensor& t = k[a.tensor];
  Term sum = k.pool->constant(0);
  for (std::size_t i = 0; i < a.at.size(); ++i) sum = sum + a.at[i] * t.strides[i];
  return sum;
}

Result<Term> register_of(const Kernel& k, const core::Slice& a) {
  const core::Registers& r = k[a.registers];
  const int64_t per = r.per_register();
  if (!a.first->facts.multiple_of(per))
    return error(fail(bad_slice, "a slice of `{}` begins in the middle of a register", r.name)
                     .expect("a first element that is a multiple of {}", per)
                     .but_found("{}", term::to_string(a.first)));
  return term::simplify(floor_div(a.first, per));
}

SplitSum split_sum(Term t) {
  term::Sum sum = term::sum_of(t);
  const int64_t constant = sum.constant;
  if (sum.is_constant()) return {{}, constant};
  if (constant == 0) return {t, 0};
  sum.constant = 0;
  return {term::term_of(t.pool(), sum), constant};
}

}  // namespace tessera::lower
