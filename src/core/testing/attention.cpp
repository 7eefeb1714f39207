#include "core/testing/attention.h"

#include <cmath>
#include <limits>

#include "arch/wgmma.h"

#include "core/builder.h"
#include "core/testing/fragments.h"

namespace tessera::core::testing {
namespace {
using term::Op;
constexpr double inf = std::numeric_limits<double>::infinity();

class Attention {
 public:
  explicit Attention(const AttentionShape& s)
      : s_(s),
        b_("attention", 128 * (s.consumers() + 1)),
        scale_(std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(s.head_dim))) {}

  Result<Kernel> write() {
    storages();
    place();
    setup();
    b_.role("producer", 0, 4, [&](Term warp) {
      b_.issue("setmaxnreg.dec", {number(s_.consumers() == 3 ? 32 : 24)});
      b_.when(equals(warp, b_.number(0)), [&] { b_.elected([&] { produce(); }); });
    });
    b_.role("consumer", 4, 4 * s_.consumers(), [&](Term warp) {
      b_.issue("setmaxnreg.inc", {number(s_.consumers() == 3 ? 160 : 240)});
      warp_ = warp;
      group_ = floor_div(warp, 4);
      consume();
    });
    return b_.finish();
  }

 private:
  Integers number(int64_t n) { return {{b_.number(n)}}; }
  Term zero() { return b_.number(0); }
  TensorId tensor(const char* name, Term heads, Term rows, Access access) {
    const Term d = b_.number(s_.head_dim);
    return b_.tensor({name,
                      s_.element,
                      {batches_, heads, rows, d},
                      {heads * rows * d, rows * d, d, b_.number(1)},
                      access});
  }
  MapId map(TensorId t, const std::string& name, int64_t rows) {
    return b_.map({name, t, {3, 2, 1, 0}, {64, rows, 1, 1}, arch::SwizzleMode::bytes_128});
  }
  /// `first` tiles of `rows` rows; 64 columns, which are 128 bytes, lie together.
  SharedId tile(const std::string& name, int64_t first, int64_t rows) {
    const int64_t d = s_.head_dim;
    const IntTuple columns = IntTuple::flat({64, d / 64}), step = IntTuple::flat({1, rows * 64});
    const bool by_column = name == "v";  // the axis that is summed comes last: its rows
    return b_.shared(name, s_.element,
                     by_column ? Layout(IntTuple::tuple({first, columns, rows}),
                                        IntTuple::tuple({rows * d, step, 64}))
                               : Layout(IntTuple::tuple({first, rows, columns}),
                                        IntTuple::tuple({rows * d, 64, step})),
                     arch::SwizzleMode::bytes_128);
  }

  [[nodiscard]] SharedAt element(SharedId tile, Term number, Term row, Term column) const {
    const bool v = tile == v_shared_;
    return {tile, {number, v ? column : row, v ? row : column}};
  }

  void storages() {
    queries_ = b_.parameter("TQ", 1, 1 << 20);
    keys_ = b_.parameter("TK", 1, 1 << 20);
    heads_ = b_.parameter("H", 1, 1 << 12);
    kv_heads_ = b_.parameter("G", 1, 1 << 12);
    batches_ = b_.parameter("B", 1, 1 << 14);
    q_map_ = map(tensor("Q", heads_, queries_, Access::input), "Q_map", 64);
    k_map_ = map(tensor("K", kv_heads_, keys_, Access::input), "K_map", s_.keys);
    v_map_ = map(tensor("V", kv_heads_, keys_, Access::input), "V_map", s_.keys);
    o_map_ = map(tensor("O", heads_, queries_, Access::output), "O_map", 64);
    q_shared_ = tile("q", s_.consumers(), 64);
    k_shared_ = tile("k", s_.stages, s_.keys);
    v_shared_ = tile("v", s_.stages, s_.keys);
    q_full_ = b_.barriers("q_full", 1);
    k_full_ = b_.barriers("k_full", s_.stages);
    k_empty_ = b_.barriers("k_empty", s_.stages);
    v_full_ = b_.barriers("v_full", s_.stages);
    v_empty_ = b_.barriers("v_empty", s_.stages);
  }

  /// One tile of queries of one head a block, the last rows first: with a causal mask they are the
  /// longest.
  void place() {
    const Term tiles = b_.divide_up(queries_, s_.queries);
    b_.kernel().grid = tiles * heads_ * batches_;
    const Term block = b_.at().block;
    row_ = (tiles - b_.make(Op::remainder, {block, tiles}) - 1) * s_.queries;
    const Term at_head = b_.make(Op::divide, {block, tiles});
    head_ = b_.make(Op::remainder, {at_head, heads_});
    batch_ = b_.make(Op::divide, {at_head, heads_});
    kv_head_ = b_.make(Op::divide, {head_ * kv_heads_, heads_});
    offset_ = keys_ - queries_;  // the diagonal: keys up to row + offset
    Term reach = keys_;
    if (s_.causal) reach = b_.make(Op::min, {reach, row_ + offset_ + s_.queries});
    steps_ = b_.divide_up(reach, s_.keys);
  }

  void setup() {
    b_.when(equals(b_.at().warp, zero()), [&] {
      b_.elected([&] {
        b_.issue("mbarrier.init", {BarrierAt{q_full_, zero()}, number(1)});
        b_.unrolled("s", s_.stages, [&](Term s) {
          for (BarriersId full : {k_full_, v_full_})
            b_.issue("mbarrier.init", {BarrierAt{full, s}, number(1)});
          for (BarriersId empty : {k_empty_, v_empty_})
            b_.issue("mbarrier.init", {BarrierAt{empty, s}, number(int64_t{4} * s_.consumers())});
        });
        b_.issue("fence.mbarrier_init");
      });
    });
    b_.issue("barrier.sync", {number(0), number(b_.kernel().threads)});
  }

  void load(SharedId to, Term first, MapId from, Term row, Term head, BarriersId barrier, Term at) {
    for (int64_t c = 0; c < s_.head_dim; c += 64)
      b_.issue("tma.load",
               {element(to, first, zero(), b_.number(c)), MapRef{from},
                Integers{{b_.number(c), row, head, batch_}}, BarrierAt{barrier, at}},
               {{"rank", "4"}});
  }
  void expect(BarriersId barrier, Term at, int64_t rows) {
    b_.issue("mbarrier.arrive_expect_tx",
             {BarrierAt{barrier, at}, number(rows * s_.head_dim * size_of(s_.element))});
  }

  /// Keys and values from the last step to the first.
  void produce() {
    expect(q_full_, zero(), s_.queries);
    b_.unrolled("g", s_.consumers(),
                [&](Term g) { load(q_shared_, g, q_map_, row_ + g * 64, head_, q_full_, zero()); });
    b_.loop("n", zero(), steps_, b_.number(1), [&](Term n) {
      const Term row = (steps_ - 1 - n) * s_.keys;
      const Term at = ring_.slot(n);
      b_.issue("mbarrier.wait", {BarrierAt{k_empty_, at}, ring_.parity_before(n)});
      expect(k_full_, at, s_.keys);
      load(k_shared_, at, k_map_, row, kv_head_, k_full_, at);
      b_.issue("mbarrier.wait", {BarrierAt{v_empty_, at}, ring_.parity_before(n)});
      expect(v_full_, at, s_.keys);
      load(v_shared_, at, v_map_, row, kv_head_, v_full_, at);
    });
  }

  arch::Wgmma product(arch::Feed a_from, int64_t n) {
    const auto e = s_.element == DType::bfloat16 ? arch::Element::bf16 : arch::Element::f16;
    const auto w = arch::wgmma(e, e, arch::Element::f32, a_from, n);
    if (!w) b_.fail_with(w.error());
    return w ? *w : arch::Wgmma{};
  }

  /// scores = Q K^T of step n.
  void score(Term n) {
    const arch::Wgmma w = product(arch::Feed::shared, s_.keys);
    b_.issue("wgmma.fence");
    for (int64_t k = 0; k < s_.head_dim; k += 16)
      b_.issue(w.form().name,
               {Slice{scores_, zero()}, SharedAt{q_shared_, {group_, zero(), b_.number(k)}},
                SharedAt{k_shared_, {ring_.slot(n), zero(), b_.number(k)}}, number(k > 0 ? 1 : 0),
                number(1), number(1), number(0), number(0)},
               w.choices());
    b_.issue("wgmma.commit");
  }
  /// sums += powers V of step n. V lies with its columns contiguous: transposed.
  void weigh(Term n) {
    const arch::Wgmma w = product(arch::Feed::registers, s_.head_dim);
    b_.issue("wgmma.fence");
    for (int64_t k = 0; k < s_.keys; k += 16)
      b_.issue(w.form().name,
               {Slice{sums_, zero()}, Slice{powers_, b_.number(k / 2)},
                element(v_shared_, ring_.slot(n), b_.number(k), zero()), number(1), number(1),
                number(1), number(1)},
               w.choices());
    b_.issue("wgmma.commit");
  }
  void release(BarriersId b, Term n) {
    b_.elected([&] { b_.issue("mbarrier.arrive", {BarrierAt{b, ring_.slot(n)}}); });
  }
  void wait(BarriersId barrier, Term n) {
    b_.issue("mbarrier.wait", {BarrierAt{barrier, ring_.slot(n)}, ring_.parity(n)});
  }

  void declare() {
    const int64_t q = s_.queries, w = s_.consumers();
    scores_ = b_.registers("scores", DType::float32, {q, s_.keys}, fragment(q, s_.keys, w));
    sums_ = b_.registers("sums", DType::float32, {q, s_.head_dim}, fragment(q, s_.head_dim, w));
    powers_ = b_.registers("powers", s_.element, {q, s_.keys}, fragment(q, s_.keys, w));
    out_ = b_.registers("out", s_.element, {q, s_.head_dim}, fragment(q, s_.head_dim, w));
    const Layout rows(IntTuple::tuple({IntTuple::flat({4, 8, 4, w}), IntTuple::flat({2})}),
                      IntTuple::tuple({IntTuple::flat({0, 1, 16, 64}), IntTuple::flat({8})}));
    const auto of_rows = [&](const char* n) {
      return b_.registers(n, DType::float32, {q, 1}, rows);
    };
    most_ = of_rows("most"), before_ = of_rows("before"), total_ = of_rows("total");
    shift_ = of_rows("shift"), other_ = of_rows("other");
  }

  // All of a fragment of `columns`; the row of each; the two rows.
  Run all(RegistersId r, int64_t columns) { return {r, zero(), Layout(columns / 2, 1)}; }
  Run row_of(RegistersId r, int64_t columns) {
    return {r, zero(), Layout(IntTuple::flat({2, 2, columns / 8}), IntTuple::flat({0, 1, 0}))};
  }
  Run rows(RegistersId r) { return {r, zero(), Layout(2, 1)}; }
  void compute(const std::shared_ptr<pointwise::Dag>& dag, std::vector<std::variant<Run, Term>> in,
               Run out, int64_t count, Term element = {}) {
    b_.compute({dag, std::move(in), {std::move(out)}, count, element});
  }
  void fill(Run r, double value, int64_t n) {
    const Function f;
    compute(f.giving(f.number(value)), {}, std::move(r), n);
  }

  /// The four lanes that share a row put their values together.
  void across(RegistersId r, std::string_view by) {
    for (int64_t distance : {1, 2}) {
      b_.unrolled("i" + std::to_string(distance) + std::string(by) + std::to_string(marks_++), 2,
                  [&](Term i) {
                    b_.issue("shuffle",
                             {Slice{other_, i}, Slice{r, i}, number(distance), number(0x1f),
                              number(0xffffffff)},
                             {{"mode", "bfly"}});
                  });
      const Function f;
      compute(f.giving(f.call(by, {f.operand(0), f.operand(1)})), {rows(r), rows(other_)}, rows(r),
              2);
    }
  }

  /// Scores of keys past the end, or past the diagonal, become -inf.
  void mask(Term n) {
    const Term first = (steps_ - 1 - n) * s_.keys;
    Term reaches = less(keys_, first + s_.keys);
    if (s_.causal) reaches = logical_or(reaches, less(row_ + offset_ + 1, first + s_.keys));
    b_.when(reaches, [&] {
      const Term e =
          b_.take(b_.kernel().pool->coordinate("e" + std::to_string(marks_++), s_.keys / 2));
      const Term lane = b_.at().lane;
      const Term key = first + floor_div(e, 4) * 8 + floor_mod(lane, 4) * 2 + floor_mod(e, 2);
      Term beyond = less_equal(keys_, key);
      if (s_.causal) {
        const Term row = row_ + group_ * 64 + floor_mod(warp_, 4) * 16 + floor_div(lane, 4) +
                         floor_mod(floor_div(e, 2), 2) * 8;
        beyond = logical_or(beyond, less(row + offset_, key));
      }
      const Function f;
      compute(f.giving(f.call("where", {f.operand(1), f.number(-inf), f.operand(0)})),
              {all(scores_, s_.keys), b_.select(beyond, b_.number(1), zero())},
              all(scores_, s_.keys), s_.keys / 2, e);
    });
  }

  /// The new maxima, the powers in place of the scores and their sums; `before` becomes the factor
  /// of what was summed so far.
  void soften() {
    const int64_t n = s_.keys / 2;
    const Function copy, larger, shifted, factor, power, grow, add;
    compute(copy.giving(copy.operand(0)), {rows(most_)}, rows(before_), 2);
    compute(larger.giving(larger.call("maximum", {larger.operand(0), larger.operand(1)})),
            {row_of(most_, s_.keys), all(scores_, s_.keys)}, row_of(most_, s_.keys), n);
    across(most_, "maximum");
    // A row without keys so far has nothing to shift: -inf - -inf would be NaN.
    const int m = shifted.operand(0);
    compute(shifted.giving(shifted.call(
                "where", {shifted.call("eq", {m, shifted.number(-inf)}), shifted.number(0),
                          shifted.call("mul", {m, shifted.number(scale_)})})),
            {rows(most_)}, rows(shift_), 2);
    const auto power_of = [&](const Function& f) {
      return f.call(
          "exp2_flushed",
          {f.call("sub", {f.call("mul", {f.operand(0), f.number(scale_)}), f.operand(1)})});
    };
    compute(factor.giving(power_of(factor)), {rows(before_), rows(shift_)}, rows(before_), 2);
    compute(power.giving(power_of(power)), {all(scores_, s_.keys), row_of(shift_, s_.keys)},
            all(scores_, s_.keys), n);
    compute(grow.giving(grow.call("mul", {grow.operand(0), grow.operand(1)})),
            {rows(total_), rows(before_)}, rows(total_), 2);
    compute(add.giving(add.call("add", {add.operand(0), add.operand(1)})),
            {row_of(total_, s_.keys), all(scores_, s_.keys)}, row_of(total_, s_.keys), n);
  }
  /// `to` becomes the sums, each row times its factor.
  void scale_rows(RegistersId factors, RegistersId to) {
    const Function f;
    compute(f.giving(f.call("mul", {f.operand(0), f.operand(1)})),
            {all(sums_, s_.head_dim), row_of(factors, s_.head_dim)}, all(to, s_.head_dim),
            s_.head_dim / 2);
  }
  void round() {
    const Function f;
    compute(f.giving(f.operand(0)), {all(scores_, s_.keys)}, all(powers_, s_.keys), s_.keys / 2);
  }

  bool in_turns() { return s_.turns && s_.consumers() == 2; }
  void take_turn() {
    if (in_turns()) b_.issue("barrier.sync", {Integers{{group_ + 3}}, number(256)});
  }
  void pass_turn() {
    if (in_turns()) b_.issue("barrier.arrive", {Integers{{b_.number(4) - group_}}, number(256)});
  }

  void consume() {
    declare();
    fill(rows(most_), -inf, 2);
    fill(rows(total_), 0, 2);
    fill(all(sums_, s_.head_dim), 0, s_.head_dim / 2);
    if (in_turns())
      b_.when(less(zero(), group_), [&] { b_.issue("barrier.arrive", {number(3), number(256)}); });
    b_.issue("mbarrier.wait", {BarrierAt{q_full_, zero()}, number(0)});
    wait(k_full_, zero());
    take_turn();
    score(zero());
    b_.issue("wgmma.wait", {number(0)});
    pass_turn();
    release(k_empty_, zero());
    mask(zero());
    soften();
    round();
    b_.loop("step", b_.number(1), steps_, b_.number(1), [&](Term n) {
      wait(k_full_, n);
      take_turn();
      score(n);
      wait(v_full_, n - 1);
      weigh(n - 1);
      pass_turn();
      b_.issue("wgmma.wait", {number(1)});
      release(k_empty_, n);
      mask(n);
      soften();
      b_.issue("wgmma.wait", {number(0)});
      release(v_empty_, n - 1);
      scale_rows(before_, sums_);
      round();
    });
    wait(v_full_, steps_ - 1);
    weigh(steps_ - 1);
    b_.issue("wgmma.wait", {number(0)});
    release(v_empty_, steps_ - 1);
    if (in_turns())
      b_.when(equals(group_, zero()), [&] { b_.issue("barrier.sync", {number(3), number(256)}); });
    finish();
  }
  /// Through the queries' shared memory, which this warpgroup alone still had.
  void finish() {
    across(total_, "add");
    const Function f;
    f.giving(f.call("div", {f.number(1), f.operand(0)}));
    compute(f.dag, {rows(total_)}, rows(total_), 2);
    scale_rows(total_, out_);
    // A warp's own products are complete; those of the other three may still read the queries.
    b_.issue("barrier.sync", {Integers{{group_ + 1}}, number(128)});
    b_.unrolled("j", s_.head_dim / 16, [&](Term j) {
      const Term row = floor_mod(warp_, 4) * 16 + floor_mod(b_.at().lane, 16);
      const Term column = j * 16 + floor_div(b_.at().lane, 16) * 8;
      b_.issue("stmatrix", {SharedAt{q_shared_, {group_, row, column}}, Slice{out_, j * 8}},
               {{"matrices", "4"}});
    });
    b_.issue("fence.async.shared::cta");
    b_.issue("barrier.sync", {Integers{{group_ + 1}}, number(128)});
    b_.when(equals(floor_mod(warp_, 4), zero()), [&] {
      b_.elected([&] {
        for (int64_t c = 0; c < s_.head_dim; c += 64)
          b_.issue("tma.store",
                   {MapRef{o_map_}, Integers{{b_.number(c), row_ + group_ * 64, head_, batch_}},
                    SharedAt{q_shared_, {group_, zero(), b_.number(c)}}},
                   {{"rank", "4"}});
        b_.issue("bulk.commit");
        b_.issue("bulk.wait_read", {number(0)});
      });
    });
  }

  AttentionShape s_;
  Ring ring_{s_.stages};
  Builder b_;
  double scale_;
  int marks_ = 0;
  Term queries_, keys_, heads_, kv_heads_, batches_;
  Term row_, head_, kv_head_, batch_, offset_, steps_, warp_, group_;
  MapId q_map_, k_map_, v_map_, o_map_;
  SharedId q_shared_, k_shared_, v_shared_;
  BarriersId q_full_, k_full_, k_empty_, v_full_, v_empty_;
  RegistersId scores_, sums_, powers_, out_, most_, before_, total_, shift_, other_;
};

}  // namespace

Result<Kernel> attention(const AttentionShape& s) {
  return Attention(s).write();
}

}  // namespace tessera::core::testing
