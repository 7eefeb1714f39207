#include "check/raster.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/expression.h"
#include "term/evaluate.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using term::Op;

class Cover {
 public:
  Cover(const core::Kernel& kernel, const Raster& r, const Means& m)
      : kernel_(kernel), pool_(*kernel.pool), r_(r) {
    const core::Tensor& c = kernel[m.c];
    m_ = c.extents[static_cast<std::size_t>(m.c_i)];
    n_ = c.extents[static_cast<std::size_t>(m.c_j)];
    row_tiles_ = term::floor_div(m_ + (r.rows - 1), r.rows);
    column_tiles_ = term::floor_div(n_ + (r.columns - 1), r.columns);
    tiles_ = row_tiles_ * column_tiles_;
  }

  Covering judge() {
    Covering out;
    if (small(out)) return out;
    const auto same = [](Term a, Term b) { return term::simplify(a) == term::simplify(b); };
    const Term turns = pool_.must(
        Op::divide, {tiles_ - kernel_.at.block + kernel_.at.blocks - 1, kernel_.at.blocks});
    if (!same(r_.turn->upper - r_.turn->lower, turns)) {
      out.found = fmt::format("the number of turns is not known to be `{}`", to_string(turns));
      return out;
    }
    const Term t = kernel_.at.block + r_.turn->counter * kernel_.at.blocks;
    for (const auto& [row, column] : rasters(t))
      if (same(r_.row, row * r_.rows) && same(r_.column, column * r_.columns)) {
        out.verdict = Covering::Verdict::proved;
        return out;
      }
    out.found = "its order of tiles is none of those that are known to take each once";
    return out;
  }

 private:
  std::vector<std::pair<Term, Term>> rasters(Term t) {
    const auto divide = [&](Term a, Term b) { return pool_.must(Op::divide, {a, b}); };
    const auto rest_of = [&](Term a, Term b) { return pool_.must(Op::remainder, {a, b}); };
    std::vector<std::pair<Term, Term>> out = {{divide(t, column_tiles_), rest_of(t, column_tiles_)},
                                              {rest_of(t, row_tiles_), divide(t, row_tiles_)}};
    std::set<int64_t> bands;
    term::any_node(r_.row, [&](Term n) {
      if (n->op == Op::constant && n->value > 0 && n->value <= 1024) bands.insert(n->value);
      return false;
    });
    for (int64_t band : bands) {
      const Term first = divide(t, column_tiles_ * band) * band;
      const Term rest = rest_of(t, column_tiles_ * band);
      const Term rows = pool_.must(
          Op::max,
          {pool_.constant(1), pool_.must(Op::min, {row_tiles_ - first, pool_.constant(band)})});
      out.emplace_back(first + rest_of(rest, rows), divide(rest, rows));
    }
    return out;
  }

  /// True where some small launch takes a tile twice, or leaves one out.
  bool small(Covering& out) {
    if (m_->op != Op::parameter || n_->op != Op::parameter) return false;
    for (const auto& [m, n, multiprocessors] : {std::tuple(1, 1, 1),
                                                {1, 2, 1},
                                                {2, 1, 1},
                                                {2, 2, 1},
                                                {3, 2, 2},
                                                {9, 3, 4},
                                                {11, 2, 7},
                                                {17, 5, 132}})
      if (launch(m, n, multiprocessors, out)) return true;
    return false;
  }

  bool launch(int64_t m, int64_t n, int64_t multiprocessors, Covering& out) {
    term::Assignment a;
    for (Term p : kernel_.parameters)
      a.symbols[p->symbol->name] = p->symbol->facts.lower.value_or(1);
    a.symbols[m_->symbol->name] = m * r_.rows;
    a.symbols[n_->symbol->name] = n * r_.columns;
    a.symbols[kernel_.at.multiprocessors->symbol->name] = multiprocessors;
    const auto value = [&](Term t) { return term::evaluate(t, a).value_or(-1); };
    const int64_t blocks = value(kernel_.grid);
    if (blocks < 1) return false;
    a.symbols["blocks"] = blocks;
    std::map<std::pair<int64_t, int64_t>, int> times;
    for (int64_t block = 0; block < blocks; ++block) {
      a.symbols["block"] = block;
      const int64_t turns = value(r_.turn->upper);
      for (int64_t turn = value(r_.turn->lower); turn < turns; ++turn) {
        a.symbols[r_.turn->counter->symbol->name] = turn;
        ++times[{value(r_.row), value(r_.column)}];
      }
    }
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const int count = times[{i * r_.rows, j * r_.columns}];
        if (count == 1) continue;
        out.verdict = Covering::Verdict::refuted;
        out.message = count == 0 ? "a tile of the output is written by no block"
                                 : "a tile of the output is written twice";
        out.found = fmt::format("the tile at [{}, {}] {} times, at {} = {}, {} = {}, {} blocks",
                                i * r_.rows, j * r_.columns, count, m_->symbol->name, m * r_.rows,
                                n_->symbol->name, n * r_.columns, blocks);
        return true;
      }
    return false;
  }

  const core::Kernel& kernel_;
  term::Pool& pool_;
  const Raster& r_;
  Term m_, n_, row_tiles_, column_tiles_, tiles_;
};

}  // namespace

Covering covering(const core::Kernel& kernel, const Raster& raster, const Means& means) {
  return Cover(kernel, raster, means).judge();
}

}  // namespace tessera::check
