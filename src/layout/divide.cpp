#include "layout/divide.h"

#include <functional>

#include "layout/modes.h"

namespace tessera {
namespace {

using Step = std::function<Result<Layout>(const Layout&, const Layout&)>;

/// `step` of a layout and each tiler that is one layout; modes beyond the tiler's stay.
Result<Layout> apply(const Layout& a, const Tiler& tiler, const Step& step) {
  if (!tiler.is_by_mode()) return step(a, tiler.whole());
  const int tiled = static_cast<int>(tiler.modes().size());
  if (tiled > a.rank()) {
    return error(fail(layout::not_composable, "a tiler has more modes than its layout")
                     .expect("at most {}", a.rank())
                     .but_found("{}", to_string(tiler)));
  }
  std::vector<Layout> modes;
  for (int i = 0; i < a.rank(); ++i) {
    if (i >= tiled) {
      modes.push_back(a.mode(i));
      continue;
    }
    TESSERA_TRY(m, apply(a.mode(i), tiler.modes()[i], step));
    modes.push_back(std::move(m));
  }
  return concat(modes);
}

struct Halves {
  Layout first, second;
};

/// The pairs of a logical division or product parted into all first and all second halves.
Halves unzip(const Layout& pairs, const Tiler& tiler) {
  if (!tiler.is_by_mode()) return {pairs.mode(0), pairs.mode(1)};
  std::vector<Layout> first;
  std::vector<Layout> second;
  const int tiled = static_cast<int>(tiler.modes().size());
  for (int i = 0; i < pairs.rank(); ++i) {
    if (i >= tiled) {
      second.push_back(pairs.mode(i));
      continue;
    }
    Halves h = unzip(pairs.mode(i), tiler.modes()[i]);
    first.push_back(std::move(h.first));
    second.push_back(std::move(h.second));
  }
  return {concat(first), concat(second)};
}

enum class Form { zipped, tiled, flat };

/// Of a tiler that is one layout the halves stay whole where they are single modes.
Layout arrange(const Halves& h, Form form) {
  if (form == Form::zipped) return concat({h.first, h.second});
  std::vector<Layout> modes;
  const auto add = [&](const Layout& half, bool open) {
    if (!open) return modes.push_back(half);
    for (int i = 0; i < half.rank(); ++i) modes.push_back(half.mode(i));
  };
  add(h.first, form == Form::flat);
  add(h.second, true);
  return concat(modes);
}

Result<Layout> arranged(Result<Layout> pairs, const Tiler& tiler, Form form) {
  if (!pairs) return pairs;
  return arrange(unzip(*pairs, tiler), form);
}

Result<Layout> divide(const Layout& a, const Layout& tile) {
  if (a.size() % tile.size() != 0) {
    return error(fail(layout::not_composable, "a tile of {} elements does not divide {}",
                      tile.size(), a.size()));
  }
  TESSERA_TRY(rest, complement(tile, a.size()));
  return compose(a, concat({tile, rest}));
}

Result<Layout> multiplied(const Layout& block, const Layout& copies) {
  TESSERA_TRY(rest, complement(block, block.size() * copies.cosize()));
  TESSERA_TRY(placed, compose(rest, copies));
  return concat({block, placed});
}

/// Mode i is (block_i, copies_i), or the other way round.
Result<Layout> paired_product(const Layout& block, const Layout& copies, bool block_first) {
  TESSERA_TRY(product, multiplied(block, copies));
  const Layout placed = product.mode(1);
  std::vector<Layout> modes;
  for (int i = 0; i < std::max(block.rank(), copies.rank()); ++i) {
    const Layout b = i < block.rank() ? block.mode(i) : Layout();
    const Layout c = i < copies.rank() ? placed.mode(i) : Layout();
    modes.push_back(block_first ? concat({b, c}) : concat({c, b}));
  }
  return concat(modes);
}

}  // namespace

Result<Layout> logical_divide(const Layout& a, const Tiler& tiler) {
  return apply(a, tiler, divide);
}
Result<Layout> zipped_divide(const Layout& a, const Tiler& tiler) {
  return arranged(logical_divide(a, tiler), tiler, Form::zipped);
}
Result<Layout> tiled_divide(const Layout& a, const Tiler& tiler) {
  return arranged(logical_divide(a, tiler), tiler, Form::tiled);
}
Result<Layout> flat_divide(const Layout& a, const Tiler& tiler) {
  return arranged(logical_divide(a, tiler), tiler, Form::flat);
}

Result<Layout> logical_product(const Layout& block, const Tiler& copies) {
  return apply(block, copies, multiplied);
}
Result<Layout> zipped_product(const Layout& block, const Tiler& copies) {
  return arranged(logical_product(block, copies), copies, Form::zipped);
}
Result<Layout> tiled_product(const Layout& block, const Tiler& copies) {
  return arranged(logical_product(block, copies), copies, Form::tiled);
}
Result<Layout> flat_product(const Layout& block, const Tiler& copies) {
  return arranged(logical_product(block, copies), copies, Form::flat);
}

Result<Layout> blocked_product(const Layout& block, const Layout& copies) {
  return paired_product(block, copies, true);
}
Result<Layout> raked_product(const Layout& block, const Layout& copies) {
  return paired_product(block, copies, false);
}

}  // namespace tessera
