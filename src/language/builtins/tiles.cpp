// The tiles of a result, shared by the blocks of the grid.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

using term::Op;

struct Tiles {
  int64_t size[2] = {1, 1};
  Term count[2];
  int dimensions = 1;
  int64_t group = 1;
  bool persistent = true;
  Span span;
  [[nodiscard]] Term all() const { return dimensions == 1 ? count[0] : count[0] * count[1]; }
};

/// `group` tiles of the first dimension side by side, then the next of the second one: tiles that
/// are worked on together share operands in the cache.
std::vector<Value> place(core::Builder& b, const Tiles& t, Term at) {
  const auto position = [](Term index, int64_t size) {
    return Value{Position{.index = index, .start = index * size, .size = size}};
  };
  if (t.dimensions == 1) return {position(at, t.size[0])};
  const Term in_group = t.group == 1 ? t.count[1] : t.count[1] * t.group;
  if (t.group == 1)
    return {position(b.make(Op::divide, {at, in_group}), t.size[0]),
            position(b.make(Op::remainder, {at, in_group}), t.size[1])};
  const Term first = b.make(Op::divide, {at, in_group}) * t.group;
  const Term rest = b.make(Op::remainder, {at, in_group});
  const Term rows =
      b.make(Op::max, {b.number(1), b.make(Op::min, {t.count[0] - first, b.number(t.group)})});
  return {position(first + b.make(Op::remainder, {rest, rows}), t.size[0]),
          position(b.make(Op::divide, {rest, rows}), t.size[1])};
}

Status run(Elaborator& e, const Tiles& t, const LoopRef::Body& body) {
  core::Builder& b = e.builder();
  const Term all = t.all();
  const Term grid = t.persistent ? b.make(Op::min, {b.at().multiprocessors, all}) : all;
  TESSERA_CHECK(e.set_grid(grid, t.span));
  if (!t.persistent) return body(place(b, t, b.at().block));
  const Term turns = b.make(Op::divide, {all - b.at().block + b.at().blocks - 1, b.at().blocks});
  return machine_loop(e, "turn", turns, false, t.span, [&](Term turn) {
    e.turns.push_back({turn, turns});
    Status status = body(place(b, t, b.at().block + turn * b.at().blocks));
    e.turns.pop_back();
    return status;
  });
}

Result<Value> tiles(Call& c) {
  Tiles t;
  t.span = c.span;
  TESSERA_TRY(group, c.integer("group", 1));
  TESSERA_TRY(persistent, c.flag("persistent", true));
  t.group = group;
  t.persistent = persistent;
  t.dimensions = c.find("columns") == nullptr ? 1 : 2;
  for (int d = 0; d < t.dimensions; ++d) {
    const std::string_view extent = d == 0 ? "rows" : "columns",
                           size = d == 0 ? "rows_size" : "columns_size";
    TESSERA_TRY(n, c.number(extent));
    TESSERA_TRY(s, c.integer(size, 0));
    if (s < 1 || group < 1)
      return error(fail(wrong_call, "a tile has at least one element along each extent")
                       .label(c.e.label(c.span))
                       .expect("`tiles(M, 128)` or `tiles(M, 128, N, 256)`")
                       .help("write a size behind each extent"));
    t.size[d] = s;
    t.count[d] = c.e.builder().divide_up(n, s);
  }
  LoopRef out{.name = "tiles"};
  out.yields = t.dimensions;
  out.run = [t](Elaborator& e, const std::string&, const LoopRef::Body& body) {
    return run(e, t, body);
  };
  return Value{std::move(out)};
}

constexpr Builtin records[] = {
    {"tiles", "rows, rows_size, columns=, columns_size=, group=, persistent=",
     "The tiles of one extent or two, shared by the blocks", tiles},
};

}  // namespace

namespace groups {
extern const Group tiles = {records};
}

}  // namespace tessera::language
