// Functions of elements, C[i, j] = f(A[i, j], X[0, j]), which sum nothing: a tile is what a role's
// stores of a turn cover.
#include <algorithm>

#include "check/tile.h"
#include "term/rules.h"

namespace tessera::check {

/// Where an op of the role stores elements of the first output; nullptr for other ops.
const core::GlobalAt* Tile::stored_at(const Place& p) const {
  if (p.role != role_.role || p.op->as<core::Issue>() == nullptr ||
      !p.issue().form->name.starts_with("store"))
    return nullptr;
  const auto* at = argument<core::GlobalAt>(p.issue(), "to");
  return at != nullptr && at->tensor == means_.outputs.front().to.tensor ? at : nullptr;
}

/// The tile's corner is what the first lane of the first warp stores first.
void Tile::corners_of_functions() {
  const ElementAt& to = means_.outputs.front().to;
  const core::GlobalAt& first = *stored_at(product_);
  for (const auto& [base, axis] :
       {std::pair{row_base, Axis::row}, {column_base, Axis::column}, {batch_base, Axis::batch}})
    if (const int d = to.place(axis); d >= 0)
      bases_[static_cast<std::size_t>(base)] = first_index(product_, first, d);
  for (const auto& [op, p] : places_)
    if (const core::GlobalAt* at = stored_at(*p); at != nullptr && !stopped()) extend(*p, *at, to);
}

/// What lanes store at these rows and columns is the meaning's function there.
bool Tile::stored_function(const core::Op& op, int warp, Id value, const Elements& place,
                           const std::vector<bool>& active, int output) {
  multiplied_ = true;
  last_stores_[static_cast<std::size_t>(output)] = &op;
  last_store_.op = &op;
  const Id at = formulas_.elements(place);
  const Id meant = wanted(at, output);
  for (int lane = 0; lane < Elements::lanes && !stopped(); ++lane) {
    if (!active[static_cast<std::size_t>(lane)]) continue;
    const int64_t row = place.at[static_cast<std::size_t>(lane)];
    const int64_t column = place.at[Elements::lanes + static_cast<std::size_t>(lane)];
    if (row < 0 || row >= rows_ || column < 0 || column >= columns_) {
      why = "a store lies ahead of the corner of its tile";
      return false;
    }
    if (value != meant && formulas_.differ(value, meant, lane))
      return other_function(op, warp, lane, value, at, output);
    ++stored_[static_cast<std::size_t>(output)][static_cast<std::size_t>(row * columns_ + column)];
  }
  if (value != meant && why.empty())
    why = fmt::format("it is not known that {} is {}", text(value, 0, at), text(meant, 0, at));
  return why.empty();
}

}  // namespace tessera::check
