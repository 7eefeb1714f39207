#include "tile/build/attention_types.h"

#include <algorithm>
#include <limits>

#include "base/integers.h"
#include "tile/dot_plan.h"

namespace tessera::tile::build {
std::vector<SpreadMode> thread_modes(const AttentionShape& s, const AttentionConfig& c,
                                     int64_t step) {
  std::vector<SpreadMode> m = {{4, 1, step}, {8, 0, 1}};
  if (s.warps > 1) m.push_back({s.warps, 0, s.by->m * c.row_tiles});
  return m;
}

Type register_type(std::vector<Axis> axes, std::vector<int64_t> cover, Spread s) {
  auto one = [](const SpreadMode& m) { return m.extent == 1; };
  std::erase_if(s.registers, one);
  Type t;
  t.axes = std::move(axes);
  t.cover = std::move(cover);
  t.layout = layout_of(s, t.cover);
  return t;
}

Type query_type(const AttentionShape& s, const AttentionConfig& c, Axis rows, Axis columns) {
  int64_t run = 16 / s.size;
  while (s.depth % (4 * run) != 0) run /= 2;
  return register_type(
      {rows, columns}, {c.block_queries, s.depth},
      {thread_modes(s, c, run),
       {{run, 1, 1}, {2, 0, 8}, {s.depth / (4 * run), 1, 4 * run}, {c.row_tiles, 0, s.by->m}}});
}

Type result_type(const AttentionShape& s, const AttentionConfig& c, Axis rows, Axis columns,
                 int64_t cover, int64_t run) {
  return register_type({rows, columns}, {c.block_queries, cover},
                       {thread_modes(s, c, 2 * run),
                        {{run, 1, 1},
                         {2, 1, run},
                         {2, 0, 8},
                         {cover / (8 * run), 1, 8 * run},
                         {c.row_tiles, 0, s.by->m}}});
}

int64_t value_run(const AttentionShape& s) {
  if (s.size != 4) return 1;
  return s.width % 32 == 0 ? 4 : s.width % 16 == 0 ? 2 : 1;
}

Result<Type> shared_type(const AttentionShape& s, DType element, Axis rows, Axis columns,
                         int64_t cover, const Type& a, const Type& c, bool transposed) {
  std::optional<Type> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t pad = 0; pad < 128 / s.size; pad += 16 / s.size) {
    Type t;
    t.element = element;
    t.space = Space::shared;
    t.axes = {rows, columns};
    t.cover = {rows.extent, cover};
    t.layout = concat({Layout(rows.extent, round_up(cover, 16 / s.size) + pad), Layout(cover, 1)});
    TESSERA_TRY(plan, plan_dot(*s.by, a, t, transposed, c));
    const int64_t conflicts = read_conflicts(plan, s.size);
    if (conflicts < least) least = conflicts, best = t;
  }
  return *best;
}

Type copy_type(const AttentionShape& s, const Type& shared) {
  const int64_t run = 16 / s.size;
  const int64_t accesses = std::max<int64_t>(shared.cover[1] / run, 1);
  int64_t along = 1;
  while (along < 8 && accesses % (2 * along) == 0) along *= 2;
  int64_t rows = s.threads() / along;
  int64_t idle = 1;
  while (rows > 1 && shared.cover[0] % rows != 0) rows /= 2, idle *= 2;
  Spread spread{
      {{along, 1, run}, {rows, 0, 1}},
      {{run, 1, 1}, {accesses / along, 1, along * run}, {shared.cover[0] / rows, 0, rows}}};
  if (idle > 1) spread.threads.push_back({idle, -1, 0});
  std::erase_if(spread.threads, [](const SpreadMode& m) { return m.extent == 1; });
  return register_type(shared.axes, shared.cover, spread);
}

}  // namespace tessera::tile::build
