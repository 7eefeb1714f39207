#include "layout/symbolic_layout.h"

#include <algorithm>

#include "layout/modes.h"

namespace tessera {
namespace {

Diagnostic refusal(const Tiler& t, std::string_view why) {
  return fail(layout::not_composable, "a tensor cannot be tiled by {}", to_string(t))
      .note("{}", why);
}

/// A constant layout of steps along a mode of stride `stride`.
SymbolicLayout along(const Layout& steps, const Extent& stride) {
  if (steps.shape().is_leaf) return {steps.shape().value, stride * Extent(steps.stride().value)};
  std::vector<SymbolicLayout> modes;
  for (int i = 0; i < steps.rank(); ++i) modes.push_back(along(steps.mode(i), stride));
  return SymbolicLayout::tuple(std::move(modes));
}

/// The tiler of each tiled mode, which must be a leaf.
Status check(const SymbolicLayout& a, const Tiler& t) {
  if (a.is_leaf() || !t.is_by_mode() || static_cast<int>(t.modes().size()) > a.rank())
    return error(refusal(t, "a tiler has one layout per mode, for as many modes at most"));
  for (std::size_t i = 0; i < t.modes().size(); ++i) {
    const SymbolicLayout& mode = a.mode(static_cast<int>(i));
    if (t.modes()[i].is_by_mode() || !mode.is_leaf())
      return error(refusal(t, "a tiled mode is one extent with one tile"));
    if (mode.extent().is_constant() && t.modes()[i].whole().cosize() > mode.extent().constant())
      return error(refusal(t, "a tile is longer than its mode"));
  }
  return {};
}

/// What is left of a mode besides its tile: the elements between the tile's own, which are
/// constant, and the tiles, whose number may be symbolic.
Result<SymbolicLayout> rest_of(const SymbolicLayout& mode, const Layout& tile, Tail tail) {
  TESSERA_TRY(between, complement(tile, tile.cosize()));
  const int64_t period = tile.size() * between.size();
  Result<Extent> tiles =
      tail == Tail::refuse ? mode.extent().divide(period) : mode.extent().divide_up(period);
  if (!tiles) return error(std::move(tiles).error());
  SymbolicLayout across(*std::move(tiles), mode.stride() * Extent(period));
  if (between.size() == 1) return across;
  return SymbolicLayout::tuple({along(between, mode.stride()), std::move(across)});
}

void leaves_of(const SymbolicLayout& l, std::vector<SymbolicLayout>& out) {
  if (l.is_leaf()) return out.push_back(l);
  for (int i = 0; i < l.rank(); ++i) leaves_of(l.mode(i), out);
}

/// What is kept of l, where anything is; `at` is the first of its leaves.
std::optional<SymbolicLayout> keep(const SymbolicLayout& l,
                                   const std::vector<std::optional<Extent>>& leaves,
                                   std::size_t& at) {
  if (l.is_leaf()) return leaves[at++] ? std::nullopt : std::optional(l);
  std::vector<SymbolicLayout> kept;
  for (int i = 0; i < l.rank(); ++i)
    if (auto mode = keep(l.mode(i), leaves, at)) kept.push_back(*std::move(mode));
  if (kept.empty()) return std::nullopt;
  return SymbolicLayout::tuple(std::move(kept));
}

std::string text(const SymbolicLayout& l, bool extents) {
  if (l.is_leaf()) return to_string(extents ? l.extent() : l.stride());
  std::string s = "(";
  for (int i = 0; i < l.rank(); ++i) s += (i > 0 ? "," : "") + text(l.mode(i), extents);
  return s + ")";
}

}  // namespace

SymbolicLayout::SymbolicLayout(const Layout& l) : is_leaf_(l.shape().is_leaf) {
  if (is_leaf_) {
    extent_ = l.shape().value;
    stride_ = l.stride().value;
    return;
  }
  for (int i = 0; i < l.rank(); ++i) modes_.emplace_back(l.mode(i));
}

SymbolicLayout SymbolicLayout::tuple(std::vector<SymbolicLayout> modes) {
  SymbolicLayout l;
  l.is_leaf_ = false;
  l.modes_ = std::move(modes);
  return l;
}

SymbolicLayout SymbolicLayout::row_major(const std::vector<Extent>& extents) {
  std::vector<SymbolicLayout> modes;
  Extent running = 1;
  for (std::size_t i = extents.size(); i-- > 0; running = running * extents[i])
    modes.emplace_back(extents[i], running);
  std::reverse(modes.begin(), modes.end());
  return tuple(std::move(modes));
}

Extent SymbolicLayout::size() const {
  if (is_leaf_) return extent_;
  Extent n = 1;
  for (const SymbolicLayout& m : modes_) n = n * m.size();
  return n;
}

Extent SymbolicLayout::at(const std::vector<Extent>& leaves) const {
  std::vector<SymbolicLayout> own;
  leaves_of(*this, own);
  if (own.size() != leaves.size())
    throw std::logic_error("a symbolic coordinate has one entry per leaf");
  Extent sum;
  for (std::size_t i = 0; i < own.size(); ++i) sum = sum + leaves[i] * own[i].stride();
  return sum;
}

Result<Layout> SymbolicLayout::evaluate(const std::map<std::string, int64_t>& parameters) const {
  if (is_leaf_) {
    TESSERA_TRY(extent, extent_.evaluate(parameters));
    TESSERA_TRY(stride, stride_.evaluate(parameters));
    return try_layout(extent, stride);
  }
  std::vector<Layout> modes;
  for (const SymbolicLayout& m : modes_) {
    TESSERA_TRY(mode, m.evaluate(parameters));
    modes.push_back(std::move(mode));
  }
  return concat(modes);
}

std::string to_string(const SymbolicLayout& l) {
  return text(l, true) + ":" + text(l, false);
}

SymbolicSlice slice(const SymbolicLayout& l, const std::vector<std::optional<Extent>>& leaves) {
  std::vector<Extent> fixed;
  for (const auto& entry : leaves) fixed.push_back(entry.value_or(0));
  Extent offset = l.at(fixed);
  std::size_t at = 0;
  return {keep(l, leaves, at).value_or(SymbolicLayout::tuple({})), std::move(offset)};
}

Result<SymbolicLayout> compose(const SymbolicLayout& a, const Tiler& t) {
  TESSERA_CHECK(check(a, t));
  std::vector<SymbolicLayout> modes;
  for (std::size_t i = 0; i < t.modes().size(); ++i)
    modes.push_back(along(t.modes()[i].whole(), a.mode(static_cast<int>(i)).stride()));
  return SymbolicLayout::tuple(std::move(modes));
}

Result<SymbolicLayout> zipped_divide(const SymbolicLayout& a, const Tiler& t, Tail tail) {
  TESSERA_TRY(tile, compose(a, t));
  std::vector<SymbolicLayout> rest;
  for (int i = 0; i < a.rank(); ++i) {
    if (i >= tile.rank()) {
      rest.push_back(a.mode(i));
      continue;
    }
    TESSERA_TRY(r, rest_of(a.mode(i), t.modes()[i].whole(), tail));
    rest.push_back(std::move(r));
  }
  return SymbolicLayout::tuple({std::move(tile), SymbolicLayout::tuple(std::move(rest))});
}

}  // namespace tessera
