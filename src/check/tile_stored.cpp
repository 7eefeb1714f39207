// What a tile's stores leave in the output, against the meaning.
#include <algorithm>

#include "check/launch.h"
#include "check/tile.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

std::string from(std::string_view name, int64_t off) {
  return off == 0  ? std::string(name)
         : off < 0 ? fmt::format("{} - {}", name, -off)
                   : fmt::format("{} + {}", name, off);
}

}  // namespace

bool Tile::refute(const core::Op& op, int warp, std::string lanes, std::string message,
                  std::string expected, std::string found, std::string help) {
  Violation v;
  v.kind = "placement";
  v.op = &op;
  v.warp = role_.first_warp + warp;
  v.lanes = std::move(lanes);
  v.message = std::move(message);
  v.expected = std::move(expected);
  v.found = std::move(found);
  v.help = std::move(help);
  violations.push_back(std::move(v));
  return false;
}

int Tile::output_of(core::TensorId tensor) const {
  for (std::size_t i = 0; i < means_.outputs.size(); ++i)
    if (means_.outputs[i].to.tensor == tensor) return static_cast<int>(i);
  return -1;
}

Tile::Base Tile::base_of(Axis axis) {
  return axis == Axis::row      ? row_base
         : axis == Axis::column ? column_base
         : axis == Axis::batch  ? batch_base
                                : absolute;
}

/// Corners that are numbers, or a number from another, are no bases of their own: loads take the
/// first base that an index can be counted from.
void Tile::count_bases() {
  for (int b = absolute; b < bases; ++b) {
    counted_.emplace_back(b, 0);
    for (int other = absolute; other < b && bases_[static_cast<std::size_t>(b)]; ++other) {
      const Term from = bases_[static_cast<std::size_t>(other)];
      const auto apart =
          from ? value_of(bases_[static_cast<std::size_t>(b)] - from, {}) : std::nullopt;
      if (!apart) continue;
      counted_.back() = {other, *apart};
      break;
    }
  }
}

/// By how much an index of a store is off the tile's corner, for all sizes; of a number, off it.
bool Tile::corner(const core::Op& op, int warp, const Index& index, Term at, int64_t& off) {
  const Base base = base_of(index.axis);
  if (!bases_[base]) {
    why = "the output has a batch, and no operand";
    return false;
  }
  const Term t = term::simplify(at - bases_[base] - index.number);
  off = eval(t);
  if (why.empty()) return true;
  Known known;
  for (Term s : term::symbols_of({t}))
    if (const int64_t v = value_of_symbol(s); v >= 0) known.emplace(s.node(), v);
  if (const auto found = varies(kernel_, loops(), t, known)) {
    why.clear();
    return refute(op, warp, "the elected lane",
                  "a tile is stored at another place than its operands come from",
                  "the store's corner is off the operands' by one number", "off by " + *found,
                  "store at the row of A's tile and the column of B's");
  }
  return false;
}

/// Of an index that is neither row nor column.
bool Tile::at_batch(const core::Op& op, int warp, const Index& index, int64_t off) {
  if (index.axis == Axis::row || index.axis == Axis::column || off == 0) return true;
  return refute(op, warp, "all lanes",
                "a tile is stored at another place than its operands come from",
                index.axis == Axis::batch ? "the batch of the operands"
                                          : fmt::format("the index {}", index.number),
                fmt::format("off by {}", off), "store to the batch that the operands are of");
}

/// The sum of this row and column of which the value is a function; none: it is of no such.
Tile::Id Tile::sum_at(Id value, int lane, int64_t row, int64_t column) {
  for (Id sum : formulas_.sums_of(value)) {
    const std::vector<int64_t>& at = formulas_.elements_of(sum).at;
    if (at[static_cast<std::size_t>(lane)] == row &&
        at[static_cast<std::size_t>(int64_t{Elements::lanes} + lane)] == column)
      return sum;
  }
  return Formulas::none;
}

/// The meaning's function at the row and the column of this sum; none where `why` says so.
Tile::Id Tile::wanted(Id sum, int output) {
  const auto [place, is_new] = wanted_.try_emplace({sum, output}, Formulas::none);
  if (!is_new) return place->second;
  const Elements of = formulas_.elements_of(sum);
  const Case* which = case_of(of, output);
  if (which == nullptr) return Formulas::none;
  std::vector<Id> operands;
  for (const Read& r : which->reads) {
    const ElementAt& e = r.element;
    Elements leaf{e.tensor.index, {}, {}};
    if (r.factor >= 0) {
      leaf = {Elements::of_sum, of.bases, of.at, r.factor};
      const int64_t moved =
          e.at[static_cast<std::size_t>(e.place(Axis::column))].number - means_.column_shift();
      for (std::size_t lane = 0; lane < Elements::lanes; ++lane)
        leaf.at[Elements::lanes + lane] += moved;
    }
    for (std::size_t d = 0; r.factor < 0 && d < e.at.size(); ++d) {
      leaf.bases.push_back(absolute);
      for (std::size_t lane = 0; lane < Elements::lanes; ++lane) {
        const auto at = placed(e.at[d], of.at[lane], of.at[Elements::lanes + lane]);
        if (!at) return Formulas::none;
        leaf.bases.back() = at->first;
        leaf.at.push_back(at->second);
      }
    }
    operands.push_back(formulas_.elements(std::move(leaf)));
  }
  return wanted_[{sum, output}] = formulas_.results(which->value, operands).front();
}

/// With i and j for the row and the column of the sum.
std::string Tile::text(Id f, int lane, Id sum) {
  Elements of;
  if (sum != Formulas::none) of = formulas_.elements_of(sum);
  of.at.resize(std::size_t{2} * Elements::lanes);
  return formulas_.text(f, [&](const Elements& e) {
    const auto at = static_cast<std::size_t>(lane);
    std::string out = e.tensor == Elements::of_sum        ? "sum"
                      : e.tensor == Elements::of_last_sum ? "last_sum"
                      : e.tensor == Elements::of_before
                          ? "before"
                          : kernel_.tensors[static_cast<std::size_t>(e.tensor)].name;
    if (e.tensor == Elements::of_before) return out;
    if (e.tensor < 0 && means_.b.size() > 1)
      out += "_" + kernel_[means_.b[static_cast<std::size_t>(e.factor)].tensor].name;
    for (std::size_t d = 0; d < e.bases.size(); ++d) {
      const int64_t index = e.at[d * Elements::lanes + at];
      out += d == 0 ? "[" : ", ";
      out += e.bases[d] == absolute      ? std::to_string(index)
             : e.bases[d] == row_base    ? from("i", index - of.at[at])
             : e.bases[d] == column_base ? from("j", index - of.at[Elements::lanes + at])
             : e.bases[d] == batch_base
                 ? from("b", index)
                 : from(to_string(bases_[static_cast<std::size_t>(e.bases[d])]), index);
    }
    return out + "]";
  });
}

/// Elements that are counted from different corners may be the same ones in every launch; then
/// nothing is refuted by their difference.
bool Tile::may_be_same(Id value, Id wanted) {
  for (Id x : formulas_.leaves(value))
    for (Id y : formulas_.leaves(wanted)) {
      const Elements &a = formulas_.elements_of(x), &b = formulas_.elements_of(y);
      for (std::size_t d = 0; a.tensor == b.tensor && d < a.bases.size(); ++d)
        if (a.bases[d] != b.bases[d] && !varies(kernel_, loops(),
                                                bases_[static_cast<std::size_t>(a.bases[d])] -
                                                    bases_[static_cast<std::size_t>(b.bases[d])]))
          return true;
    }
  return false;
}

/// What accumulators have that begin anew on the way is the whole sum where they never do.
bool Tile::may_be_whole(Id value) {
  const bool some = std::any_of(sums_of_role_.begin(), sums_of_role_.end(),
                                [](const Sums& s) { return s.to != nullptr && !s.to->happens; });
  for (Id x : some ? formulas_.leaves(value) : std::vector<Id>())
    if (formulas_.elements_of(x).tensor == Elements::of_last_sum)
      why = "no launch was found in which the sum is made of several";
  return !why.empty();
}

bool Tile::other_function(const core::Op& op, int warp, int lane, Id value, Id sum, int output) {
  const Id meant = wanted(sum, output);
  const ElementAt& to = means_.outputs[static_cast<std::size_t>(output)].to;
  std::string name = kernel_[to.tensor].name;
  for (std::size_t d = 0; d < to.at.size(); ++d) {
    const Index& i = to.at[d];
    name += d == 0 ? "[" : ", ";
    name += i.axis == Axis::row      ? "i"
            : i.axis == Axis::column ? "j"
            : i.axis == Axis::batch  ? "b"
                                     : std::to_string(i.number);
  }
  if (may_be_whole(value)) return false;
  // A lane may have the right elements where another one of the register has not.
  for (int other = 0; other < Elements::lanes && !formulas_.differ(value, meant, lane); ++other)
    if (formulas_.differ(value, meant, other)) lane = other;
  if (!formulas_.differ(value, meant, lane) || may_be_same(value, meant)) {
    why = fmt::format("it is not known that {} is {}", text(value, lane, sum),
                      text(meant, lane, sum));
    return false;
  }
  return refute(op, warp, fmt::format("lane {}", lane),
                "an element of the output gets another function than the meaning has",
                fmt::format("{}] = {}", name, text(meant, lane, sum)), text(value, lane, sum),
                "let functions and the indices of their elements be those of the meaning");
}

bool Tile::stored(const core::Op& op, int warp, int lane, Id value, int64_t row, int64_t column,
                  int output) {
  if (!means_.sums()) {
    why = "elements that are no sums are followed where they leave from registers alone";
    return false;
  }
  last_stores_[static_cast<std::size_t>(output)] = &op;
  last_store_.op = &op;
  const std::vector<Id>& sums = formulas_.sums_of(value);
  const std::string& name =
      kernel_[means_.outputs[static_cast<std::size_t>(output)].to.tensor].name;
  if (sums.empty() && may_be_whole(value)) return false;
  const Id sum = sum_at(value, lane, row, column);
  if (sum == Formulas::none || row < 0 || row >= rows_ || column < 0 || column >= columns_) {
    std::string found = "a place that holds no sum";
    if (!sums.empty()) {
      const std::vector<int64_t>& at = formulas_.elements_of(sums.front()).at;
      found = fmt::format("that of row {} of A and row {} of B", at[static_cast<std::size_t>(lane)],
                          at[static_cast<std::size_t>(int64_t{Elements::lanes} + lane)]);
    }
    return refute(
        op, warp, "the elected lane", "an element of the output gets the sum of another",
        fmt::format("{}[corner + {}, corner + {}] has the sum of row {} of A and row {} of B", name,
                    row, column, row, column),
        std::move(found),
        "let the tile's place in shared memory and the coordinates of its copy agree");
  }
  const Id meant = wanted(sum, output);
  if (!why.empty()) return false;
  if (value != meant) return other_function(op, warp, lane, value, sum, output);
  ++stored_[static_cast<std::size_t>(output)][static_cast<std::size_t>(row * columns_ + column)];
  return true;
}

void Tile::covered() {
  for (std::size_t o = 0; o < stored_.size() && !stopped(); ++o) {
    const std::string& name = kernel_[means_.outputs[o].to.tensor].name;
    if (last_stores_[o] == nullptr) {
      why = fmt::format("no store of `{}` follows the products", name);
      return;
    }
    const auto bad =
        std::find_if(stored_[o].begin(), stored_[o].end(), [](int n) { return n != 1; });
    if (bad == stored_[o].end()) continue;
    const int64_t at = bad - stored_[o].begin();
    refute(*last_stores_[o], 0, "the elected lane",
           "an element of a tile is not stored exactly once", "once",
           fmt::format("[corner + {}, corner + {}] {} times", at / columns_, at % columns_, *bad),
           "let the stores of a tile cover it");
  }
}

/// A turn without products stores nothing.
void Tile::left_out() {
  for (const std::vector<int>& times : stored_)
    if (std::any_of(times.begin(), times.end(), [](int n) { return n != 0; }))
      why = "a turn without products stores to the output";
}

}  // namespace tessera::check
