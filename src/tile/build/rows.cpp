#include "tile/build/rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/integers.h"
#include "tile/build/row_statistics.h"

namespace tessera::tile::build {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

bool reduces(RowKind k) {
  return k == RowKind::sum || k == RowKind::mean || k == RowKind::max;
}

/// Writes one row kernel. Tiles are [rows, columns], or [columns] when a tile has one row.
class RowWriter {
 public:
  RowWriter(const RowProblem& p, const RowConfig& c, Target target)
      : p_(p),
        c_(c),
        rows_(tile_rows(c, target)),
        host_(target == Target::host),
        program_{p.name, p.tensors, {}},
        b_(program_, p.name, host_ ? 1 : c.threads_per_row * c.rows_per_block) {}

  Result<Program> write() {
    int64_t rows = 1;
    for (int64_t e : p_.row_shape) rows *= e;
    for (const StridedView& v : p_.operands) operand_views_.push_back(view(v, p_.columns));
    if (p_.kind == RowKind::layer_norm)
      for (int64_t i : {0, 1})
        for (StridedView v : p_.operands) {
          v.offset += i * (p_.columns / 2) * v.strides.back();
          pivot_views_[i].push_back(view(v, 1));
        }
    for (const StridedView& v : p_.stored) stored_views_.push_back(view(v, p_.columns));
    for (const StridedView& v : p_.outputs)
      output_views_.push_back(view(v, reduces(p_.kind) ? 1 : p_.columns));
    row_ = b_.var("r", rows, rows_);
    b_.open("tiles", {}, Walk{{row_}, c_.blocks_per_multiprocessor, false});
    if (c_.chunk == 0) {
      whole_row();
    } else {
      by_chunks();
    }
    b_.close();
    TESSERA_CHECK(b_.finish());
    return std::move(program_);
  }

 private:
  static int64_t tile_rows(const RowConfig& c, Target t) {
    return t == Target::host ? 1 : int64_t{c.rows_per_block} * c.rows_per_thread;
  }

  ValueId view(const StridedView& v, int64_t columns) {
    std::size_t dims = p_.row_shape.size();
    std::vector<int64_t> row_strides(v.strides.begin(),
                                     v.strides.begin() + static_cast<long>(dims));
    Layout column(columns, columns == 1 ? 0 : v.strides.back());
    Layout layout = concat({mode_of(p_.row_shape, row_strides, 0, dims), column});
    return b_.one("view", {}, ViewOf{v.tensor, layout, v.offset},
                  p_.tensors[v.tensor].name + "_rows");
  }

  /// The slots of a tile of `columns` (or of a chunk, cut by `var`).
  Type row_type(int64_t columns, VarId var) const {
    Type t;
    Spread s;
    int64_t cover = columns;
    if (host_) {
      s.registers = {{columns, 0, 1}};
    } else {
      int64_t step = int64_t{c_.threads_per_row} * c_.vector;
      cover = round_up(columns, step);
      int axis = rows_ > 1 ? 1 : 0;
      s.threads = {{c_.threads_per_row, axis, c_.vector}};
      if (rows_ > 1) s.threads.push_back({c_.rows_per_block, 0, 1});
      s.registers = {{c_.vector, axis, 1}, {cover / step, axis, step}};
      if (rows_ > 1) s.registers.push_back({c_.rows_per_thread, 0, c_.rows_per_block});
    }
    if (rows_ > 1) t.axes.push_back({rows_, row_}), t.cover.push_back(rows_);
    t.axes.push_back({columns, var});
    t.cover.push_back(cover);
    t.layout = layout_of(s, t.cover);
    return t;
  }

  std::vector<Index> indices(bool whole, VarId chunk) const {
    Index row{rows_ > 1 ? Index::Kind::tile : Index::Kind::pick, row_};
    return {row, whole ? Index{} : Index{Index::Kind::tile, chunk}};
  }

  [[nodiscard]] int axis() const { return rows_ > 1 ? 1 : 0; }

  // Small DAGs over tiles: m({"sub", "exp"}) would hide what happens, so each is written out.
  template <class F>
  ValueId map(std::vector<ValueId> operands, F f, std::string_view hint) {
    auto one = [&](pointwise::Dag& d, std::vector<int>& x) { return std::vector{f(d, x)}; };
    return add_map(b_, std::move(operands), one, hint).at(0);
  }
  ValueId spread_row(ValueId v, const Type& t, std::string_view hint) {
    return b_.one("broadcast", {v}, Like{t}, hint);
  }
  ValueId fold(ValueId v, Fold::Kind k, std::string_view hint) {
    return b_.one("reduce", {v}, Fold{k, axis()}, hint);
  }
  ValueId call(std::string_view f, std::vector<ValueId> operands, std::string_view hint) {
    return map(
        std::move(operands),
        [&](pointwise::Dag& d, std::vector<int>& x) { return d.add_call(f, x); }, hint);
  }
  /// Divided by the number of columns, as PyTorch does: a row of one number has that number as its
  /// mean, which a product with a rounded reciprocal is not.
  ValueId mean_plus(ValueId v, double plus, std::string_view then, std::string_view hint) {
    return map(
        {v},
        [&](pointwise::Dag& d, std::vector<int>& x) {
          int y = d.add_call("div", {x[0], d.add_constant(static_cast<double>(p_.columns))});
          if (plus != 0) y = d.add_call("add", {y, d.add_constant(plus)});
          return then.empty() ? y : d.add_call(then, {y});
        },
        hint);
  }

  /// Of `count` elements (of all columns, where there is none), by what they lie off the pivot: the
  /// mean of equal elements is that element, so nothing is left that `rstd` would make large.
  ValueId exact_mean(ValueId x, const Type& t, ValueId count) {
    ValueId off = call("sub", {x, spread_row(pivot_, t, "pivot_row")}, "off");
    ValueId sum = fold(off, Fold::Kind::sum, "total_off");
    ValueId part = count.valid() ? call("div", {sum, count}, "off") : mean_plus(sum, 0, "", "off");
    return call("add", {pivot_, part}, "mean");
  }

  void load(int i, const Type& t, const std::vector<Index>& at) {
    if (loaded_[i].valid()) return;
    std::string_view name = p_.tensors[p_.operands[i].tensor].name;
    loaded_[i] = b_.one("load", {operand_views_[i]}, LoadAt{at, t.cover, t.layout}, name);
  }

  /// Maps `dag` over operands of which only those that it reads exist; the others keep their
  /// number.
  std::vector<ValueId> map_read(const pointwise::Dag& dag, const std::vector<ValueId>& operands,
                                std::string_view hint) {
    std::vector<bool> read = operands_read(dag, operands.size());
    pointwise::Dag d = dag;
    std::vector<int> number(operands.size(), -1);
    std::vector<ValueId> used;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (read[i]) number[i] = static_cast<int>(used.size()), used.push_back(operands[i]);
    for (auto& n : d.nodes)
      if (n.kind == pointwise::Dag::Node::Kind::operand) n.operand = number[n.operand];
    return b_.add("map", std::move(used), map_of(d), hint);
  }

  /// Loads what pre reads; returns pre's results (result 0 first, as it is normalized), stored
  /// where asked.
  std::vector<ValueId> begin(const Type& t, const std::vector<Index>& at, bool store) {
    loaded_.assign(operand_views_.size(), {});
    std::vector<bool> read =
        operands_read(p_.pre.empty() ? identity_dag() : p_.pre, loaded_.size());
    for (std::size_t i = 0; i < read.size(); ++i)
      if (read[i]) load(static_cast<int>(i), t, at);
    std::vector<ValueId> x = {loaded_.at(0)};
    if (!p_.pre.empty()) x = map_read(p_.pre, loaded_, "x");
    for (std::size_t i = 0; i < stored_views_.size(); ++i) {
      ValueId rounded =
          b_.one("cast", {x.at(i)}, CastTo{p_.tensors[p_.stored[i].tensor].element}, "sum");
      if (store) b_.add("store", {rounded, stored_views_[i]}, StoreAt{at});
      if (i == 0 && p_.normalize_stored) x[0] = rounded;
    }
    if (p_.round_x) x[0] = b_.one("cast", {x[0]}, CastTo{*p_.round_x}, "x_rounded");
    x_ = x[0];
    return x;
  }

  /// Of two elements of each row, as `begin` makes them, the one nearer to 0, for kinds that need
  /// one: beside an outlier the others would lose digits.
  void load_pivot(const Type& t) {
    if (p_.kind != RowKind::layer_norm) return;
    std::vector<ValueId> two;
    for (auto& views : pivot_views_) {
      std::swap(operand_views_, views);
      two.push_back(begin(statistic_type(t), indices(true, {}), false).at(0));
      std::swap(operand_views_, views);
    }
    pivot_ = map(std::move(two), nearer_to_zero, "pivot");
  }

  void end(ValueId y, const std::vector<Index>& at) {
    std::vector<ValueId> results = {y};
    if (!p_.post.empty()) {
      std::vector<bool> read = operands_read(p_.post, loaded_.size() + 2);
      for (std::size_t i = 0; i < loaded_.size(); ++i)
        if (read[i + 2]) load(static_cast<int>(i), b_.type(y), at);
      std::vector<ValueId> operands = {y, x_};
      operands.insert(operands.end(), loaded_.begin(), loaded_.end());
      results = map_read(p_.post, operands, "y");
    }
    for (std::size_t i = 0; i < output_views_.size(); ++i) {
      ValueId rounded =
          b_.one("cast", {results.at(i)}, CastTo{p_.tensors[p_.outputs[i].tensor].element}, "out");
      b_.add("store", {rounded, output_views_[i]}, StoreAt{at});
    }
  }

  void whole_row() {
    Type t = row_type(p_.columns, {});
    std::vector<Index> at = indices(true, {});
    load_pivot(t);
    ValueId x = begin(t, at, true).at(0);
    switch (p_.kind) {
      case RowKind::layer_norm: {
        ValueId mean = exact_mean(x, t, {});
        ValueId d = call("sub", {x, spread_row(mean, t, "mean_row")}, "centered");
        ValueId square = call("square", {d}, "square");
        ValueId rstd = mean_plus(fold(square, Fold::Kind::sum, "squares"), p_.eps, "rsqrt", "rstd");
        // One thread subtracts again rather than keep the differences of a whole row.
        if (host_) d = call("sub", {x, spread_row(mean, t, "mean_row")}, "centered");
        return end(call("mul", {d, spread_row(rstd, t, "rstd_row")}, "norm"), at);
      }
      case RowKind::rms_norm: {
        ValueId square = call("square", {x}, "square");
        ValueId rstd = mean_plus(fold(square, Fold::Kind::sum, "squares"), p_.eps, "rsqrt", "rstd");
        return end(call("mul", {x, spread_row(rstd, t, "rstd_row")}, "norm"), at);
      }
      case RowKind::softmax: {
        ValueId most = fold(x, Fold::Kind::max, "most");
        ValueId e = call("exp", {call("sub", {x, spread_row(most, t, "most_row")}, "below")}, "e");
        ValueId inverse = call("reciprocal", {fold(e, Fold::Kind::sum, "total")}, "inverse");
        return end(call("mul", {e, spread_row(inverse, t, "inverse_row")}, "norm"), at);
      }
      case RowKind::log_softmax: {
        ValueId most = fold(x, Fold::Kind::max, "most");
        ValueId below = call("sub", {x, spread_row(most, t, "most_row")}, "below");
        ValueId total = fold(call("exp", {below}, "e"), Fold::Kind::sum, "total");
        if (host_) below = call("sub", {x, spread_row(most, t, "most_row")}, "below");
        return end(call("sub", {below, spread_row(call("log", {total}, "log_total"), t, "log_row")},
                        "norm"),
                   at);
      }
      case RowKind::sum:
        return end(fold(x, Fold::Kind::sum, "total"), at);
      case RowKind::mean:
        return end(mean_plus(fold(x, Fold::Kind::sum, "total"), 0, "", "mean"), at);
      case RowKind::max:
        return end(fold(x, Fold::Kind::max, "most"), at);
    }
  }

  [[nodiscard]] bool soft() const {
    return p_.kind == RowKind::softmax || p_.kind == RowKind::log_softmax;
  }
  /// The type of a row statistic: as a reduction of `t` gives it.
  [[nodiscard]] Type statistic_type(const Type& t) const {
    Spread s = spread(t);
    for (SpreadMode& m : s.threads)
      if (m.axis == axis()) m = {m.extent, -1, 0};
    std::erase_if(s.registers, [&](const SpreadMode& m) { return m.axis == axis(); });
    Type one = t;
    one.axes[axis()] = {1, {}};
    one.cover[axis()] = 1;
    one.layout = layout_of(s, one.cover);
    return one;
  }

  /// The statistics before the first chunk.
  std::vector<ValueId> first_statistics(const Type& one) {
    auto full = [&](double v, std::string_view hint) {
      return b_.one("full", {}, FullOf{one, v}, hint);
    };
    if (soft()) return {full(-inf, "most"), full(0, "total")};
    if (p_.kind == RowKind::layer_norm)
      return {full(0, "mean"), full(0, "squares"), full(0, "count")};
    return {full(p_.kind == RowKind::max ? -inf : 0, "total")};
  }

  /// Maximum and sum of exponentials so far, with one more chunk.
  std::vector<ValueId> soft_statistics(const std::vector<ValueId>& carried, ValueId x,
                                       const Type& t) {
    ValueId most =
        call("maximum", {carried[0], fold(x, Fold::Kind::max, "chunk_most")}, "most_next");
    ValueId base = map({most}, exponent_base, "base");
    ValueId e = call("exp", {call("sub", {x, spread_row(base, t, "base_row")}, "below")}, "e");
    ValueId sum = fold(e, Fold::Kind::sum, "chunk_total");
    ValueId total = map({carried[0], base, carried[1], sum}, join_exponentials, "total_next");
    return {most, total};
  }

  /// Mean and sum of squared distances so far, with one more chunk.
  std::vector<ValueId> moments(const std::vector<ValueId>& carried, ValueId x, const Type& t) {
    ValueId ones = b_.one("full", {}, FullOf{t, 1}, "ones");
    ValueId n = fold(ones, Fold::Kind::sum, "chunk_count");
    ValueId mean = exact_mean(x, t, n);
    ValueId square =
        call("square", {call("sub", {x, spread_row(mean, t, "mean_row")}, "centered")}, "square");
    ValueId m2 = fold(square, Fold::Kind::sum, "chunk_squares");
    return add_map(b_, {carried[0], carried[1], carried[2], mean, m2, n}, join_moments, "next");
  }

  /// Pass 1 folds the row chunk by chunk; pass 2 reads it again.
  void by_chunks() {
    VarId c = b_.var("c", p_.columns, c_.chunk);
    Type t = row_type(c_.chunk, c);
    load_pivot(t);
    std::vector<ValueId> carried = b_.open("steps", first_statistics(statistic_type(t)), Walk{{c}});
    ValueId x = begin(t, indices(false, c), true).at(0);
    std::vector<ValueId> next;
    if (soft()) {
      next = soft_statistics(carried, x, t);
    } else if (p_.kind == RowKind::layer_norm) {
      next = moments(carried, x, t);
    } else {
      bool max = p_.kind == RowKind::max;
      ValueId value = p_.kind == RowKind::rms_norm ? call("square", {x}, "square") : x;
      ValueId part = fold(value, max ? Fold::Kind::max : Fold::Kind::sum, "chunk_total");
      next = {call(max ? "maximum" : "add", {carried[0], part}, "total_next")};
    }
    second_pass(b_.close(next));
  }

  void second_pass(const std::vector<ValueId>& s) {
    if (reduces(p_.kind)) {
      ValueId y = p_.kind == RowKind::mean ? mean_plus(s[0], 0, "", "mean") : s[0];
      return end(y, indices(true, {}));
    }
    ValueId scale;
    if (p_.kind == RowKind::layer_norm) scale = mean_plus(s[1], p_.eps, "rsqrt", "rstd");
    if (p_.kind == RowKind::rms_norm) scale = mean_plus(s[0], p_.eps, "rsqrt", "rstd");
    if (soft()) scale = call(p_.kind == RowKind::softmax ? "reciprocal" : "log", {s[1]}, "scale");
    VarId c = b_.var("c2", p_.columns, c_.chunk);
    Type t = row_type(c_.chunk, c);
    b_.open("steps", {}, Walk{{c}});
    ValueId y = begin(t, indices(false, c), false).at(0);
    if (p_.kind != RowKind::rms_norm)
      y = call("sub", {y, spread_row(s[0], t, "shift_row")}, "shifted");
    if (p_.kind == RowKind::softmax) y = call("exp", {y}, "e");
    y = call(p_.kind == RowKind::log_softmax ? "sub" : "mul",
             {y, spread_row(scale, t, "scale_row")}, "norm");
    end(y, indices(false, c));
    b_.close();
  }

  const RowProblem& p_;
  const RowConfig& c_;
  int64_t rows_;
  bool host_;
  Program program_;
  KernelBuilder b_;
  VarId row_;
  ValueId x_, pivot_;  // of the tile at hand
  std::array<std::vector<ValueId>, 2> pivot_views_;
  std::vector<ValueId> operand_views_, stored_views_, output_views_, loaded_;
};

}  // namespace

Result<Program> rows(const RowProblem& p, const RowConfig& c, Target target) {
  int64_t threads = int64_t{c.threads_per_row} * c.rows_per_block;
  if (target == Target::cuda && (threads > 1024 || threads % 32 != 0))
    return error(
        fail(unsupported, "a block of {} threads", threads).expect("a multiple of 32 up to 1024"));
  if (reduces(p.kind) && !p.post.empty() && p.post.operand_count() > 1)
    return error(fail(unsupported, "after a row reduction only its result can be mapped"));
  return RowWriter(p, c, target).write();
}

}  // namespace tessera::tile::build
