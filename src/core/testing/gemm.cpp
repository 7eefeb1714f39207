#include "core/testing/gemm.h"

#include <algorithm>

#include "arch/wgmma.h"
#include "base/text.h"

#include "core/builder.h"
#include "core/testing/fragments.h"

namespace tessera::core::testing {
namespace {

using term::Op;

class Gemm {
 public:
  explicit Gemm(const GemmShape& s) : s_(s), b_("gemm", 128 * (s.consumers() + 1), s.cluster) {}

  Result<Kernel> write() {
    storages();
    raster();
    setup();
    // What the producers give back, on top of what launch bounds leave to a thread.
    const int64_t threads = b_.kernel().threads, loading = 40;
    const int64_t launch = std::min<int64_t>(65536 / threads / 8 * 8, 256);
    const int64_t registers =
        std::min<int64_t>((launch * threads - 128 * loading) / (threads - 128) / 8 * 8, 256);
    b_.role("producer", 0, 4, [&](Term warp) {
      b_.issue("setmaxnreg.dec", {number(loading)});
      b_.when(equals(warp, b_.number(0)), [&] { b_.elected([&] { produce(); }); });
      leave();
    });
    b_.role("consumer", 4, 4 * s_.consumers(), [&](Term warp) {
      b_.issue("setmaxnreg.inc", {number(registers)});
      warp_ = warp;
      group_ = floor_div(warp, 4);
      consume();
      leave();
    });
    return b_.finish();
  }

 private:
  static Integers integers(std::vector<Term> v) { return {std::move(v)}; }
  Integers number(int64_t n) { return {{b_.number(n)}}; }

  /// The one whose rows a k slice of the operands fills, as wgmma reads them.
  [[nodiscard]] arch::SwizzleMode swizzle_of_rows() const {
    const int64_t row = s_.bk * size_of(s_.element);
    return row == 32   ? arch::SwizzleMode::bytes_32
           : row == 64 ? arch::SwizzleMode::bytes_64
                       : arch::SwizzleMode::bytes_128;
  }

  [[nodiscard]] DType result() const { return size_of(s_.element) == 1 ? s_.result : s_.element; }
  /// Blocks of a cluster that share A's tile, or B's.
  [[nodiscard]] int sharers(bool of_a) const { return of_a == s_.beside ? s_.cluster : 1; }

  void storages() {
    m_ = b_.parameter("M", 8, 1 << 20, 8);
    n_ = b_.parameter("N", 8, 1 << 20, 8);
    const int64_t whole_row = 16 / size_of(s_.element);
    k_ = b_.parameter("K", whole_row, 1 << 20, whole_row);
    const Term one = b_.number(1);
    a_ = b_.tensor({"A", s_.element, {m_, k_}, {k_, one}});
    const TensorId tb = b_.tensor({"B", s_.element, {n_, k_}, {k_, one}});
    const TensorId tc = b_.tensor({"C", result(), {m_, n_}, {n_, one}, Access::output});
    const auto whole = arch::SwizzleMode::bytes_128;
    const arch::SwizzleMode swizzle = swizzle_of_rows();
    a_map_ = b_.map({"A_map", a_, {1, 0}, {s_.bk, s_.bm / sharers(true)}, swizzle});
    b_map_ = b_.map({"B_map", tb, {1, 0}, {s_.bk, s_.bn / sharers(false)}, swizzle});
    c_map_ = b_.map({"C_map", tc, {1, 0}, {64, 64}, whole});
    const auto ring = [&](int64_t rows) {
      return Layout(IntTuple::flat({s_.stages, rows, s_.bk}),
                    IntTuple::flat({rows * s_.bk, s_.bk, 1}));
    };
    a_shared_ = b_.shared("a", s_.element, ring(s_.bm), swizzle);
    b_shared_ = b_.shared("b", s_.element, ring(s_.bn), swizzle);
    c_shared_ = b_.shared("c", result(),
                          Layout(IntTuple::flat({s_.consumers(), s_.buffers, 64, 64}),
                                 IntTuple::flat({int64_t{4096} * s_.buffers, 4096, 64, 1})),
                          whole);
    full_ = b_.barriers("full", s_.stages);
    empty_ = b_.barriers("empty", s_.stages);
  }

  /// The tile of a turn: `band` rows of clusters' tiles side by side, then the next column.
  void raster() {
    row_tiles_ = b_.divide_up(m_, s_.bm * sharers(false));
    column_tiles_ = b_.divide_up(n_, s_.bn * sharers(true));
    k_tiles_ = b_.divide_up(k_, s_.bk);
    tiles_ = row_tiles_ * column_tiles_;
    const auto clusters = [&](Term blocks) {
      return s_.cluster == 1 ? blocks : floor_div(blocks, s_.cluster);
    };
    const Term most = b_.make(Op::min, {clusters(b_.at().multiprocessors), tiles_});
    b_.kernel().grid = s_.cluster == 1 ? most : b_.make(Op::max, {most, b_.number(1)}) * s_.cluster;
    first_ = clusters(b_.at().block);
    step_ = s_.cluster == 1 ? b_.at().blocks
                            : b_.make(Op::max, {clusters(b_.at().blocks), b_.number(1)});
    turns_ = b_.make(Op::divide, {tiles_ - first_ + step_ - 1, step_});
  }
  void place(Term turn) {
    const Term t = first_ + turn * step_;
    const Term in_band = column_tiles_ * s_.band;
    const Term first = b_.make(Op::divide, {t, in_band}) * s_.band;
    const Term rest = b_.make(Op::remainder, {t, in_band});
    const Term rows = b_.make(
        Op::max, {b_.number(1), b_.make(Op::min, {row_tiles_ - first, b_.number(s_.band)})});
    const Term row = first + b_.make(Op::remainder, {rest, rows});
    const Term column = b_.make(Op::divide, {rest, rows});
    const auto own = [&](Term of_cluster, bool of_a) {
      const int n = sharers(of_a);
      return n == 1 ? of_cluster : of_cluster * n + b_.at().rank;
    };
    row_ = own(row, false) * s_.bm;
    column_ = own(column, true) * s_.bn;
  }

  void setup() {
    b_.when(equals(b_.at().warp, b_.number(0)), [&] {
      b_.elected([&] {
        for (const MapId map : {a_map_, b_map_, c_map_})
          b_.issue("tma.prefetch_map", {MapRef{map}});
        b_.unrolled("s", s_.stages, [&](Term s) {
          b_.issue("mbarrier.init", {BarrierAt{full_, s}, number(1)});
          b_.issue("mbarrier.init",
                   {BarrierAt{empty_, s}, number(int64_t{4} * s_.consumers() * s_.cluster)});
        });
        b_.issue("fence.mbarrier_init");
      });
    });
    if (s_.cluster == 1)
      b_.issue("barrier.sync", {number(0), number(b_.kernel().threads)});
    else
      meet_cluster("cluster.arrive_relaxed");
  }
  void meet_cluster(std::string_view arrive) {
    b_.issue(arrive);
    b_.issue("cluster.wait");
  }
  /// A block stays while others of the cluster may write to its shared memory or its barriers. What
  /// a thread did to others' barriers is over for who meets it here, so its arrival is no relaxed
  /// one.
  void leave() {
    if (s_.cluster > 1) meet_cluster("cluster.arrive");
  }

  void produce() {
    b_.loop("turn", b_.number(0), turns_, b_.number(1), [&](Term turn) {
      place(turn);
      b_.loop("k", b_.number(0), k_tiles_, b_.number(1), [&](Term k) {
        const Term count = turn * k_tiles_ + k;
        const Term at = ring_.slot(count);
        b_.issue("mbarrier.wait", {BarrierAt{empty_, at}, ring_.parity_before(count)});
        b_.issue("mbarrier.arrive_expect_tx",
                 {BarrierAt{full_, at}, number((s_.bm + s_.bn) * s_.bk * size_of(s_.element))});
        load(a_shared_, a_map_, row_, s_.bm, sharers(true), k, at);
        load(b_shared_, b_map_, column_, s_.bn, sharers(false), k, at);
      });
    });
  }

  /// `rows` rows from `first`, or this block's share of them for the whole cluster.
  void load(SharedId to, MapId map, Term first, int64_t rows, int shared_by, Term k, Term at) {
    const Term zero = b_.number(0);
    if (shared_by == 1)
      return b_.issue("tma.load",
                      {SharedAt{to, {at, zero, zero}}, MapRef{map}, integers({k * s_.bk, first}),
                       BarrierAt{full_, at}},
                      {{"rank", "2"}});
    const Term share = b_.at().rank * (rows / shared_by);
    b_.issue("tma.load_multicast",
             {SharedAt{to, {at, share, zero}}, MapRef{map}, integers({k * s_.bk, first + share}),
              BarrierAt{full_, at}, number((1 << shared_by) - 1)},
             {{"rank", "2"}});
  }

  [[nodiscard]] arch::Element element() const {
    if (size_of(s_.element) == 1) return arch::Element::e4m3;
    return s_.element == DType::bfloat16 ? arch::Element::bf16 : arch::Element::f16;
  }
  void multiply(Term k, Term at) {
    const arch::Element e = element();
    const auto w = arch::wgmma(e, e, arch::Element::f32, arch::Feed::shared, s_.bn);
    if (!w) return b_.fail_with(w.error());
    b_.issue("wgmma.fence");
    for (int64_t step = 0; step < s_.bk; step += w->k()) {
      const Term from = b_.number(step);
      const Term keeps =
          step > 0 ? b_.number(1) : b_.select(equals(k, b_.number(0)), b_.number(0), b_.number(1));
      std::vector<Argument> arguments = {Slice{acc_, b_.number(0)},
                                         SharedAt{a_shared_, {at, group_ * 64, from}},
                                         SharedAt{b_shared_, {at, b_.number(0), from}},
                                         integers({keeps}),
                                         number(1),
                                         number(1)};
      if (w->may_transpose()) arguments.insert(arguments.end(), {number(0), number(0)});
      b_.issue(w->form().name, std::move(arguments), w->choices());
    }
    b_.issue("wgmma.commit");
  }

  void release(Term count) {
    b_.elected([&] {
      const BarrierAt barrier{empty_, ring_.slot(count)};
      if (s_.cluster == 1) return b_.issue("mbarrier.arrive", {barrier});
      for (int rank = 0; rank < s_.cluster; ++rank)
        b_.issue("mbarrier.arrive_at", {barrier, number(rank)});
    });
  }

  void consume() {
    const int64_t w = s_.consumers();
    acc_ = b_.registers("acc", DType::float32, {s_.bm, s_.bn}, fragment(s_.bm, s_.bn, w));
    out_ = b_.registers("out", result(), {s_.bm, 64}, fragment(s_.bm, 64, w));
    b_.loop("turn", b_.number(0), turns_, b_.number(1), [&](Term turn) {
      place(turn);
      b_.loop("k", b_.number(0), k_tiles_, b_.number(1), [&](Term k) {
        const Term count = turn * k_tiles_ + k;
        const Term at = ring_.slot(count);
        b_.issue("mbarrier.wait", {BarrierAt{full_, at}, ring_.parity(count)});
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

  /// 64 columns at a time, through the warpgroup's buffers by turns.
  void store(Term turn) {
    const auto one_of_group = [&](const std::function<void()>& body) {
      b_.when(equals(floor_mod(warp_, 4), b_.number(0)), [&] { b_.elected(body); });
    };
    const auto meet = [&] { b_.issue("barrier.sync", {integers({group_ + 1}), number(128)}); };
    b_.unrolled("part", s_.bn / 64, [&](Term c) {
      const Term buffer = floor_mod(turn * (s_.bn / 64) + c, s_.buffers);
      one_of_group([&] { b_.issue("bulk.wait_read", {number(s_.buffers - 1)}); });
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
  Ring ring_{s_.stages};
  Builder b_;
  Term m_, n_, k_;
  Term row_tiles_, column_tiles_, k_tiles_, tiles_, turns_, first_, step_;
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
