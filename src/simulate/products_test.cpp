// Products of every kind of operands against sums of whole numbers: types, operands contiguous in m
// and n, A in registers, mma.sync.
#include <gtest/gtest.h>

#include "arch/wgmma.h"

#include "simulate/testing/kit.h"

namespace tessera::simulate {
namespace {

using arch::Element;
using arch::Feed;
using core::Builder;
using core::GlobalAt;
using core::SharedAt;
using core::Term;
using testing::findings;
using testing::finished;
using testing::first;
using testing::integer;
using testing::run;

constexpr int64_t n_columns = 64;

/// Small whole numbers that every type has.
Term a_value(Term m, Term k) {
  return floor_mod(m * 3 + k * 5, 4);
}
Term b_value(Term n, Term k) {
  return floor_mod(n + k * 7, 5) - 1;
}
double expected(int64_t m, int64_t n, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i)
    sum += static_cast<double>((m * 3 + i * 5) % 4) * static_cast<double>((n + i * 7) % 5 - 1);
  return sum;
}

struct Kind {
  Element a, c;
  Feed from = Feed::shared;
  bool a_by_m = false, b_by_n = false;
};

class Product {
 public:
  explicit Product(const Kind& kind)
      : kind_(kind),
        w_(*arch::wgmma(kind.a, kind.a, kind.c, kind.from, n_columns)),
        b_("product", 128) {}

  core::Kernel write() {
    const DType sums = arch::storage_of(kind_.c);
    const core::TensorId c = b_.tensor({"C",
                                        sums,
                                        {b_.number(64), b_.number(n_columns)},
                                        {b_.number(n_columns), b_.number(1)},
                                        core::Access::output});
    const SharedAt a = operand("a", 64, kind_.a_by_m, a_value);
    const SharedAt bb = operand("b", n_columns, kind_.b_by_n, b_value);
    const int64_t slots = n_columns / 2;
    const auto acc = b_.registers("acc", sums, {64, n_columns}, w_.c_layout());
    core::Argument from = a;
    if (kind_.from == Feed::registers) from = fragment();
    b_.issue("fence.async.shared::cta");
    b_.issue("barrier.sync", {integer(b_, 0), integer(b_, 128)});
    b_.issue("wgmma.fence");
    std::vector<core::Argument> arguments = {first(b_, acc), from, bb, integer(b_, 0)};
    const auto flag = [&](bool on) { arguments.emplace_back(integer(b_, on ? 1 : 0)); };
    if (kind_.a != Element::s8) flag(true), flag(true);
    if (w_.may_transpose() && kind_.from == Feed::shared) flag(kind_.a_by_m);
    if (w_.may_transpose()) flag(kind_.b_by_n);
    b_.issue(w_.form().name, arguments, w_.choices());
    b_.issue("wgmma.commit");
    b_.issue("wgmma.wait", {integer(b_, 0)});
    const Term m = b_.at().warp * 16 + floor_div(b_.at().lane, 4);
    const Term n = floor_mod(b_.at().lane, 4) * 2;
    for (int64_t e = 0; e < slots; ++e)
      b_.issue(fmt::format("store.global.{}", size_of(sums)),
               {GlobalAt{c, {m + e / 2 % 2 * 8, n + (e % 2 + e / 4 * 8)}},
                core::Slice{acc, b_.number(e)}});
    return finished(b_);
  }

 private:
  /// A matrix of `rows` by k in shared memory, filled by a row a thread.
  SharedAt operand(const std::string& name, int64_t rows, bool by_rows, Term (*value)(Term, Term)) {
    const DType type = arch::storage_of(kind_.a);
    const int64_t k = w_.k();
    const Layout layout(IntTuple::flat({rows, k}),
                        by_rows ? IntTuple::flat({1, rows}) : IntTuple::flat({k, 1}));
    const auto s = b_.shared(name, type, layout,
                             by_rows ? arch::SwizzleMode::bytes_128 : arch::SwizzleMode::bytes_32);
    const auto v = b_.registers(name + "_row", type, {128 * k},
                                Layout(IntTuple::flat({128, k}), IntTuple::flat({1, 128})));
    const Term row = b_.at().warp * 32 + b_.at().lane;
    const Term e = b_.take(b_.kernel().pool->coordinate("e", k));
    testing::set(b_, v, value(row, e), k, e);
    b_.when(less(row, b_.number(rows)), [&] {
      for (int64_t i = 0; i < k; ++i)
        b_.issue(fmt::format("store.shared.{}", size_of(type)),
                 {SharedAt{s, {row, b_.number(i)}}, core::Slice{v, b_.number(i)}});
    });
    return {s, {b_.number(0), b_.number(0)}};
  }

  /// A as its registers hold it (PTX ISA, "Register Fragments for wgmma").
  core::Slice fragment() {
    const int64_t e = w_.a_per_register();
    const auto v = b_.registers("a_part", arch::storage_of(kind_.a), {64, w_.k()}, w_.a_layout());
    const Term i = b_.take(b_.kernel().pool->coordinate("i", 4 * e));
    const Term m =
        b_.at().warp * 16 + floor_div(b_.at().lane, 4) + floor_mod(floor_div(i, e), 2) * 8;
    const Term k = floor_mod(b_.at().lane, 4) * e + floor_mod(i, e) + floor_div(i, 2 * e) * (4 * e);
    testing::set(b_, v, a_value(m, k), 4 * e, i);
    return first(b_, v);
  }

  Kind kind_;
  arch::Wgmma w_;
  Builder b_;
};

TEST(SimulateProducts, EveryKindOfOperands) {
  for (const Kind& kind :
       {Kind{Element::bf16, Element::f32}, Kind{Element::f16, Element::f32},
        Kind{Element::bf16, Element::f32, Feed::shared, true, true},
        Kind{Element::f16, Element::f16, Feed::shared, false, true},
        Kind{Element::bf16, Element::f32, Feed::registers, false, true},
        Kind{Element::tf32, Element::f32}, Kind{Element::tf32, Element::f32, Feed::registers},
        Kind{Element::e4m3, Element::f32}, Kind{Element::e5m2, Element::f16, Feed::registers},
        Kind{Element::s8, Element::s32}}) {
    const arch::Wgmma w = *arch::wgmma(kind.a, kind.a, kind.c, kind.from, n_columns);
    SCOPED_TRACE(w.form().name);
    const Outcome o = run(Product(kind).write());
    EXPECT_EQ(findings(o), "");
    for (int64_t m = 0; m < 64; ++m)
      for (int64_t n = 0; n < n_columns; ++n)
        ASSERT_EQ(o.outputs.at("C")[m * n_columns + n], expected(m, n, w.k())) << m << " " << n;
  }
}

TEST(SimulateProducts, OfAWarp) {
  Builder b("mma", 32);
  const core::TensorId c = b.tensor({"C",
                                     DType::float32,
                                     {b.number(16), b.number(8)},
                                     {b.number(8), b.number(1)},
                                     core::Access::output});
  const auto x = testing::registers(b, "x", 8, DType::bfloat16);
  const auto y = testing::registers(b, "y", 4, DType::bfloat16);
  const auto d = testing::registers(b, "d", 4);
  const Term e = b.take(b.kernel().pool->coordinate("e", 8));
  const Term f = b.take(b.kernel().pool->coordinate("f", 4));
  const Term group = floor_div(b.at().lane, 4);
  const Term pair = floor_mod(b.at().lane, 4) * 2;
  testing::set(b, x,
               a_value(group + floor_mod(floor_div(e, 2), 2) * 8,
                       pair + floor_mod(e, 2) + floor_div(e, 4) * 8),
               8, e);
  testing::set(b, y, b_value(group, pair + floor_mod(f, 2) + floor_div(f, 2) * 8), 4, f);
  testing::set(b, d, b.number(100), 4);
  b.issue("mma.m16n8k16.f32.bf16.bf16", {first(b, d), first(b, x), first(b, y), first(b, d)});
  for (int64_t i = 0; i < 4; ++i)
    b.issue("store.global.4",
            {GlobalAt{c, {group + i / 2 * 8, pair + i % 2}}, core::Slice{d, b.number(i)}});
  const Outcome o = run(finished(b));
  EXPECT_EQ(findings(o), "");
  for (int64_t m = 0; m < 16; ++m)
    for (int64_t n = 0; n < 8; ++n)
      EXPECT_EQ(o.outputs.at("C")[m * 8 + n], 100 + expected(m, n, 16)) << m << " " << n;
}

}  // namespace
}  // namespace tessera::simulate
