#include "check/attend_tiles.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/deal.h"
#include "term/evaluate.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

class Tiles {
 public:
  Tiles(const core::Kernel& kernel, AttendProducts& products, const Attention& means)
      : kernel_(kernel), products_(products), output_(kernel[means.o.tensor]) {
    for (std::size_t d = 0; d < products.batches.size(); ++d)
      if (products.batches[d]) batches_.push_back(d);
    rows_ = output_.extents[static_cast<std::size_t>(products.output_place(true))];
    tiles_ = term::floor_div(rows_ + (products.rows - 1), products.rows);
  }

  void judge() {
    if (kernel_.cluster != 1) {
      products_.give_up("output_once", "tiles of attention in clusters");
      return;
    }
    std::vector<std::size_t> order = batches_;
    do {
      if (products_.tiles == nullptr ? in_order(order) : in_turns(order)) return;
    } while (std::next_permutation(order.begin(), order.end()));
    if (!small())
      products_.give_up("output_once",
                        "its order of tiles is none of those that are known to take each once");
  }

 private:
  static bool same(Term a, Term b) { return term::simplify(a) == term::simplify(b); }
  [[nodiscard]] Term extent(std::size_t d) const { return output_.extents[d]; }

  [[nodiscard]] bool in_order(const std::vector<std::size_t>& order) const {
    Term rest = kernel_.at.block, all = tiles_;
    for (std::size_t d : order) all = all * extent(d);
    if (!same(kernel_.grid, all)) return false;
    for (std::size_t n = 0; n < order.size(); ++n) {
      Term inner = tiles_;
      for (std::size_t m = order.size(); m-- > n + 1;) inner = extent(order[m]) * inner;
      if (!same(products_.batches[order[n]], term::floor_div(rest, inner))) return false;
      rest = term::floor_mod(rest, inner);
    }
    return same(products_.row_corner, rest * products_.rows) ||
           same(products_.row_corner, (tiles_ - 1 - rest) * products_.rows);
  }

  /// Turns take the items of a deal, and item t is a tile: t // (n * tiles) tells n batches (the
  /// last ones may be fewer), the rest of t which of these, and which of the batch's tiles.
  [[nodiscard]] bool in_turns(const std::vector<std::size_t>& order) const {
    Term pairs = kernel_.pool->constant(1);
    for (std::size_t d : order) pairs = pairs * extent(d);
    for (const bool alternates : {false, true}) {
      const core::Deal deal{pairs * tiles_, kernel_.at.block, kernel_.at.blocks, alternates};
      if (!same(products_.tiles->upper, core::rounds_of(deal))) continue;
      const Term t = core::item_of(deal, products_.tiles->counter);
      for (int64_t section : constants())
        if (in_sections(order, pairs, t, section)) return true;
    }
    return false;
  }

  /// Numbers that may be how many batches a section has.
  [[nodiscard]] std::vector<int64_t> constants() const {
    std::set<int64_t> out;
    for (std::size_t d : batches_)
      term::any_node(products_.batches[d], [&](Term n) {
        if (n->op == term::Op::constant && n->value > 0 && n->value <= 1024) out.insert(n->value);
        return false;
      });
    return {out.begin(), out.end()};
  }

  [[nodiscard]] bool in_sections(const std::vector<std::size_t>& order, Term pairs, Term t,
                                 int64_t section) const {
    term::Pool& pool = *kernel_.pool;
    const auto make = [&](term::Op op, Term a, Term b) { return pool.must(op, {a, b}); };
    const Term first = make(term::Op::divide, t, tiles_ * section) * section,
               rest = make(term::Op::remainder, t, tiles_ * section),
               most = make(term::Op::min, pairs - first, pool.constant(section)),
               here = make(term::Op::max, pool.constant(1), most),
               pair = first + make(term::Op::remainder, rest, here),
               m = make(term::Op::divide, rest, here);
    Term of_pair = pair;
    for (std::size_t n = 0; n < order.size(); ++n) {
      Term inner = pool.constant(1);
      for (std::size_t k = n + 1; k < order.size(); ++k) inner = inner * extent(order[k]);
      if (!same(products_.batches[order[n]], make(term::Op::divide, of_pair, inner))) return false;
      if (n + 1 < order.size()) of_pair = make(term::Op::remainder, of_pair, inner);
    }
    return in_either_order(m, pair, pairs, section);
  }

  /// The rows of tile m: up, or down, or by turns from section to section.
  [[nodiscard]] bool in_either_order(Term m, Term pair, Term pairs, int64_t section) const {
    term::Pool& pool = *kernel_.pool;
    const auto over = [&](Term n) {
      return pool.must(term::Op::divide, {n, pool.constant(section)});
    };
    const Term down = tiles_ - 1 - m,
               even =
                   term::equals(term::floor_mod(over(pairs - 1) - over(pair), 2), pool.constant(0));
    const Term orders[] = {m, down, pool.must(term::Op::select, {even, down, m}),
                           pool.must(term::Op::select, {even, m, down})};
    return std::any_of(std::begin(orders), std::end(orders), [&](Term tile) {
      return same(products_.row_corner, tile * products_.rows);
    });
  }

  /// True where some small launch takes a tile twice, or leaves one out.
  bool small() {
    for (const auto& [tiles, others] :
         {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {1, 2}, {3, 2}, {2, 3}, {5, 2}})
      if (launch(tiles, others)) return true;
    return false;
  }

  bool launch(int64_t tiles, int64_t others) {
    term::Assignment a;
    for (Term p : kernel_.parameters)
      a.symbols[p->symbol->name] = p->symbol->facts.lower.value_or(1);
    if (rows_->op != term::Op::parameter) return false;
    a.symbols[rows_->symbol->name] = tiles * products_.rows;
    int64_t more = others;
    for (std::size_t d : batches_) {
      if (extent(d)->op != term::Op::parameter) return false;
      a.symbols[extent(d)->symbol->name] = more++;
    }
    a.symbols[kernel_.at.multiprocessors->symbol->name] = products_.tiles == nullptr ? 132 : 4;
    const int64_t blocks = term::evaluate(kernel_.grid, a).value_or(-1);
    if (blocks < 1 || blocks > 4096) return false;
    a.symbols["blocks"] = blocks;
    std::map<std::vector<int64_t>, int> taken;
    for (int64_t block = 0; block < blocks; ++block) {
      a.symbols["block"] = block;
      const core::For* turns = products_.tiles;
      const int64_t all = turns == nullptr ? 1 : term::evaluate(turns->upper, a).value_or(0);
      for (int64_t turn = 0; turn < all; ++turn) {
        if (turns != nullptr) a.symbols[turns->counter->symbol->name] = turn;
        std::vector<int64_t> tile = {term::evaluate(products_.row_corner, a).value_or(-1)};
        for (std::size_t d : batches_)
          tile.push_back(term::evaluate(products_.batches[d], a).value_or(-1));
        ++taken[tile];
      }
    }
    int64_t expected = tiles;
    for (std::size_t d : batches_) expected *= term::evaluate(extent(d), a).value_or(1);
    for (const auto& [tile, times] : taken) {
      bool inside =
          tile[0] >= 0 && tile[0] < tiles * products_.rows && tile[0] % products_.rows == 0;
      for (std::size_t n = 0; n < batches_.size(); ++n)
        inside = inside && tile[n + 1] >= 0 &&
                 tile[n + 1] < term::evaluate(extent(batches_[n]), a).value_or(1);
      if (!inside || times != 1)
        return tell(fmt::format("the tile at row {} {}, {} tiles of {} batches, {} blocks", tile[0],
                                inside ? fmt::format("{} times", times) : "lies beyond the output",
                                tiles, expected / tiles, blocks));
    }
    return static_cast<int64_t>(taken.size()) != expected &&
           tell(fmt::format("{} of {} tiles", taken.size(), expected));
  }

  bool tell(const std::string& found) {
    for (const Place& p : products_.places())
      if (p.op->as<core::Issue>() != nullptr && p.issue().form->name.starts_with("tma.store"))
        products_.refute("output_once", p.op, products_.role->first_warp,
                         "blocks do not take each tile of the output once",
                         "each tile of each batch by one block", found,
                         "let the block's number count tiles, then heads, then batches");
    return true;
  }

  const core::Kernel& kernel_;
  AttendProducts& products_;
  const core::Tensor& output_;
  std::vector<std::size_t> batches_;  // dimensions of the output
  Term rows_, tiles_;
};

}  // namespace

void tiles_once(const core::Kernel& kernel, AttendProducts& products, const Attention& means) {
  Tiles(kernel, products, means).judge();
}

}  // namespace tessera::check
