// The results of a role of attention on their way to the output: where each goes, and what it is.
#include <algorithm>

#include "check/attend_walk.h"
#include "check/footprint.h"
#include "term/rules.h"

namespace tessera::check {

void AttendWalk::copy_out(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const core::TensorMap& map = kernel_[argument<core::MapRef>(issue, "map")->map];
  const auto* from = argument<core::SharedAt>(issue, "from");
  const auto* at = argument<core::Integers>(issue, "at");
  const core::Shared& s = kernel_[from->shared];
  if (!behind_ || size_of(s.element) != 2) {
    give_up("a copy to the output that is not followed");
    return;
  }
  last_store_ = &op;
  std::array<int64_t, 2> corner{};  // row, column
  std::array<int, 2> dim{};
  for (std::size_t m = 0; m < map.dims.size(); ++m)
    for (const bool row : {true, false}) {
      if (map.dims[m] != products_.output_place(row)) continue;
      dim[row ? 0 : 1] = static_cast<int>(m);
      Term t = term::simplify(row ? at->values[m] - products_.row_corner : at->values[m]);
      const std::optional<int64_t> off = eval(t);
      if (!off) {
        products_.is_zero(t, {&op, products_.role, {}, {}, {}, 0}, "placement",
                          "a tile is stored at another place than its queries come from",
                          "the place of the queries", "store at the queries' rows");
        failed_ = true;
        return;
      }
      corner[row ? 0 : 1] = *off;
    }
  std::vector<int64_t> place;
  if (!coordinates(*from, place)) return;
  if (!byte_of(s, place)) {
    give_up("a copy leaves its shared memory, or its place is not known");
    return;
  }
  const Swizzle swizzle = arch::swizzle_of(map.swizzle);
  const int64_t start = s.at + 2 * s.layout.at(place);
  BoxIndex i{};
  for (int64_t n = 0; n < tessera::product(IntTuple::flat(map.box)) && !failed_; ++n) {
    int64_t rest = n;
    for (std::size_t m = 0; m < map.box.size(); rest /= map.box[m++]) i[m] = rest % map.box[m];
    const auto half = static_cast<std::size_t>(swizzle(start + 2 * n) / 2);
    const Cell& cell = taken(op, warp, half);
    if (failed_) return;
    stored(op, warp, cell, corner[0] + i[static_cast<std::size_t>(dim[0])],
           corner[1] + i[static_cast<std::size_t>(dim[1])]);
  }
}

void AttendWalk::stored(const core::Op& op, int warp, Cell cell, int64_t row, int64_t column) {
  const Id value = cell.value;
  if (value == Online::none) {
    give_up(online_.why.empty() ? "what is stored is not followed" : online_.why);
    return;
  }
  const Online::Value& v = online_[value];
  const auto refuted = [&](std::string_view kind, const std::string& message,
                           const std::string& expected, const std::string& help) {
    failed_ = true;
    products_.refute(
        kind, &op, products_.role->first_warp + warp, message, expected,
        online_.text(value) + (cell.column < 0 ? "" : fmt::format(", column {}", cell.column)),
        help);
  };
  if (v.kind != Online::Kind::result)
    return refuted("placement", "an element of the output gets no mean of values",
                   "a sum of weighted values over the total of the weights",
                   "divide by the total of the weights, with all its lanes' parts");
  if (v.row != row || cell.column != column || row < 0 || row >= products_.rows || column < 0 ||
      column >= products_.columns)
    return refuted("placement", "an element of the output gets the result of another",
                   fmt::format("row {}, column {}", row, column),
                   "let the tile's place in shared memory and the coordinates of its copy agree");
  Keys all;
  for (int t = 0; t < turn_; ++t)
    for (int64_t c = 0; c < products_.keys; ++c)
      all.of[static_cast<std::size_t>(t)].set(static_cast<std::size_t>(c));
  if (online_.keys(v) != all)
    return refuted("reduction", "a result does not take in each key once",
                   fmt::format("{} keys of each of {} turns", products_.keys, turn_),
                   "let each turn take in the keys that it loads");
  if (!Online::same(v.scale, scale_))
    return refuted("placement", "scores are scaled by another number than the meaning has",
                   fmt::format("powers of 2 of {} * score", scale_),
                   fmt::format("scale scores by {}", scale_));
  if (!Online::same(v.inner, inner_))
    return refuted("placement", "scores are capped otherwise than the meaning has it",
                   inner_ > 0 ? fmt::format("tanh({} * score)", inner_) : "scores without a cap",
                   v.inner > 0 ? fmt::format("let the tanh take {} * score", inner_)
                               : "take the tanh of scaled scores before they are masked");
  if (!Online::same(v.weight, means_.adds ? means_.scale : 0))
    return refuted("placement", "a mask is added to scores that are scaled otherwise",
                   fmt::format("{} * score + mask", means_.scale),
                   fmt::format("it is {} * score + mask: scale scores as the meaning does, and "
                               "add the mask to that",
                               v.weight));
  if (v.or_zero != means_.empty_is_zero)
    return refuted("placement", "a row that sees no key gets another number than the meaning has",
                   means_.empty_is_zero ? "0" : "NaN",
                   "write `where(most == -inf, 0.0, 1.0 / sum(total, axis=1))` exactly where the "
                   "meaning has softmax(scores, j, 0)");
  ++stored_[static_cast<std::size_t>(row * products_.columns + column)];
}

bool AttendWalk::covered(int turns) {
  const auto bad = std::find_if(stored_.begin(), stored_.end(), [](int n) { return n != 1; });
  if (bad == stored_.end()) return true;
  failed_ = true;
  if (last_store_ == nullptr) return products_.give_up("placement", "no store follows the loop");
  const int64_t at = bad - stored_.begin();
  return products_.refute("placement", last_store_, products_.role->first_warp,
                          "an element of a tile is not stored exactly once", "once",
                          fmt::format("[corner + {}, {}] {} times, after {} turns",
                                      at / products_.columns, at % products_.columns, *bad, turns),
                          "let the stores of a tile cover it");
}

}  // namespace tessera::check
