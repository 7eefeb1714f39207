#include "check/raster.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "check/expression.h"
#include "core/deal.h"
#include "term/evaluate.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using term::Op;

class Cover {
 public:
  Cover(const core::Kernel& kernel, const std::vector<Raster>& roles, const ElementAt& to)
      : kernel_(kernel),
        pool_(*kernel.pool),
        roles_(roles),
        r_(roles.front()),
        row_(r_.row),
        column_(r_.column) {
    m_ = extent(to, Axis::row);
    n_ = extent(to, Axis::column);
    l_ = extent(to, Axis::batch);
    cluster();
    row_tiles_ = term::floor_div(m_ + (rows_ - 1), rows_);
    column_tiles_ = term::floor_div(n_ + (columns_ - 1), columns_);
    tiles_ = row_tiles_ * column_tiles_;
    if (l_) tiles_ = l_ * tiles_;
  }

  Covering judge() {
    Covering out;
    if (static_cast<bool>(l_) != static_cast<bool>(r_.batch)) {
      out.found = "the output has a batch, and no operand, or the other way round";
      return out;
    }
    if (small(out) || !by_turns(out)) return out;
    Term t = r_.turn == nullptr ? only_tile(out) : tile_of_turn(out);
    if (!t) return out;
    if (l_) {
      const Term of_batch = row_tiles_ * column_tiles_;
      if (!same(r_.batch, pool_.must(Op::divide, {t, of_batch}))) {
        out.found = "its batches are not known to come one after the other";
        return out;
      }
      t = pool_.must(Op::remainder, {t, of_batch});
    }
    for (const auto& [row, column] : rasters(t))
      if (same(row_, row * rows_) && same(column_, column * columns_)) {
        out.verdict = Covering::Verdict::proved;
        return out;
      }
    out.found = "its order of tiles is none of those that are known to take each once";
    return out;
  }

 private:
  static bool same(Term a, Term b) { return term::simplify(a) == term::simplify(b); }

  /// The number of a turn's tile; none where `out` says why.
  Term tile_of_turn(Covering& out) const {
    core::Deal deal{tiles_, first_, step_};
    const Term turns = core::rounds_of(deal);
    deal.alternates = !same(r_.turn->upper, turns);
    if (same(r_.turn->upper, core::rounds_of(deal)) && same(r_.turn->lower, pool_.constant(0)))
      return core::item_of(deal, r_.turn->counter);
    out.found = fmt::format("the number of turns is not known to be `{}`", to_string(turns));
    return {};
  }

  Term only_tile(Covering& out) const {
    if (same(kernel_.grid, kernel_.cluster == 1 ? tiles_ : tiles_ * kernel_.cluster)) return first_;
    out.found = fmt::format("the number of blocks is not known to be that of tiles, `{}`",
                            to_string(tiles_));
    return {};
  }

  /// Each turn is one role's, and all mean the same tile by it.
  bool by_turns(Covering& out) const {
    for (std::size_t turn = 0; turn < r_.taken.size(); ++turn) {
      int64_t times = 0;
      for (const Raster& r : roles_) times += r.taken[turn] ? 1 : 0;
      if (times == 1) continue;
      out.found = fmt::format("{} roles make the tile of turn {}", times, turn);
      return false;
    }
    for (const Raster& r : roles_) {
      const bool batches = r.batch && r_.batch ? same(r.batch, r_.batch) : r.batch == r_.batch;
      const bool turns =
          r.turn == nullptr || r_.turn == nullptr
              ? r.turn == r_.turn
              : r.turn->counter == r_.turn->counter && same(r.turn->upper, r_.turn->upper);
      if (batches && turns && same(r.row, r_.row) && same(r.column, r_.column) &&
          r.rows == r_.rows && r.columns == r_.columns)
        continue;
      out.found = "two roles have tiles of different orders";
      return false;
    }
    return true;
  }

  [[nodiscard]] Term extent(const ElementAt& to, Axis axis) const {
    const int d = to.place(axis);
    return d < 0 ? Term() : kernel_[to.tensor].extents[static_cast<std::size_t>(d)];
  }

  /// Blocks of a cluster as one, with a tile that has theirs above each other or side by side.
  void cluster() {
    rows_ = r_.rows;
    columns_ = r_.columns;
    first_ = kernel_.at.block;
    step_ = kernel_.at.blocks;
    if (kernel_.cluster == 1) return;
    const Term rank = kernel_.at.rank;
    const bool above = term::any_node(row_, [&](Term n) { return n == rank; });
    Term& along = above ? row_ : column_;
    along = along - rank * (above ? rows_ : columns_);
    (above ? rows_ : columns_) *= kernel_.cluster;
    first_ = term::floor_div(kernel_.at.block, kernel_.cluster);
    step_ = pool_.must(Op::max,
                       {term::floor_div(kernel_.at.blocks, kernel_.cluster), pool_.constant(1)});
  }

  std::vector<std::pair<Term, Term>> rasters(Term t) {
    const auto divide = [&](Term a, Term b) { return pool_.must(Op::divide, {a, b}); };
    const auto rest_of = [&](Term a, Term b) { return pool_.must(Op::remainder, {a, b}); };
    std::vector<std::pair<Term, Term>> out = {{divide(t, column_tiles_), rest_of(t, column_tiles_)},
                                              {rest_of(t, row_tiles_), divide(t, row_tiles_)}};
    std::set<int64_t> bands;
    term::any_node(row_, [&](Term n) {
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
    for (const auto& [m, n, l, multiprocessors] : {std::tuple(1, 1, 1, 1),
                                                   {1, 2, 2, 1},
                                                   {2, 1, 1, 1},
                                                   {2, 2, 3, 1},
                                                   {3, 2, 2, 2},
                                                   {9, 3, 1, 4},
                                                   {11, 2, 2, 7},
                                                   {17, 5, 1, 132}})
      for (const bool whole : {true, false})
        if (launch({m, n, l, multiprocessors, whole}, out)) return true;
    return false;
  }
  struct Small {
    int64_t m, n, batches, multiprocessors;  // m and n: tiles
    bool whole;                              // the last tile of each row and column too
  };
  /// The extent of so many tiles: whole ones, or the last one as small as the parameter allows.
  static int64_t extent_of(Term parameter, int64_t tiles, int64_t tile, bool whole) {
    if (whole) return tiles * tile;
    const term::Facts& f = parameter->symbol->facts;
    const int64_t least = std::max((tiles - 1) * tile + 1, f.lower.value_or(1));
    const int64_t step = std::max<int64_t>(f.modulus, 1);
    return std::min(least + term::floor_remainder(f.residue - least, step), tiles * tile);
  }

  /// The tiles that all blocks of a launch take: batch, row and column of the corner.
  using Tiles = std::map<std::array<int64_t, 3>, int>;
  Tiles taken(term::Assignment& a, int64_t blocks) {
    const auto value = [&](Term t) { return term::evaluate(t, a).value_or(-1); };
    Tiles times;
    for (int64_t block = 0; block < blocks; ++block) {
      a.symbols["block"] = block;
      a.symbols["rank"] = block % kernel_.cluster;
      for (const Raster& r : roles_) {
        const int64_t turns = r.turn == nullptr ? 1 : value(r.turn->upper);
        for (int64_t turn = r.turn == nullptr ? 0 : value(r.turn->lower); turn < turns; ++turn) {
          if (!r.takes(turn)) continue;
          if (r.turn != nullptr) a.symbols[r.turn->counter->symbol->name] = turn;
          ++times[{l_ ? value(r.batch) : 0, value(r.row), value(r.column)}];
        }
      }
    }
    return times;
  }

  bool launch(const Small& of, Covering& out) {
    const int64_t rows = extent_of(m_, of.m, r_.rows, of.whole);
    const int64_t columns = extent_of(n_, of.n, r_.columns, of.whole);
    term::Assignment a;
    for (Term p : kernel_.parameters)
      a.symbols[p->symbol->name] = p->symbol->facts.lower.value_or(1);
    a.symbols[m_->symbol->name] = rows;
    a.symbols[n_->symbol->name] = columns;
    if (l_ && l_->op == Op::parameter) a.symbols[l_->symbol->name] = of.batches;
    a.symbols[kernel_.at.multiprocessors->symbol->name] = of.multiprocessors;
    const int64_t blocks = term::evaluate(kernel_.grid, a).value_or(-1);
    if (blocks < 1) return false;
    a.symbols["blocks"] = blocks;
    Tiles times = taken(a, blocks);
    const int64_t all = l_ ? term::evaluate(l_, a).value_or(1) : 1;
    for (int64_t b = 0; b < all; ++b)
      for (int64_t i = 0; i < of.m; ++i)
        for (int64_t j = 0; j < of.n; ++j) {
          const int count = times[{b, i * r_.rows, j * r_.columns}];
          if (count == 1) continue;
          out.verdict = Covering::Verdict::refuted;
          out.message = count == 0 ? "a tile of the output is written by no block"
                                   : "a tile of the output is written twice";
          out.found = fmt::format("the tile at [{}{}, {}] {} times, at {} = {}, {} = {}, {} blocks",
                                  l_ ? fmt::format("{}, ", b) : "", i * r_.rows, j * r_.columns,
                                  count, m_->symbol->name, rows, n_->symbol->name, columns, blocks);
          return true;
        }
    return false;
  }

  const core::Kernel& kernel_;
  term::Pool& pool_;
  const std::vector<Raster>& roles_;
  const Raster& r_;                 // of the first one
  Term row_, column_;               // of the cluster's tile
  int64_t rows_ = 0, columns_ = 0;  // of it
  Term first_, step_;               // its number, and how many there are
  Term m_, n_, l_, row_tiles_, column_tiles_, tiles_;
};

}  // namespace

bool Raster::takes(int64_t turn) const {
  const auto all = static_cast<int64_t>(taken.size());
  return taken[static_cast<std::size_t>(turn < all ? turn
                                                   : steady + (turn - steady) % (all - steady))];
}

Covering covering(const core::Kernel& kernel, const std::vector<Raster>& roles,
                  const ElementAt& to) {
  return Cover(kernel, roles, to).judge();
}

}  // namespace tessera::check
