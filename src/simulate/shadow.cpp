#include "simulate/shadow.h"

#include <algorithm>

namespace tessera::simulate {
namespace {

/// What the launch put there: a party that everyone knows.
constexpr uint32_t launch = ~0U - 1;

}  // namespace

Shadow::Shadow(int64_t bytes, int64_t unit, bool global, bool written)
    : cells_(static_cast<std::size_t>((bytes + unit - 1) / unit)), unit_(unit), global_(global) {
  if (!written) return;
  for (Cell& c : cells_) c.write.component = launch;
}

std::optional<Conflict::Kind> Shadow::unordered(const Mark& earlier, const Mark& by,
                                                const Knowledge& knows) const {
  if (earlier.component >= launch || earlier.component == by.component) return std::nullopt;
  if (earlier.atomic && by.atomic) return std::nullopt;
  if (knows.seen[earlier.component] < earlier.clock) return Conflict::Kind::race;
  if (!by.async || earlier.async) return std::nullopt;
  const Clock& fenced = global_ ? knows.global_fenced : knows.shared_fenced;
  if (fenced[earlier.component] < earlier.clock) return Conflict::Kind::proxy;
  return std::nullopt;
}

void Shadow::note_read(Cell& cell, const Mark& by, const Knowledge& knows) {
  for (Mark& r : cell.reads)
    if (r.async == by.async &&
        (r.component == by.component || knows.seen[r.component] >= r.clock)) {
      r = by;
      return;
    }
  cell.reads.push_back(by);
}

std::optional<Conflict> Shadow::read(int64_t begin, int64_t bytes, const Mark& by,
                                     const Knowledge& knows) {
  std::optional<Conflict> found;
  for (int64_t i = begin / unit_; i * unit_ < begin + bytes; ++i) {
    Cell& cell = cells_[static_cast<std::size_t>(i)];
    if (!found) {
      if (cell.write.component == Mark::nobody)
        found = Conflict{Conflict::Kind::uninitialized, {}, false, i * unit_};
      else if (const auto kind = unordered(cell.write, by, knows))
        found = Conflict{*kind, cell.write, true, i * unit_};
    }
    note_read(cell, by, knows);
  }
  return found;
}

std::optional<Conflict> Shadow::write(int64_t begin, int64_t bytes, const Mark& by,
                                      const Knowledge& knows) {
  std::optional<Conflict> found;
  for (int64_t i = begin / unit_; i * unit_ < begin + bytes; ++i) {
    Cell& cell = cells_[static_cast<std::size_t>(i)];
    if (!found) {
      if (const auto kind = unordered(cell.write, by, knows))
        found = Conflict{*kind, cell.write, true, i * unit_};
      for (const Mark& r : cell.reads)
        if (const auto kind = unordered(r, by, knows); kind && !found)
          found = Conflict{*kind, r, false, i * unit_};
    }
    cell.write = by;
    cell.reads.clear();
  }
  return found;
}

}  // namespace tessera::simulate
