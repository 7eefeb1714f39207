#include "core/testing/gemm.h"

#include "arch/wgmma.h"
#include "base/text.h"

#include "core/builder.h"

namespace tessera::core::testing {
namespace {

using term::Op;

class Gemm {
 public:
  explicit Gemm(const GemmShape& s) : s_(s), b_("gemm", 128 * (s.consumers() + 1)) {}

  Result<Kernel> write() {
    storages();
    raster();
    setup();
    const int registers = s_.consumers() == 1 ? 240 : 232;
    b_.role("producer", 0, 4, [&](Term warp) {
      b_.issue("setmaxnreg.dec", {number(40)});
      b_.when(equals(warp, b_.number(0)), [&] { b_.elected([&] { produce(); }); });
    });
    b_.role("consumer", 4, 4 * s_.consumers(), [&](Term warp) {
      b_.issue("setmaxnreg.inc", {number(registers)});
      warp_ = warp;
      group_ = floor_div(warp, 4);
      consume();
    });
    return b_.finish();
  }

 private:
  static Integers integers(std::vector<Term> v) { return {std::move(v)}; }
  Integers number(int64_t n) { return {{b_.number(n)}}; }

  void storages() {
    m_ = b_.parameter("M", 8, 1 << 20, 8);
    n_ = b_.parameter("N", 8, 1 << 20, 8);
    k_ = b_.parameter("K", 8, 1 << 20, 8);
    const Term one = b_.number(1);
    a_ = b_.tensor({"A", s_.element, {m_, k_}, {k_, one}});
    const TensorId tb = b_.tensor({"B", s_.element, {n_, k_}, {k_, one}});
    const TensorId tc = b_.tensor({"C", s_.element, {m_, n_}, {n_, one}, Access::output});
    const auto swizzle = arch::SwizzleMode::bytes_128;
    a_map_ = b_.map({"A_map", a_, {1, 0}, {s_.bk, s_.bm}, swizzle});
    b_map_ = b_.map({"B_map", tb, {1, 0}, {s_.bk, s_.bn}, swizzle});
    c_map_ = b_.map({"C_map", tc, {1, 0}, {64, 64}, swizzle});
    const auto ring = [&](int64_t rows) {
      return Layout(IntTuple::flat({s_.stages, rows, s_.bk}),
                    IntTuple::flat({rows * s_.bk, s_.bk, 1}));
    };
    a_shared_ = b_.shared("a", s_.element, ring(s_.bm), swizzle);
    b_shared_ = b_.shared("b", s_.element, ring(s_.bn), swizzle);
    c_shared_ = b_.shared(
        "c", s_.element,
        Layout(IntTuple::flat({s_.consumers(), 2, 64, 64}), IntTuple::flat({8192, 4096, 64, 1})),
        swizzle);
    full_ = b_.barriers("full", s_.stages);
    empty_ = b_.barriers("empty", s_.stages);
  }

  /// The tile of a turn: `band` tiles of rows side by side, then the next column of tiles.
  void raster() {
    row_tiles_ = b_.divide_up(m_, s_.bm);
    column_tiles_ = b_.divide_up(n_, s_.bn);
    k_tiles_ = b_.divide_up(k_, s_.bk);
    tiles_ = row_tiles_ * column_tiles_;
    b_.kernel().grid = b_.make(Op::min, {b_.at().multiprocessors, tiles_});
    turns_ = b_.make(Op::divide, {tiles_ - b_.at().block + b_.at().blocks - 1, b_.at().blocks});
  }
  void place(Term turn) {
    const Term t = b_.at().block + turn * b_.at().blocks;
    const Term in_band = column_tiles_ * s_.band;
    const Term first = b_.make(Op::divide, {t, in_band}) * s_.band;
    const Term rest = b_.make(Op::remainder, {t, in_band});
    const Term rows = b_.make(
        Op::max, {b_.number(1), b_.make(Op::min, {row_tiles_ - first, b_.number(s_.band)})});
    row_ = (first + b_.make(Op::remainder, {rest, rows})) * s_.bm;
    column_ = b_.make(Op::divide, {rest, rows}) * s_.bn;
  }

  void setup() {
    b_.when(equals(b_.at().warp, b_.number(0)), [&] {
      b_.elected([&] {
        b_.unrolled("s", s_.stages, [&](Term s) {
          b_.issue("mbarrier.init", {BarrierAt{full_, s}, number(1)});
          b_.issue("mbarrier.init", {BarrierAt{empty_, s}, number(int64_t{4} * s_.consumers())});
        });
        b_.issue("fence.mbarrier_init");
      });
    });
    b_.issue("barrier.sync", {number(0), number(b_.kernel().threads)});
  }

  Term slot(Term count) { return floor_mod(count, s_.stages); }
  Integers parity(Term count) { return {{floor_mod(floor_div(count, s_.stages), 2)}}; }
  /// The parity before that of `parity`: true of a fresh barrier.
  Integers parity_before(Term count) { return {{floor_mod(floor_div(count, s_.stages) + 1, 2)}}; }

  void produce() {
    b_.loop("turn", b_.number(0), turns_, b_.number(1), [&](Term turn) {
      place(turn);
      b_.loop("k", b_.number(0), k_tiles_, b_.number(1), [&](Term k) {
        const Term count = turn * k_tiles_ + k;
        const Term at = slot(count);
        const Term zero = b_.number(0);
        b_.issue("mbarrier.wait", {BarrierAt{empty_, at}, parity_before(count)});
        b_.issue("mbarrier.arrive_expect_tx",
                 {BarrierAt{full_, at}, number((s_.bm + s_.bn) * s_.bk * size_of(s_.element))});
        b_.issue("tma.load",
                 {SharedAt{a_shared_, {at, zero, zero}}, MapRef{a_map_},
                  integers({k * s_.bk, row_}), BarrierAt{full_, at}},
                 {{"rank", "2"}});
        b_.issue("tma.load",
                 {SharedAt{b_shared_, {at, zero, zero}}, MapRef{b_map_},
                  integers({k * s_.bk, column_}), BarrierAt{full_, at}},
                 {{"rank", "2"}});
      });
    });
  }

  void multiply(Term k, Term at) {
    const arch::Element e =
        s_.element == DType::bfloat16 ? arch::Element::bf16 : arch::Element::f16;
    const auto w = arch::wgmma(e, e, arch::Element::f32, arch::Feed::shared, s_.bn);
    if (!w) return b_.fail_with(w.error());
    b_.issue("wgmma.fence");
    for (int64_t step = 0; step < s_.bk; step += w->k()) {
      const Term from = b_.number(step);
      const Term keeps =
          step > 0 ? b_.number(1) : b_.select(equals(k, b_.number(0)), b_.number(0), b_.number(1));
      b_.issue(w->form().name,
               {Slice{acc_, b_.number(0)}, SharedAt{a_shared_, {at, group_ * 64, from}},
                SharedAt{b_shared_, {at, b_.number(0), from}}, integers({keeps}), number(1),
                number(1), number(0), number(0)},
               w->choices());
    }
    b_.issue("wgmma.commit");
  }

  void release(Term count) {
    b_.elected([&] { b_.issue("mbarrier.arrive", {BarrierAt{empty_, slot(count)}}); });
  }

  void consume() {
    const int64_t w = s_.consumers();
    acc_ = b_.registers(
        "acc", DType::float32, {s_.bm, s_.bn},
        Layout(IntTuple::tuple({IntTuple::flat({4, 8, 4, w}), IntTuple::flat({2, 2, s_.bn / 8})}),
               IntTuple::tuple({IntTuple::flat({2 * s_.bm, 1, 16, 64}),
                                IntTuple::flat({s_.bm, 8, 8 * s_.bm})})));
    out_ = b_.registers(
        "out", s_.element, {s_.bm, 64},
        Layout(IntTuple::tuple({IntTuple::flat({4, 8, 4, w}), IntTuple::flat({2, 2, 8})}),
               IntTuple::tuple({IntTuple::flat({2 * s_.bm, 1, 16, 64}),
                                IntTuple::flat({s_.bm, 8, 8 * s_.bm})})));
    b_.loop("turn", b_.number(0), turns_, b_.number(1), [&](Term turn) {
      place(turn);
      b_.loop("k", b_.number(0), k_tiles_, b_.number(1), [&](Term k) {
        const Term count = turn * k_tiles_ + k;
        const Term at = slot(count);
        b_.issue("mbarrier.wait", {BarrierAt{full_, at}, parity(count)});
        multiply(k, at);
        b_.issue("wgmma.wait", {number(1)});
        b_.when(less(b_.number(0), k), [&] { release(count - 1); });
      });
      b_.issue("wgmma.wait", {number(0)});
      release(turn * k_tiles_ + k_tiles_ - 1);
      store(turn);
    });
    // Shared memory must stay until the last stores have read it.
    b_.when(equals(floor_mod(warp_, 4), b_.number(0)),
            [&] { b_.elected([&] { b_.issue("bulk.wait_read", {number(0)}); }); });
  }

  /// 64 columns at a time, through the two buffers of the warpgroup by turns, also from one tile to
  /// the next: the latest store may still read the other one.
  void store(Term turn) {
    const int64_t parts = s_.bn / 64;
    const auto one_of_group = [&](const std::function<void()>& body) {
      b_.when(equals(floor_mod(warp_, 4), b_.number(0)), [&] { b_.elected(body); });
    };
    const auto meet = [&] { b_.issue("barrier.sync", {integers({group_ + 1}), number(128)}); };
    b_.unrolled("c", parts, [&](Term c) {
      const Term buffer = floor_mod(parts % 2 == 0 ? c : turn * parts + c, 2);
      one_of_group([&] { b_.issue("bulk.wait_read", {number(1)}); });
      meet();
      auto dag = std::make_shared<pointwise::Dag>();
      dag->results = {dag->add_operand(0)};
      b_.compute({dag,
                  {Run{acc_, c * 32, Layout(32, 1)}},
                  {Run{out_, b_.number(0), Layout(32, 1)}},
                  32,
                  {}});
      b_.unrolled("j", 4, [&](Term j) {
        const Term row = floor_mod(warp_, 4) * 16 + floor_mod(b_.at().lane, 16);
        const Term column = j * 16 + floor_div(b_.at().lane, 16) * 8;
        b_.issue("stmatrix",
                 {SharedAt{c_shared_, {group_, buffer, row, column}}, Slice{out_, j * 8}},
                 {{"matrices", "4"}});
      });
      b_.issue("fence.async.shared::cta");
      meet();
      one_of_group([&] {
        b_.issue("tma.store",
                 {MapRef{c_map_}, integers({column_ + c * 64, row_ + group_ * 64}),
                  SharedAt{c_shared_, {group_, buffer, b_.number(0), b_.number(0)}}},
                 {{"rank", "2"}});
        b_.issue("bulk.commit");
      });
    });
  }

  GemmShape s_;
  Builder b_;
  Term m_, n_, k_;
  Term row_tiles_, column_tiles_, k_tiles_, tiles_, turns_;
  Term row_, column_, warp_, group_;
  TensorId a_;
  MapId a_map_, b_map_, c_map_;
  SharedId a_shared_, b_shared_, c_shared_;
  BarriersId full_, empty_;
  RegistersId acc_, out_;
};

}  // namespace

Result<Kernel> gemm(const GemmShape& s) {
  return Gemm(s).write();
}

}  // namespace tessera::core::testing
