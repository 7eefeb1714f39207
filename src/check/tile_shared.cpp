// One tile of the output on its way through shared memory: what threads store there, and what is
// copied from there to the output.
#include "arch/ldmatrix.h"
#include "arch/shared_tile.h"

#include "check/footprint.h"
#include "check/tile.h"

namespace tessera::check {
namespace {

/// Bytes of an element that is followed through shared memory.
bool followed(int64_t size) {
  return size == 2 || size == 4;
}

}  // namespace

/// Warps are walked one after the other, which is not the order in which they run: a place is one
/// warp's in a turn.
void Tile::hold(int64_t byte, int64_t size, Id value, int lane, int warp) {
  const auto half = static_cast<std::size_t>(byte / 2);
  const auto halves = static_cast<int>(size / 2);
  if (byte < 0 || half + static_cast<std::size_t>(halves) > shared_.size()) {
    if (why.empty()) why = "a store leaves its shared memory";
    return;
  }
  for (int n = 0; n < halves; ++n) {
    Held& h = shared_[half + static_cast<std::size_t>(n)];
    if (h.warp >= 0 && h.warp != warp && why.empty())
      why = "two warps store to one place of shared memory in a turn";
    h = {value, lane, n, halves, warp};
  }
}

/// The element at a byte; none where no store left all of it there.
Tile::Held Tile::held(int64_t byte, int64_t size) const {
  const auto half = static_cast<std::size_t>(byte / 2);
  const auto halves = static_cast<int>(size / 2);
  for (int n = 0; n < halves; ++n) {
    const std::size_t at = half + static_cast<std::size_t>(n);
    if (at >= shared_.size()) return {};
    const Held& h = shared_[at];
    const Held& first = shared_[half];
    if (h.half != n || h.halves != halves || h.value != first.value || h.lane != first.lane)
      return {};
  }
  return shared_[half];
}

void Tile::matrices(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* to = argument<core::SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  if (size_of(kernel_[from->registers].element) != 2) {
    why = "stmatrix moves elements that have not 16 bits";
    return;
  }
  arch::MatrixMove move{
      .matrices = 1, .transposed = issue.form->name.ends_with(".trans"), .stores = true};
  for (const auto& [name, value] : issue.choices)
    if (name == "matrices") move.matrices = std::stoi(value);
  const core::Shared& s = kernel_[to->shared];
  const Layout elements = move.elements(), lanes = move.lane_of_row();
  const int64_t first = eval(from->first);
  std::vector<int64_t> start;  // the byte of a row, by row and matrix
  for (int64_t r = 0; r < int64_t{8} * move.matrices; ++r) {
    value_of_symbol(kernel_.at.lane) = lanes(r);
    std::vector<int64_t> at;
    for (Term t : to->at) at.push_back(in_turn(t));
    const std::optional<int64_t> byte = byte_of(s, at);
    if (!byte && why.empty()) why = "stmatrix leaves its shared memory";
    start.push_back(byte.value_or(0));
  }
  value_of_symbol(kernel_.at.lane) = -1;
  for (int64_t e = 0; e < int64_t{2} * move.matrices && !stopped(); ++e) {
    const Id value = slot(warp, from->registers, first + e);
    if (value == Formulas::none && why.empty())
      why = "registers are stored whose values are not followed";
    for (int lane = 0; lane < 32; ++lane) {
      const int64_t at = elements(lane + 32 * e);  // column + 8 row + 64 matrix
      const int64_t byte = start[static_cast<std::size_t>(at / 8)] + 2 * (at % 8);
      hold(byte, 2, value, lane, warp);
    }
  }
}

void Tile::copy_out(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const core::TensorMap& map = kernel_[argument<core::MapRef>(issue, "map")->map];
  const auto* from = argument<core::SharedAt>(issue, "from");
  const auto* at = argument<core::Integers>(issue, "at");
  const core::Shared& s = kernel_[from->shared];
  const int output = output_of(map.tensor);
  const int64_t size = size_of(s.element);
  if (output < 0 || !followed(size)) {
    why = output < 0 ? "a store goes to another tensor than the meaning has"
                     : "a copy to the output is of elements that have neither 16 nor 32 bits";
    return;
  }
  int row_dim = 0, column_dim = 0;
  int64_t row = 0, column = 0;
  for (std::size_t m = 0; m < map.dims.size(); ++m) {
    const Index& index = means_.outputs[static_cast<std::size_t>(output)]
                             .to.at[static_cast<std::size_t>(map.dims[m])];
    int64_t off = 0;
    if (!corner(op, warp, index, at->values[m], off)) return;
    if (index.axis == Axis::row) row = off, row_dim = static_cast<int>(m);
    if (index.axis == Axis::column) column = off, column_dim = static_cast<int>(m);
    if (!at_batch(op, warp, index, off)) return;
  }
  std::vector<int64_t> place;
  for (Term t : from->at) place.push_back(in_turn(t));
  const Swizzle swizzle = arch::swizzle_of(map.swizzle);
  const int64_t start = s.at + size * s.layout.at(place);
  BoxIndex i{};
  for (int64_t n = 0; n < product(IntTuple::flat(map.box)); ++n) {
    int64_t rest = n;
    for (std::size_t m = 0; m < map.box.size(); rest /= map.box[m++]) i[m] = rest % map.box[m];
    const Held in = held(swizzle(start + size * n), size);
    if (!stored(op, warp, in.lane, in.value, row + i[static_cast<std::size_t>(row_dim)],
                column + i[static_cast<std::size_t>(column_dim)], output))
      return;
  }
}

/// A lane's vector, whose elements lie side by side: no swizzle takes 16 bytes apart.
void Tile::vectors(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* to = argument<core::SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  const core::Shared& s = kernel_[to->shared];
  const int64_t size = size_of(s.element), bytes = std::stoll(issue.form->name.substr(13));
  if (!followed(size) || size_of(kernel_[from->registers].element) != size || bytes % size != 0) {
    why = "a store to shared memory is of elements that have neither 16 nor 32 bits";
    return;
  }
  const int64_t first = eval(from->first);
  for (int lane = 0; lane < 32 && why.empty(); ++lane) {
    value_of_symbol(kernel_.at.lane) = lane;
    std::vector<int64_t> at;
    for (Term t : to->at) at.push_back(in_turn(t));
    const std::optional<int64_t> byte = byte_of(s, at);
    if (!byte && why.empty()) why = "a store leaves its shared memory";
    for (int64_t e = 0; e < bytes / size && why.empty(); ++e) {
      const Id value = slot(warp, from->registers, first + e);
      if (value == Formulas::none) why = "registers are stored whose values are not followed";
      hold(*byte + size * e, size, value, lane, warp);
    }
  }
  value_of_symbol(kernel_.at.lane) = -1;
}

}  // namespace tessera::check
