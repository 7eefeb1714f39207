// Sums and maxima along a dimension of a tile: in each thread, then over the lanes that share a
// row.
#include "language/elaborator.h"
#include "language/tile_layout.h"

namespace tessera::language {
namespace {

struct Reduction {
  Fragment from, to;
  Layout layout;  // of `from`
  int dim = 1;
  const char* function = "add";
};

std::shared_ptr<pointwise::Dag> of_two(const char* function) {
  auto dag = std::make_shared<pointwise::Dag>();
  const int a = dag->add_operand(0), b = dag->add_operand(1);
  dag->results = {dag->add_call(function, {a, b})};
  return dag;
}

/// Each thread's own elements: slots of `to` begin with the first of theirs, or at 0, and take the
/// others in order.
Status in_threads(Call& c, const Reduction& r) {
  Elaborator& e = c.e;
  TESSERA_TRY(b, e.emit(c.span));
  const Term zero = b->number(0);
  const int64_t slots = r.layout.mode(1).size();
  std::vector<int64_t> extents, weights;
  for (const Digit& d : digits(r.layout.mode(1), r.from.tile))
    if (d.dim != r.dim) {
      extents.push_back(d.extent);
      weights.push_back(d.weight);
    }
  const Layout first =
      extents.empty() ? Layout(1, 0) : Layout(IntTuple::flat(extents), IntTuple::flat(weights));
  TESSERA_TRY(to, e.run_of(r.to, c.span));
  TESSERA_TRY(from, e.run_of(r.from, c.span));
  auto dag = std::make_shared<pointwise::Dag>();
  const bool sum = std::string_view(r.function) == "add";
  dag->results = {sum ? dag->add_constant(0) : dag->add_operand(0)};
  core::Compute begin{.dag = dag, .results = {to}, .count = first.size()};
  if (!sum) begin.inputs = {core::Run{r.from.id, zero, first}};
  b->compute(std::move(begin));
  core::Run into = to;
  std::vector<int64_t> left = r.from.tile;
  left[static_cast<std::size_t>(r.dim)] = 1;
  into.steps = *broadcast(without(r.layout, r.from.tile, r.dim), left, r.layout, r.from.tile);
  b->compute({of_two(r.function), {from, into}, {into}, slots, {}});
  e.wrote(r.to.id);
  return {};
}

/// The lanes that share a row exchange by twos, fours, ...: all of them have the result.
Status in_lanes(Call& c, const Reduction& r) {
  Elaborator& e = c.e;
  std::vector<int64_t> steps;
  for (const Digit& d : digits(r.layout.mode(0), r.from.tile)) {
    if (d.dim != r.dim || d.extent == 1) continue;
    if (d.weight * d.extent > 32 || (d.extent & (d.extent - 1)) != 0)
      return error(fail(no_instruction, "several warps share a row")
                       .label(e.label(c.span))
                       .expect("rows that lie in the lanes of one warp")
                       .but_found("{} threads side by side", d.extent)
                       .help("load the tile with `lanes=32`"));
    for (int64_t step = d.weight; step < d.weight * d.extent; step *= 2) steps.push_back(step);
  }
  if (steps.empty()) return {};
  const std::string name = e.builder().kernel()[r.to.id].name;
  e.naming = name + "_other";
  TESSERA_TRY(layout, e.layout_of(r.to, c.span));
  TESSERA_TRY(other, e.registers(DType::float32, r.to.tile, layout, c.span));
  TESSERA_TRY(b, e.emit(c.span));
  const int64_t slots = layout.mode(1).size();
  TESSERA_TRY(to, e.run_of(r.to, c.span));
  TESSERA_TRY(from, e.run_of(other, c.span));
  for (int64_t step : steps) {
    const auto number = [&, b = b](int64_t n) { return core::Integers{{b->number(n)}}; };
    for (int64_t s = 0; s < slots; ++s)
      b->issue("shuffle",
               {core::Slice{other.id, b->number(s)}, core::Slice{r.to.id, b->number(s)},
                number(step), number(31), number(0xffffffff)},
               {{"mode", "bfly"}});
    b->compute({of_two(r.function), {to, from}, {to}, slots, {}});
  }
  e.wrote(r.to.id);
  return {};
}

Result<int> dimension(Call& c, const Fragment& of) {
  TESSERA_TRY(axis, c.integer("axis"));
  const auto rank = static_cast<int64_t>(of.tile.size());
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  return error(fail(wrong_shape, "the tile has no dimension {}", axis)
                   .label(c.e.label(c.span_of("axis")))
                   .expect("{} to {}", -rank, rank - 1)
                   .but_found("{}", axis)
                   .help("-1 is the last one"));
}

Result<Value> reduce(Call& c, const char* function) {
  Elaborator& e = c.e;
  const std::string name = e.naming;
  e.naming += "_of";
  TESSERA_TRY(from, e.keep(c["x"], c.span_of("x")));
  TESSERA_TRY(dim, dimension(c, from));
  TESSERA_TRY(layout, e.layout_of(from, c.span));
  std::vector<int64_t> tile = from.tile;
  tile[static_cast<std::size_t>(dim)] = 1;
  e.naming = name;
  TESSERA_TRY(to, e.registers(DType::float32, tile, without(layout, from.tile, dim), c.span));
  const Reduction r{from, to, layout, dim, function};
  TESSERA_CHECK(in_threads(c, r));
  TESSERA_CHECK(in_lanes(c, r));
  return Value{to};
}

Result<Value> sum(Call& c) {
  return reduce(c, "add");
}
Result<Value> amax(Call& c) {
  return reduce(c, "maximum");
}

/// Sums of what each lane has. Lanes that share a row keep theirs apart: `sum` puts them together.
Result<Value> lane_sum(Call& c) {
  Elaborator& e = c.e;
  const std::string name = e.naming;
  e.naming += "_of";
  TESSERA_TRY(from, e.keep(c["x"], c.span_of("x")));
  TESSERA_TRY(dim, dimension(c, from));
  TESSERA_TRY(layout, e.layout_of(from, c.span));
  std::vector<int64_t> tile = from.tile;
  const Layout lanes = one_a_lane(layout, tile, dim);
  e.naming = name;
  TESSERA_TRY(to, e.registers(DType::float32, tile, lanes, c.span));
  TESSERA_CHECK(in_threads(c, {from, to, layout, dim, "add"}));
  return Value{to};
}

constexpr Builtin records[] = {
    {"lane_sum", "x, axis",
     "Sums along a dimension of what each lane has, which is left with an element a lane",
     lane_sum},
    {"sum", "x, axis", "Sums along a dimension, which is left with one element", sum},
    {"amax", "x, axis", "The greatest element along a dimension", amax},
};

}  // namespace

namespace groups {
extern const Group reductions = {records};
}

}  // namespace tessera::language
