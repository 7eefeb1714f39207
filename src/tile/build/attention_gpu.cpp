// Attention on a GPU: scores and sums stay in the registers that the matrix instructions leave them
// in, the probabilities go into the second product as they lie (dot_plan.h), keys and values pass
// through shared memory. The softmax works to base 2, its scale folded into one multiply-add.
#include "tile/build/attention_gpu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tile/build/attention_types.h"
#include "tile/dot_plan.h"

namespace tessera::tile::build {
namespace {
using Nodes = std::vector<int>;
constexpr double inf = std::numeric_limits<double>::infinity();

using Shape = AttentionShape;

class Writer {
 public:
  Writer(const AttentionProblem& p, const AttentionConfig& c, const Shape& s)
      : p_(p), c_(c), s_(s), program_{p.name, p.tensors, {}}, b_(program_, p.name, s.threads()) {}

  Result<Program> write() {
    b_.kernel().min_blocks = c_.min_blocks;
    variables();
    views();
    TESSERA_CHECK(types());
    b_.open("tiles", {},
            Walk{c_.longest_first ? std::vector<VarId>{i_, head_} : std::vector<VarId>{head_, i_}});
    ks_ = b_.one("shared", {}, Ring{k_shared_, c_.stages, j_}, "k_tile");
    vs_ = b_.one("shared", {}, Ring{v_shared_, c_.stages, j_}, "v_tile");
    if (c_.shared_queries) qs_ = b_.one("shared", {}, Ring{q_shared_, 1, i_}, "q_tile");
    prologue();
    ValueId q = queries();
    ValueId m = b_.one("full", {}, FullOf{row_type_, -inf}, "m");
    ValueId l = b_.one("full", {}, FullOf{row_type_, 0}, "l");
    ValueId acc = b_.one("full", {}, FullOf{acc_type_, 0}, "acc");
    std::vector<ValueId> carried = b_.open("steps", {m, l, acc}, Walk{{j_}});
    std::vector<ValueId> end = b_.close(turn(q, carried));
    finish(end[1], end[2]);
    b_.close();
    TESSERA_CHECK(b_.finish());
    return std::move(program_);
  }

 private:
  void variables() {
    head_ = b_.var("h", p_.batch * p_.heads, 1);
    i_ = b_.var("i", p_.queries, c_.block_queries);
    b_.kernel().vars[i_.index].reversed = p_.causal;
    j_ = p_.causal ? b_.var_until("j", p_.keys, c_.block_keys, i_, p_.causal_offset)
                   : b_.var("j", p_.keys, c_.block_keys);
  }

  /// batch x heads as one mode; the queries of a group share a head of k and v by a stride of 0.
  ValueId view(const StridedView& v, int64_t heads, int64_t rows, int64_t columns,
               std::string_view name) {
    Layout head = coalesce(
        Layout(IntTuple::flat({p_.heads / heads, heads, p_.batch}),
               IntTuple::flat({heads == p_.heads ? v.strides[1] : 0, v.strides[1], v.strides[0]})));
    return b_.one(
        "view", {},
        ViewOf{v.tensor, concat({head, {rows, v.strides[2]}, {columns, v.strides[3]}}), v.offset},
        std::string(name) + "_view");
  }
  void views() {
    q_ = view(p_.q, p_.heads, p_.queries, p_.head_dim, "q");
    k_ = view(p_.k, p_.kv_heads, p_.keys, p_.head_dim, "k");
    v_ = view(p_.v, p_.kv_heads, p_.keys, p_.value_dim, "v");
    o_ = view(p_.o, p_.heads, p_.queries, p_.value_dim, "o");
    if (p_.mask) mask_ = view(*p_.mask, p_.heads, p_.queries, p_.keys, "mask");
  }

  Status types() {
    const Axis rows{c_.block_queries, i_}, keys{c_.block_keys, j_};
    const Axis head{p_.head_dim, {}}, value{p_.value_dim, {}};
    q_type_ = query_type(s_, c_, rows, head);
    score_type_ = result_type(s_, c_, rows, keys, c_.block_keys, 1);
    acc_type_ = result_type(s_, c_, rows, value, s_.width, value_run(s_));
    row_type_ = register_type({rows, {1, {}}}, {c_.block_queries, 1},
                              {thread_modes(s_, c_, 0), {{2, 0, 8}, {c_.row_tiles, 0, s_.by->m}}});
    Spread row = spread(row_type_);
    row.threads[0] = {4, -1, 0};
    row_type_.layout = layout_of(row, row_type_.cover);
    TESSERA_TRY(k,
                shared_type(s_, element(p_.k), keys, head, s_.depth, q_type_, score_type_, true));
    TESSERA_TRY(
        v, shared_type(s_, element(p_.v), keys, value, s_.width, score_type_, acc_type_, false));
    k_shared_ = k, v_shared_ = v;
    // Queries are read as keys are: the same rows do for them.
    q_shared_ = k;
    q_shared_.element = element(p_.q);
    q_shared_.axes[0] = rows;
    q_shared_.cover[0] = rows.extent;
    q_shared_.layout =
        concat({Layout(rows.extent, flatten(k.layout.stride())[0]), k.layout.mode(1)});
    q_copy_ = copy_type(s_, q_shared_);
    k_copy_ = copy_type(s_, k), v_copy_ = copy_type(s_, v);
    return {};
  }
  [[nodiscard]] DType element(const StridedView& v) const { return p_.tensors[v.tensor].element; }

  [[nodiscard]] std::vector<Index> at(VarId first, VarId second) const {
    auto index = [](VarId v) { return v.valid() ? Index{Index::Kind::tile, v} : Index{}; };
    return {{Index::Kind::pick, head_}, index(first), index(second)};
  }
  ValueId queries() {
    if (c_.shared_queries) return qs_;
    ValueId q = b_.one("load", {q_}, LoadAt{at(i_, {}), q_type_.cover, q_type_.layout}, "q");
    if (!rounds_queries()) return q;
    return map(
        {q}, [](pointwise::Dag& d, auto& x) { return Nodes{d.add_call("round_tf32", {x[0]})}; },
        "q_rounded")[0];
  }
  void copy_keys(int64_t tile, bool from_start) {
    b_.add("copy", {k_, ks_}, CopyOf{at(j_, {}), k_copy_.cover, k_copy_.layout, tile, from_start});
  }
  void copy_values(int64_t tile, bool from_start) {
    b_.add("copy", {v_, vs_}, CopyOf{at(j_, {}), v_copy_.cover, v_copy_.layout, tile, from_start});
  }
  void commit() { b_.add("commit", {}, {}); }

  /// With one slot each, keys of the next turn arrive during the second product and values of this
  /// one during the first; with n, both are n - 1 turns ahead.
  void prologue() {
    if (c_.shared_queries)
      b_.add("copy", {q_, qs_}, CopyOf{at(i_, {}), q_copy_.cover, q_copy_.layout, 0, false});
    if (c_.stages == 1) {
      copy_keys(0, true);
      return commit();
    }
    for (int n = 0; n + 1 < c_.stages; ++n) {
      copy_keys(n, true);
      copy_values(n, true);
      commit();
    }
  }
  void before_scores() {
    b_.add("wait", {}, Wait{std::max(c_.stages - 2, 0)});
    if (c_.stages > 1) copy_keys(c_.stages - 1, false);
    copy_values(c_.stages - 1, false);
    commit();
  }
  void before_values() {
    if (c_.stages > 1) return;
    b_.add("wait", {}, Wait{0});
    copy_keys(1, false);
    commit();
  }

  template <class F>
  std::vector<ValueId> map(std::vector<ValueId> operands, F f, std::string_view hint) {
    return add_map(b_, std::move(operands), f, hint);
  }

  /// Scores are scaled on the way into the exponential, unless a mask is added to them before or
  /// their order would turn round.
  [[nodiscard]] bool scale_late() const { return !p_.mask && p_.scale > 0; }
  [[nodiscard]] double late_scale() const {
    return scale_late() ? p_.scale * std::numbers::log2e : 1;
  }

  ValueId masked(ValueId s) {
    const double scale = p_.scale * std::numbers::log2e;
    if (p_.mask) {
      ValueId mask = b_.one("load", {mask_},
                            LoadAt{at(i_, j_), score_type_.cover, score_type_.layout}, "mask_tile");
      s = map(
          {s, mask},
          [&](pointwise::Dag& d, auto& x) {
            int y = d.add_call("mul", {x[0], d.add_constant(scale)});
            if (p_.mask_is_boolean)
              return Nodes{d.add_call("where", {x[1], y, d.add_constant(-inf)})};
            int z = d.add_call("mul", {x[1], d.add_constant(std::numbers::log2e)});
            return Nodes{d.add_call("add", {y, z})};
          },
          "s_masked")[0];
    } else if (!scale_late()) {
      s = map(
          {s},
          [&](pointwise::Dag& d, auto& x) {
            return Nodes{d.add_call("mul", {x[0], d.add_constant(scale)})};
          },
          "s_scaled")[0];
    }
    if (!p_.causal) return s;
    ValueId in = b_.open("when", {s}, Crossing{i_, j_, p_.causal_offset})[0];
    ValueId row = b_.one("iota", {}, IotaAlong{score_type_, 0}, "row");
    ValueId column = b_.one("iota", {}, IotaAlong{score_type_, 1}, "column");
    ValueId out = map(
        {in, row, column},
        [&](pointwise::Dag& d, auto& x) {
          int last = x[1];
          if (p_.causal_offset != 0)
            last = d.add_call("add", {last, d.add_constant(static_cast<double>(p_.causal_offset))});
          return Nodes{
              d.add_call("where", {d.add_call("le", {x[2], last}), x[0], d.add_constant(-inf)})};
        },
        "s_causal")[0];
    return b_.close({out})[0];
  }

  ValueId product(ValueId a, ValueId b, ValueId c, bool transposed, std::string_view hint) {
    return b_.one("dot", {a, b, c},
                  Product{s_.by, s_.terms, transposed, transposed && rounds_queries(),
                          transposed && c_.shared_queries ? std::optional(q_type_) : std::nullopt},
                  hint);
  }
  /// Once, not in every turn.
  [[nodiscard]] bool rounds_queries() const {
    return s_.size == 4 && s_.terms == 1 && !c_.shared_queries;
  }

  /// One block of keys: (m, l, acc) to the next (m, l, acc).
  std::vector<ValueId> turn(ValueId q, const std::vector<ValueId>& carried) {
    const double scale = late_scale();
    before_scores();
    ValueId zero = b_.one("full", {}, FullOf{score_type_, 0}, "zero");
    ValueId s = masked(product(q, ks_, zero, true, "s"));
    ValueId most = b_.one("reduce", {s}, Fold{Fold::Kind::max, 1}, "most");
    // Rows without a visible key so far keep the maximum -inf; 0 stands in for it, so that powers
    // give 0, not NaN.
    std::vector<ValueId> r = map(
        {carried[0], most},
        [&](pointwise::Dag& d, auto& x) {
          int next = d.add_call("maximum", {x[0], x[1]});
          int none = d.add_call("eq", {next, d.add_constant(-inf)});
          int top = d.add_call("mul", {next, d.add_constant(scale)});
          int base = d.add_call("where", {none, d.add_constant(0), top});
          int was = d.add_call("mul", {x[0], d.add_constant(scale)});
          return Nodes{next, base, d.add_call("exp2_flushed", {d.add_call("sub", {was, base})})};
        },
        "m_next");
    ValueId base_row = b_.one("broadcast", {r[1]}, Like{score_type_}, "base_row");
    ValueId e = map(
        {s, base_row},
        [&](pointwise::Dag& d, auto& x) {
          int y = d.add_call("mul", {x[0], d.add_constant(scale)});
          return Nodes{d.add_call("exp2_flushed", {d.add_call("sub", {y, x[1]})})};
        },
        "p")[0];
    ValueId part = b_.one("reduce", {e}, Fold{Fold::Kind::sum, 1}, "part");
    ValueId l = map(
        {carried[1], r[2], part},
        [](pointwise::Dag& d, auto& x) {
          return Nodes{d.add_call("add", {d.add_call("mul", {x[0], x[1]}), x[2]})};
        },
        "l_next")[0];
    return {r[0], l, values(e, r[2], carried[2])};
  }

  /// The sum so far, scaled down to the new maximum, and the block's part. At fp32 accuracy the
  /// part is summed apart and added in fp32: long sums inside the tensor cores lose low bits.
  ValueId values(ValueId e, ValueId scale, ValueId acc) {
    before_values();
    ValueId scale_row = b_.one("broadcast", {scale}, Like{acc_type_}, "scale_row");
    if (s_.terms == 1) {
      acc = map(
          {acc, scale_row},
          [](pointwise::Dag& d, auto& x) { return Nodes{d.add_call("mul", {x[0], x[1]})}; },
          "acc_scaled")[0];
      return product(e, vs_, acc, false, "acc_next");
    }
    ValueId zero = b_.one("full", {}, FullOf{acc_type_, 0}, "zero");
    ValueId part = product(e, vs_, zero, false, "acc_part");
    scale_row = b_.one("broadcast", {scale}, Like{acc_type_}, "scale_row");
    return map(
        {acc, scale_row, part},
        [](pointwise::Dag& d, auto& x) {
          return Nodes{d.add_call("add", {d.add_call("mul", {x[0], x[1]}), x[2]})};
        },
        "acc_next")[0];
  }

  void finish(ValueId l, ValueId acc) {
    ValueId inverse = map(
        {l},
        [&](pointwise::Dag& d, auto& x) {
          int y = d.add_call("reciprocal", {x[0]});
          if (!p_.empty_rows_are_zero) return Nodes{y};
          int none = d.add_call("eq", {x[0], d.add_constant(0)});
          return Nodes{d.add_call("where", {none, d.add_constant(0), y})};
        },
        "inverse")[0];
    ValueId row = b_.one("broadcast", {inverse}, Like{acc_type_}, "inverse_row");
    ValueId y = map(
        {acc, row},
        [](pointwise::Dag& d, auto& x) { return Nodes{d.add_call("mul", {x[0], x[1]})}; }, "y")[0];
    ValueId out = b_.one("cast", {y}, CastTo{element(p_.o)}, "out");
    b_.add("store", {out, o_}, StoreAt{at(i_, {})});
  }

  const AttentionProblem& p_;
  const AttentionConfig& c_;
  const Shape& s_;
  Program program_;
  KernelBuilder b_;
  Type q_type_, score_type_, acc_type_, row_type_, q_shared_, k_shared_, v_shared_, q_copy_,
      k_copy_, v_copy_;
  ValueId q_, k_, v_, o_, mask_, qs_, ks_, vs_;
  VarId head_, i_, j_;
};

}  // namespace

Result<Program> attention_gpu(const AttentionProblem& p, const AttentionConfig& c) {
  TESSERA_TRY(s, attention_shape(p, c));
  constexpr int64_t most = 255;    // of a thread
  constexpr int64_t spilled = 24;  // more than these are not worth a try
  if (attention_registers(s, c) > most + spilled)
    return error(fail(unsupported, "{} registers a thread for head dims of {} and {}",
                      attention_registers(s, c), p.head_dim, p.value_dim)
                     .expect("at most {}", most));
  return Writer(p, c, s).write();
}

}  // namespace tessera::tile::build
