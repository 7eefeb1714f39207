// Parts of the columns that have functions of their own, and remainders of rows and columns.
//
// A part begins and ends at a number of the meaning, or of a condition of the kernel. Where tiles
// are as wide as fits between these numbers, a tile lies in one part. So it is walked once for
// each, with its corner anywhere in the part, and conditions on the corner are decided by that.
#include <algorithm>
#include <set>

#include "check/tile.h"
#include "term/facts.h"
#include "term/rules.h"

namespace tessera::check {

/// The number that a corner has as its remainder, for all tiles.
std::optional<int64_t> Tile::remainder(Base base, int64_t modulus) const {
  const Term corner = bases_[static_cast<std::size_t>(base)];
  if (!corner) return std::nullopt;
  if (const auto number = value_of(corner, {})) return term::floor_remainder(*number, modulus);
  if (corner->facts.multiple_of(modulus)) return 0;
  return std::nullopt;
}

/// Remainders of corners that differ from tile to tile, and count on through a tile.
void Tile::find_remainders() {
  for (const Output& o : means_.outputs)
    for (const Case& p : o.cases)
      for (const Read& r : p.reads)
        for (const Index& i : r.element.at) {
          const Base base = base_of(i.axis);
          const int64_t size = i.axis == Axis::row ? rows_ : columns_;
          if (i.modulus == 0 || remainder(base, i.modulus) || i.modulus % size != 0 ||
              remainder(base, size) != 0 || remainders_.contains({base, i.modulus}))
            continue;
          const Term corner = bases_[static_cast<std::size_t>(base)];
          remainders_[{base, i.modulus}] = static_cast<int>(bases_.size());
          bases_.push_back(term::simplify(term::floor_mod(corner, i.modulus)));
        }
}

/// An index of the meaning at a place of the tile: from which base, and how far.
std::optional<std::pair<int, int64_t>> Tile::placed(const Index& index, int64_t row,
                                                    int64_t column) {
  const Base base = base_of(index.axis);
  const int64_t in_tile = index.axis == Axis::row ? row : index.axis == Axis::column ? column : 0;
  const int64_t at = in_tile + index.number;
  if (index.modulus == 0) {
    const auto& [from, more] = counted_[static_cast<std::size_t>(base)];
    return std::pair(from, at + more);
  }
  if (const auto corner = remainder(base, index.modulus))
    return std::pair<int, int64_t>(absolute, term::floor_remainder(*corner + at, index.modulus));
  const auto known = remainders_.find({base, index.modulus});
  if (known != remainders_.end() && index.number == 0) return std::pair(known->second, at);
  why = fmt::format("the remainder by {} that a tile begins with is not known", index.modulus);
  return std::nullopt;
}

void Tile::find_parts() {
  std::set<int64_t> bounds = splits_;
  for (const Output& o : means_.outputs)
    for (const Case& p : o.cases)
      for (const ColumnBound& c : p.where)
        if (c.index.modulus == 0 && c.below > c.index.number)
          bounds.insert(c.below - c.index.number);
  parts_.clear();
  int64_t first = 0;
  for (const int64_t bound : bounds) {
    if (bound % columns_ != 0 || remainder(column_base, columns_) != 0)
      why = fmt::format("a tile of {} columns may lie on both sides of column {}", columns_, bound);
    parts_.push_back({std::exchange(first, bound), bound});
  }
  parts_.push_back({first, -1});
}

/// Whether the tile's corner, which is a multiple of its width, lies below. Where that differs in
/// the part, it is walked again in two.
bool Tile::corner_below(int64_t bound) {
  if (part_.first >= bound) return false;
  if (part_.end >= 0 && part_.end - columns_ < bound) return true;
  splits_.insert((bound + columns_ - 1) / columns_ * columns_);
  split_ = true;
  return false;
}

void Tile::walk_parts() {
  find_parts();
  for (const Part& part : parts_) {
    part_ = part;
    wanted_.clear();
    taken_.clear();
    // Places in shared memory and conditions repeat with the period; corners are compared for all
    // turns at once.
    for (turn_number_ = 0; turn_number_ < (by_turn_ ? turns_ : 1) && !stopped(); ++turn_number_) {
      turn();
      taken_.push_back(multiplied_);
    }
  }
}

bool Tile::holds(const ColumnBound& c, int64_t column) {
  if (c.index.modulus == 0) return corner_below(c.below - c.index.number) == c.holds;
  const auto at = placed(c.index, 0, column);
  if (at && at->first != absolute && why.empty())
    why = "a condition is on a remainder that is no number";
  return at && (at->second < c.below) == c.holds;
}

/// The function that the meaning has for all lanes of this sum.
const Case* Tile::case_of(const Elements& sum, int output) {
  const Output& o = means_.outputs[static_cast<std::size_t>(output)];
  const Case* out = nullptr;
  for (std::size_t lane = 0; lane < Elements::lanes; ++lane) {
    const int64_t column = sum.at[Elements::lanes + lane];
    const auto which = std::find_if(o.cases.begin(), o.cases.end(), [&](const Case& p) {
      return std::all_of(p.where.begin(), p.where.end(),
                         [&](const ColumnBound& c) { return holds(c, column); });
    });
    if (!why.empty()) return nullptr;
    const Case* here = which == o.cases.end() ? nullptr : &*which;
    if (here == nullptr || (out != nullptr && here != out)) {
      why = "lanes of a register are of different parts of the columns";
      return nullptr;
    }
    out = here;
  }
  return out;
}

/// The value of a term that depends on nothing but what is known where the walk is.
std::optional<int64_t> Tile::known(Term t) {
  const Term simple = term::simplify(t);
  const std::vector<Term> symbols = term::symbols_of({simple});
  const bool all = std::all_of(symbols.begin(), symbols.end(), [&](Term s) {
    const auto i = static_cast<std::size_t>(s->symbol->index);
    return i < values_.size() && values_[i] >= 0;
  });
  return all ? compiled(simple)(values_) : std::nullopt;
}

/// Of a comparison of the corner's column with a number, which all tiles of the part answer alike.
// NOLINTNEXTLINE(misc-no-recursion): predicates nest
std::optional<bool> Tile::about_columns(Term condition) {
  using term::Op;
  const Op op = condition->op;
  if (op == Op::logical_not) {
    const auto inner = about_columns(condition->args[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (op == Op::logical_and || op == Op::logical_or) {
    const auto x = about_columns(condition->args[0]), y = about_columns(condition->args[1]);
    if (!x || !y) return std::nullopt;
    return op == Op::logical_and ? *x && *y : *x || *y;
  }
  if (op != Op::less && op != Op::less_equal) return std::nullopt;
  const Term corner = bases_[column_base], apart = condition->args[1] - condition->args[0];
  const int64_t equal = op == Op::less_equal ? 1 : 0;
  for (const int64_t scale : {int64_t{1}, columns_}) {
    if (const auto bound = known(apart * scale + corner)) return corner_below(*bound + equal);
    if (const auto bound = known(apart * scale - corner)) return !corner_below(1 - equal - *bound);
  }
  return std::nullopt;
}

int64_t Tile::condition(Term t) {
  if (const auto known = about_columns(t)) return *known ? 1 : 0;
  return in_turn(t);
}

}  // namespace tessera::check
