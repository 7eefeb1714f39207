#include "core/testing/gemm.h"

#include <algorithm>

#include "arch/wgmma.h"
#include "base/text.h"

#include "core/builder.h"
#include "core/testing/fragments.h"
#include "core/testing/gemm_results.h"

namespace tessera::core::testing {
namespace {

using term::Op;

constexpr int64_t panel = 64;  // rows that lie side by side where they are contiguous

class Gemm {
 public:
  explicit Gemm(const GemmShape& s) : s_(s), b_("gemm", 128 * (s.consumers() + 1), s.cluster) {}

  Result<Kernel> write() {
    storages();
    if (s_.tagged) tag();
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
    b_.kernel().means = store_.means();
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

  /// Blocks of a cluster that share A's tile, or B's.
  [[nodiscard]] int sharers(bool of_a) const { return of_a == s_.beside ? s_.cluster : 1; }

  void storages() {
    const int64_t below = s_.batched ? 1 << 19 : 1 << 20;  // for strides of batches that TMA takes
    m_ = b_.parameter("M", 8, below, 8);
    n_ = b_.parameter("N", 8, below, 8);
    const int64_t whole_row = 16 / size_of(s_.element);
    k_ = b_.parameter("K", whole_row, below, whole_row);
    if (s_.batched) l_ = b_.parameter("L", 1, 1 << 16);
    const TensorId a = operand("A", m_, s_.a_rows, s_.batched && !s_.one_a ? l_ : Term());
    const TensorId b = operand("B", n_, s_.b_rows,
                               !s_.batched ? Term()
                               : s_.one_b  ? b_.number(1)
                                           : l_);
    store_.tensors(m_, n_, l_);
    a_map_ = map("A_map", a, s_.a_rows, s_.bm / sharers(true));
    b_map_ = map("B_map", b, s_.b_rows, s_.bn / sharers(false));
    store_.map();
    a_shared_ = ring("a", s_.bm, s_.a_rows);
    b_shared_ = ring("b", s_.bn, s_.b_rows);
    store_.shared();
    full_ = b_.barriers("full", s_.stages);
    empty_ = b_.barriers("empty", s_.stages);
  }

  /// [rows, k], with k or the rows contiguous, and the batch in front.
  TensorId operand(const std::string& name, Term rows, bool rows_first, Term batch) {
    const Term one = b_.number(1);
    Tensor t{name, s_.element, {rows, k_}, {k_, one}};
    if (rows_first) t.strides = {one, rows};
    if (batch) {
      t.extents.insert(t.extents.begin(), batch);
      t.strides.insert(t.strides.begin(), rows * k_);
    }
    return b_.tensor(std::move(t));
  }
  /// Boxes of `rows` rows, or of a panel where these are contiguous.
  MapId map(const std::string& name, TensorId of, bool rows_first, int64_t rows) {
    const int rank = static_cast<int>(b_.kernel()[of].extents.size());
    TensorMap m{name, of, {rank - 1, rank - 2}, {s_.bk, rows}, swizzle_of_rows()};
    if (rows_first) {
      m.dims = {rank - 2, rank - 1};
      m.box = {panel, s_.bk};
      m.swizzle = arch::SwizzleMode::bytes_128;
    }
    if (rank == 3) m.dims.push_back(0), m.box.push_back(1);
    return b_.map(std::move(m));
  }
  SharedId ring(const std::string& name, int64_t rows, bool rows_first) {
    if (!rows_first)
      return b_.shared(name, s_.element,
                       Layout(IntTuple::flat({s_.stages, rows, s_.bk}),
                              IntTuple::flat({rows * s_.bk, s_.bk, 1})),
                       swizzle_of_rows());
    const bool one = rows == panel;
    const IntTuple shape = one ? IntTuple(rows) : IntTuple::flat({panel, rows / panel}),
                   stride = one ? IntTuple(1) : IntTuple::flat({1, panel * s_.bk});
    return b_.shared(name, s_.element,
                     Layout(IntTuple::tuple({IntTuple(s_.stages), shape, IntTuple(s_.bk)}),
                            IntTuple::tuple({IntTuple(rows * s_.bk), stride, IntTuple(panel)})),
                     arch::SwizzleMode::bytes_128);
  }

  /// The tile of a turn: `band` rows of clusters' tiles side by side, then the next column.
  void raster() {
    row_tiles_ = b_.divide_up(m_, s_.bm * sharers(false));
    column_tiles_ = b_.divide_up(n_, s_.bn * sharers(true));
    k_tiles_ = b_.divide_up(k_, s_.bk);
    tiles_ = row_tiles_ * column_tiles_;
    if (s_.batched) tiles_ = l_ * tiles_;
    const auto clusters = [&](Term blocks) {
      return s_.cluster == 1 ? blocks : floor_div(blocks, s_.cluster);
    };
    const Term at_once = b_.make(Op::min, {clusters(b_.at().multiprocessors), tiles_});
    const Term most = s_.cluster == 1 ? at_once : b_.make(Op::max, {at_once, b_.number(1)});
    // As few as take no more turns.
    const Term turns = b_.make(Op::divide, {tiles_ - 1, most}) + 1;
    const Term even = b_.make(Op::divide, {tiles_ - 1, turns}) + 1;
    b_.kernel().grid = s_.cluster == 1 ? even : even * s_.cluster;
    first_ = clusters(b_.at().block);
    step_ = s_.cluster == 1 ? b_.at().blocks
                            : b_.make(Op::max, {clusters(b_.at().blocks), b_.number(1)});
    turns_ = b_.make(Op::divide, {tiles_ - first_ + step_ - 1, step_});
  }
  void place(Term turn) {
    Term t = first_ + turn * step_;
    if (s_.batched) {
      const Term of_batch = row_tiles_ * column_tiles_;
      batch_ = b_.make(Op::divide, {t, of_batch});
      t = b_.make(Op::remainder, {t, of_batch});
    }
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

  /// Of the elements of A and of B: row, column and k.
  void tag() {
    for (const TensorId id : {TensorId(0), TensorId(1)}) {
      const Tensor& t = b_.kernel()[id];
      std::vector<Term> at;
      for (std::size_t d = 0; d < t.extents.size(); ++d) {
        const std::string name = fmt::format("{}{}", t.name == "A" ? "i" : "j", d);
        const bool fixed = t.extents[d]->op == Op::constant;
        at.push_back(b_.take(fixed ? b_.kernel().pool->coordinate(name, t.extents[d]->value)
                                   : b_.kernel().pool->counter(name, b_.number(0), t.extents[d])));
      }
      const Term row = at[at.size() - 2], k = at.back();
      b_.tag({GlobalAt{id, at}, t.name == "A" ? "row" : "column", row, at});
      b_.tag({GlobalAt{id, at}, "k", k, at});
    }
  }
  /// What is multiplied has one k.
  void assert_operands(Term at) {
    const auto symbol = [&](const std::string& name, int64_t extent) {
      return b_.take(b_.kernel().pool->coordinate(name, extent));
    };
    const Term m = symbol("at_m", s_.bm), n = symbol("at_n", s_.bn), k = symbol("at_k", s_.bk);
    b_.assert_tag({SharedAt{a_shared_, {at, m, k}},
                   "k",
                   false,
                   Tagged(SharedAt{b_shared_, {at, n, k}}),
                   {m, n, k}});
  }
  /// Each sum is of its row and its column.
  void assert_sums() {
    const Term e = b_.take(b_.kernel().pool->coordinate("at_e", s_.bn / 2));
    const Term lane = b_.at().lane;
    const Term row = row_ + warp_ * 16 + floor_div(lane, 4) + floor_mod(floor_div(e, 2), 2) * 8;
    const Term column = column_ + floor_div(e, 4) * 8 + floor_mod(lane, 4) * 2 + floor_mod(e, 2);
    b_.assert_tag({Slice{acc_, e}, "row", false, row, {e}});
    b_.assert_tag({Slice{acc_, e}, "column", false, column, {e}});
  }

  void setup() {
    b_.when(equals(b_.at().warp, b_.number(0)), [&] {
      b_.elected([&] {
        std::vector<MapId> maps = {a_map_, b_map_};
        if (!s_.direct) maps.push_back(store_.c_map);
        for (const MapId map : maps) b_.issue("tma.prefetch_map", {MapRef{map}});
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
    if (!s_.early) return;
    b_.issue("grid.wait");
    b_.issue("grid.launch");
  }
  void meet_cluster(std::string_view arrive) {
    b_.issue(arrive);
    b_.issue("cluster.wait");
  }
  /// A block stays while others of the cluster may write to its shared memory or its barriers.
  /// Nobody waits for the last arrivals at a barrier: only a release says that they are over.
  void leave() {
    if (s_.cluster > 1 && !s_.drains) meet_cluster("cluster.arrive");
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
        load({a_shared_, a_map_, s_.a_rows, s_.bm, sharers(true)}, row_, k, at);
        load({b_shared_, b_map_, s_.b_rows, s_.bn, sharers(false)}, column_, k, at);
      });
    });
    if (s_.cluster == 1 || !s_.drains) return;
    b_.unrolled("k_2", s_.stages, [&](Term k) {
      const Term count = turns_ * k_tiles_ + k;
      b_.issue("mbarrier.wait", {BarrierAt{empty_, ring_.slot(count)}, ring_.parity_before(count)});
    });
  }

  struct Loaded {
    SharedId to;
    MapId map;
    bool rows_first;
    int64_t rows;
    int shared_by;
  };
  /// The rows from `first`, or this block's share of them for the whole cluster; a panel a copy
  /// where rows are contiguous.
  void load(const Loaded& l, Term first, Term k, Term at) {
    const Term zero = b_.number(0);
    const int64_t rows = l.rows / l.shared_by;
    const Term share = l.shared_by == 1 ? zero : b_.at().rank * rows;
    for (int64_t p = 0; p < rows; p += l.rows_first ? panel : rows) {
      const auto moved = [&](Term t) { return p == 0 ? t : t + p; };
      const Term row = moved(l.shared_by == 1 ? first : first + share);
      std::vector<Term> corner = {k * s_.bk, row};
      if (l.rows_first) std::swap(corner[0], corner[1]);
      const TensorMap& map = b_.kernel()[l.map];
      if (map.dims.size() == 3)
        corner.push_back(b_.kernel()[map.tensor].extents[0] == b_.number(1) ? zero : batch_);
      const std::string rank = std::to_string(corner.size());
      const SharedAt to{l.to, {at, moved(share), zero}};
      if (l.shared_by == 1)
        b_.issue("tma.load", {to, MapRef{l.map}, integers(corner), BarrierAt{full_, at}},
                 {{"rank", rank}});
      else
        b_.issue("tma.load_multicast",
                 {to, MapRef{l.map}, integers(corner), BarrierAt{full_, at},
                  number((1 << l.shared_by) - 1)},
                 {{"rank", rank}});
    }
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
      if (w->may_transpose())
        arguments.insert(arguments.end(), {number(s_.a_rows ? 1 : 0), number(s_.b_rows ? 1 : 0)});
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
    store_.registers();
    b_.loop("turn", b_.number(0), turns_, b_.number(1), [&](Term turn) {
      place(turn);
      b_.loop("k", b_.number(0), k_tiles_, b_.number(1), [&](Term k) {
        const Term count = turn * k_tiles_ + k;
        const Term at = ring_.slot(count);
        b_.issue("mbarrier.wait", {BarrierAt{full_, at}, ring_.parity(count)});
        if (s_.tagged) assert_operands(at);
        multiply(k, at);
        b_.issue("wgmma.wait", {number(1)});
        b_.when(less(b_.number(0), k), [&] { release(count - 1); });
      });
      b_.issue("wgmma.wait", {number(0)});
      release(turn * k_tiles_ + k_tiles_ - 1);
      if (s_.tagged) assert_sums();
      store_.store({acc_, warp_, row_, column_, batch_, turn});
    });
    // Shared memory must stay until the last stores have read it.
    if (s_.direct) return;
    b_.when(equals(floor_mod(warp_, 4), b_.number(0)),
            [&] { b_.elected([&] { b_.issue("bulk.wait_read", {number(0)}); }); });
  }

  GemmShape s_;
  Ring ring_{s_.stages};
  Builder b_;
  Results store_{b_, s_};
  Term m_, n_, k_;
  Term row_tiles_, column_tiles_, k_tiles_, tiles_, turns_, first_, step_;
  Term row_, column_, warp_, group_;
  Term l_, batch_;  // null: no batches
  MapId a_map_, b_map_;
  SharedId a_shared_, b_shared_;
  BarriersId full_, empty_;
  RegistersId acc_;
};

}  // namespace

Result<Kernel> gemm(const GemmShape& s) {
  return Gemm(s).write();
}

}  // namespace tessera::core::testing
