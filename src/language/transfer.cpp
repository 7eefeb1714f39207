#include "language/transfer.h"

#include "language/tile_layout.h"
#include "term/rules.h"

namespace tessera::language {

bool has_vectors(const Layout& layout, const std::vector<int64_t>& tile, int64_t n) {
  if (layout.mode(1).size() % n != 0) return false;
  const auto column = [&](int64_t element) { return coordinates(element, tile).back(); };
  for (const Digit& d : digits(layout.mode(0), tile))
    if (d.extent > 1 && d.dim + 1 == static_cast<int>(tile.size()) && d.distance % n != 0)
      return false;
  const Layout slots = layout.mode(1);
  for (int64_t s = 0; s < slots.size(); ++s)
    if (column(slots(s)) % n != s % n ||
        slots(s) - slots(s - s % n) != (s % n) * (elements_of(tile) / tile.back()))
      return false;
  return true;
}

std::vector<Term> inside(Elaborator& e, const std::vector<int64_t>& tile, const Layout& layout,
                         Term slot) {
  const Term lane = e.builder().at().lane, warp = e.threads().warp;
  const auto digit = [](Term index, const Digit& d, int64_t all) {
    const Term high = d.weight == 1 ? index : floor_div(index, d.weight);
    return term::simplify(d.weight * d.extent == all ? high : floor_mod(high, d.extent));
  };
  std::vector<Term> at(tile.size());
  const auto add = [&](const Digit& d, Term value) {
    if (d.dim < 0 || d.extent == 1 || value->facts.constant() == 0) return;
    Term& sum = at[static_cast<std::size_t>(d.dim)];
    const Term part = d.distance == 1 ? value : value * d.distance;
    sum = sum ? sum + part : part;
  };
  const Term thread = warp * 32 + lane;
  const int64_t threads = layout.mode(0).size(), slots = layout.mode(1).size();
  for (const Digit& d : digits(layout.mode(0), tile)) add(d, digit(thread, d, threads));
  for (const Digit& d : digits(layout.mode(1), tile)) add(d, digit(slot, d, slots));
  return at;
}

Result<Layout> layout_beside(Call& c, const std::vector<int64_t>& tile) {
  Elaborator& e = c.e;
  TESSERA_TRY(like, c.the<Fragment>("like", "registers: acc"));
  TESSERA_TRY(layout, e.layout_of(like, c.span_of("like")));
  std::vector<int64_t> shape = like.tile;
  bool fits = tile.size() == shape.size();
  for (std::size_t d = 0; fits && d < tile.size(); ++d) {
    if (tile[d] == 1 && shape[d] != 1) {
      layout = without(layout, shape, static_cast<int>(d));
      shape[d] = 1;
    }
    fits = tile[d] == shape[d];
  }
  if (fits) return layout;
  return error(fail(wrong_shape, "the box does not go together with the registers")
                   .label(e.label(c.span_of("box"), "a box of " + shape_text(tile)))
                   .label(e.label(c.span_of("like"), "registers of " + shape_text(like.tile)))
                   .expect("{}, or 1 along a dimension", shape_text(like.tile))
                   .but_found("{}", shape_text(tile))
                   .help("take a box of the same extents"));
}

}  // namespace tessera::language
