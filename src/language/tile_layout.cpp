#include "language/tile_layout.h"

#include <functional>
#include <map>
#include <numeric>

namespace tessera::language {

int64_t elements_of(const std::vector<int64_t>& tile) {
  int64_t n = 1;
  for (int64_t e : tile) n *= e;
  return n;
}

bool same_layout(const Layout& a, const Layout& b) {
  return a == b || (a.rank() == 2 && b.rank() == 2 && coalesce(a.mode(0)) == coalesce(b.mode(0)) &&
                    coalesce(a.mode(1)) == coalesce(b.mode(1)));
}

std::vector<int64_t> coordinates(int64_t element, const std::vector<int64_t>& tile) {
  std::vector<int64_t> out;
  for (int64_t e : tile) {
    out.push_back(element % e);
    element /= e;
  }
  return out;
}
int64_t element_at(const std::vector<int64_t>& at, const std::vector<int64_t>& tile) {
  int64_t out = 0;
  for (std::size_t i = tile.size(); i-- > 0;) out = out * tile[i] + at[i];
  return out;
}

IntTuple moved(const IntTuple& strides, const std::vector<int64_t>& from,
               const std::vector<int64_t>& to) {
  if (!strides.is_leaf) {
    std::vector<IntTuple> items;
    for (const IntTuple& i : strides.items) items.push_back(moved(i, from, to));
    return IntTuple::tuple(std::move(items));
  }
  std::vector<int64_t> at = coordinates(strides.value, from);
  for (std::size_t d = 0; d < at.size(); ++d)
    if (to[d] == 1) at[d] = 0;
  return element_at(at, to);
}

std::optional<Slots> first_part(const Layout& layout, const std::vector<int64_t>& tile,
                                const std::vector<int64_t>& part) {
  const Layout threads = layout.mode(0), slots = layout.mode(1);
  Slots out;
  for (int64_t s = 0; s < slots.size(); ++s) {
    int64_t inside = 0;
    for (int64_t t = 0; t < threads.size(); ++t) {
      const std::vector<int64_t> at = coordinates(threads(t) + slots(s), tile);
      bool in = true;
      for (std::size_t d = 0; d < tile.size(); ++d)
        in = in && (part[d] == tile[d] || at[d] < part[d]);
      inside += in ? 1 : 0;
    }
    if (inside == threads.size())
      out.all.push_back(s);
    else if (inside != 0)
      return {};
  }
  if (out.all.empty() || out.all.front() != 0) return {};
  const auto n = static_cast<int64_t>(out.all.size());
  int64_t run = 1;
  while (run < n && out.all[static_cast<std::size_t>(run)] == run) ++run;
  if (n % run != 0) return {};
  const int64_t step = run < n ? out.all[static_cast<std::size_t>(run)] : 1;
  out.steps =
      run == n ? Layout(n, 1) : Layout(IntTuple::flat({run, n / run}), IntTuple::flat({1, step}));
  for (int64_t i = 0; i < n; ++i)
    if (out.steps(i) != out.all[static_cast<std::size_t>(i)]) return {};
  return out;
}

std::optional<int64_t> stride_of_parts(const Layout& layout, const std::vector<int64_t>& tile,
                                       const std::vector<int64_t>& part, const Slots& first,
                                       std::size_t d) {
  const Layout slots = layout.mode(1);
  std::map<int64_t, int64_t> slot_of;  // of thread 0, which has element 0
  for (int64_t s = 0; s < slots.size(); ++s) slot_of[slots(s)] = s;
  std::optional<int64_t> stride;
  for (int64_t p = 1; p < tile[d] / part[d]; ++p)
    for (int64_t s : first.all) {
      std::vector<int64_t> at = coordinates(slots(s), tile);
      at[d] += p * part[d];
      const auto found = slot_of.find(element_at(at, tile));
      if (found == slot_of.end()) return {};
      if (!stride) stride = found->second - s;
      if (found->second != s + p * *stride) return {};
    }
  return stride.value_or(static_cast<int64_t>(first.all.size()));
}

std::vector<Digit> digits(const Layout& mode, const std::vector<int64_t>& tile) {
  const std::vector<int64_t> extents = flatten(mode.shape()), strides = flatten(mode.stride());
  std::vector<Digit> out;
  int64_t weight = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    Digit d{.extent = extents[i], .weight = weight};
    const std::vector<int64_t> at = coordinates(strides[i], tile);
    for (std::size_t k = 0; k < at.size(); ++k)
      if (at[k] != 0) {
        d.dim = static_cast<int>(k);
        d.distance = at[k];
      }
    weight *= extents[i];
    out.push_back(d);
  }
  return out;
}

std::optional<Layout> broadcast(const Layout& small, const std::vector<int64_t>& small_tile,
                                const Layout& large, const std::vector<int64_t>& large_tile) {
  const Layout slots = large.mode(1);
  if (small.mode(0).size() != large.mode(0).size()) return {};
  std::map<int64_t, int64_t> slot_of;  // of thread 0
  for (int64_t s = 0; s < small.mode(1).size(); ++s) slot_of.emplace(small.mode(1)(s), s);
  const auto projected = [&](int64_t element) {
    std::vector<int64_t> at = coordinates(element, large_tile);
    for (std::size_t d = 0; d < at.size(); ++d)
      if (small_tile[d] == 1) at[d] = 0;
    return element_at(at, small_tile);
  };
  for (int64_t t = 0; t < large.mode(0).size(); ++t)
    if (projected(large.mode(0)(t)) != small.mode(0)(t)) return {};
  std::vector<int64_t> steps;
  for (const Digit& d : digits(slots, large_tile)) {
    const auto found = slot_of.find(projected(slots(d.extent > 1 ? d.weight : 0)));
    if (found == slot_of.end()) return {};
    steps.push_back(d.extent > 1 ? found->second : 0);
  }
  Layout out(IntTuple::flat(flatten(slots.shape())), IntTuple::flat(steps));
  for (int64_t s = 0; s < slots.size(); ++s) {
    const auto found = slot_of.find(projected(slots(s)));
    if (found == slot_of.end() || out(s) != found->second) return {};
  }
  return out;
}

std::optional<Elsewhere> first_elsewhere(const Layout& small,
                                         const std::vector<int64_t>& small_tile,
                                         const Layout& large,
                                         const std::vector<int64_t>& large_tile) {
  const int64_t threads = std::min(small.mode(0).size(), large.mode(0).size());
  for (int64_t slot = 0; slot < large.mode(1).size(); ++slot)
    for (int64_t thread = 0; thread < threads; ++thread) {
      Elsewhere e{.thread = thread};
      e.at = e.of = coordinates(large.mode(0)(thread) + large.mode(1)(slot), large_tile);
      for (std::size_t d = 0; d < e.of.size(); ++d)
        if (small_tile.at(d) == 1) e.of[d] = 0;
      const int64_t wanted = element_at(e.of, small_tile) - small.mode(0)(thread);
      bool there = false;
      for (int64_t s = 0; s < small.mode(1).size() && !there; ++s)
        there = small.mode(1)(s) == wanted;
      if (!there) return e;
    }
  return {};
}

Layout without(const Layout& layout, const std::vector<int64_t>& tile, int dim) {
  std::vector<int64_t> left = tile;
  left[static_cast<std::size_t>(dim)] = 1;
  std::vector<IntTuple> extents, strides;
  const std::vector<int64_t> all = flatten(layout.mode(1).stride());
  const std::vector<Digit> slots = digits(layout.mode(1), tile);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].dim == dim) continue;
    extents.emplace_back(slots[i].extent);
    strides.push_back(moved(all[i], tile, left));
  }
  if (extents.empty()) {
    extents.emplace_back(1);
    strides.emplace_back(0);
  }
  return {IntTuple::tuple({layout.mode(0).shape(), IntTuple::tuple(std::move(extents))}),
          IntTuple::tuple(
              {moved(layout.mode(0).stride(), tile, left), IntTuple::tuple(std::move(strides))})};
}

Layout one_a_lane(const Layout& layout, std::vector<int64_t>& tile, int dim) {
  const std::vector<int64_t> from = tile;
  const std::vector<Digit> lanes = digits(layout.mode(0), from);
  int64_t along = 1;
  for (const Digit& d : lanes)
    if (d.dim == dim) along *= d.extent;
  tile[static_cast<std::size_t>(dim)] = along;
  std::vector<int64_t> unit(tile.size(), 0);
  unit[static_cast<std::size_t>(dim)] = 1;
  const int64_t step = element_at(unit, tile);
  const std::vector<int64_t> extents = flatten(layout.mode(0).shape()),
                             strides = flatten(layout.mode(0).stride());
  std::vector<int64_t> out;
  int64_t next = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (lanes[i].dim != dim) {
      out.push_back(moved(IntTuple(strides[i]), from, tile).value);
      continue;
    }
    out.push_back(next * step);
    next *= extents[i];
  }
  const Layout slots = without(layout, from, dim).mode(1);
  std::vector<int64_t> left = from;
  left[static_cast<std::size_t>(dim)] = 1;
  return {IntTuple::tuple({IntTuple::flat(extents), slots.shape()}),
          IntTuple::tuple({IntTuple::flat(out), moved(slots.stride(), left, tile)})};
}

Layout accumulators(const Layout& one, int64_t rows) {
  const std::function<IntTuple(const IntTuple&)> widen = [&](const IntTuple& stride) -> IntTuple {
    if (stride.is_leaf) return stride.value >= 64 ? stride.value / 64 * rows : stride.value;
    std::vector<IntTuple> items;
    for (const IntTuple& i : stride.items) items.push_back(widen(i));
    return IntTuple::tuple(std::move(items));
  };
  IntTuple shape = one.mode(0).shape(), stride = widen(one.mode(0).stride());
  shape.items.emplace_back(rows / 64);
  stride.items.emplace_back(64);
  return {IntTuple::tuple({shape, one.mode(1).shape()}),
          IntTuple::tuple({stride, widen(one.mode(1).stride())})};
}

std::optional<Layout> row_layout(const std::vector<int64_t>& tile, int64_t vector, int64_t lanes,
                                 int64_t threads) {
  constexpr int64_t most = 1 << 20;  // no registers hold as many
  for (int64_t extent : tile)
    if (extent > most) return {};
  if (lanes < 0) return {};
  const int64_t columns = tile.back(), rows = elements_of(tile) / columns;
  if (columns % vector != 0) return {};
  const int64_t vectors = columns / vector;
  int64_t along = lanes;
  if (along == 0) {
    along = std::gcd(vectors, threads);
    if (along % 32 != 0) along = std::gcd(along, int64_t{32});
  }
  if (along < 1 || along > threads || vectors % along != 0 || threads % along != 0) return {};
  const int64_t at_once = threads / along;
  if (rows == 1)  // every group of threads has it
    return Layout(
        IntTuple::tuple(
            {IntTuple::flat({along, at_once}), IntTuple::flat({vector, vectors / along})}),
        IntTuple::tuple({IntTuple::flat({vector, 0}), IntTuple::flat({1, along * vector})}));
  if (rows % at_once != 0) return {};
  return Layout(IntTuple::tuple({IntTuple::flat({along, at_once}),
                                 IntTuple::flat({vector, vectors / along, rows / at_once})}),
                IntTuple::tuple({IntTuple::flat({vector * rows, 1}),
                                 IntTuple::flat({rows, along * vector * rows, at_once})}));
}

}  // namespace tessera::language
