// The tiles of a result, shared by the blocks of the grid.
#include "core/deal.h"
#include "language/elaborator.h"

namespace tessera::language {
namespace {

using term::Op;

/// How the blocks of a cluster lie: one above the other, or side by side.
enum class Along : uint8_t { rows, columns };

struct Extent {
  int64_t size = 1;
  Term count;  // tiles along it; of the last two, of a cluster's tiles together
};

struct Tiles {
  std::vector<Extent> extents;  // batches, the outermost first, and then rows, or rows and columns
  int64_t group = 1;
  bool persistent = true;
  bool alternates = false;  // every second round of blocks goes from the last to the first
  bool even = false;        // no more blocks than the number of turns takes
  int64_t cluster = 1;      // blocks that work on tiles beside each other
  Along along = Along::rows;
  int64_t stages = 0;  // slots that the turns pass through; 0: none
  Span span;
  [[nodiscard]] std::size_t batches() const { return extents.size() > 2 ? extents.size() - 2 : 0; }
  /// Tiles that are beside each other in a cluster, along dimension `d`.
  [[nodiscard]] int64_t together(std::size_t d) const {
    return d == batches() + (along == Along::columns ? 1 : 0) ? cluster : 1;
  }
};

bool is_known(Term t) {
  return t->op == term::Op::constant;
}
bool is_one(Term t) {
  return is_known(t) && t->value == 1;
}
Term product(Term a, Term b) {
  int64_t known = 0;
  if (is_known(a) && is_known(b) && !__builtin_mul_overflow(a->value, b->value, &known))
    return a.pool().constant(known);
  return is_one(a) ? b : is_one(b) ? a : a * b;
}

/// Tiles from dimension d on; of a cluster's tiles together.
Term tiles_from(core::Builder& b, const Tiles& t, std::size_t d) {
  Term out = b.number(1);
  for (std::size_t i = t.extents.size(); i-- > d;) out = product(t.extents[i].count, out);
  return out;
}

/// Position `index` of the cluster along dimension d, or this block's of them.
Value position(core::Builder& b, const Tiles& t, std::size_t d, Term index) {
  const int64_t size = t.extents[d].size, n = t.together(d);
  if (n > 1) index = index * n + b.at().rank;
  const Term start = index->op == term::Op::constant ? b.number(index->value * size)
                     : size == 1                     ? index
                                                     : index * size;
  return Value{Position{.index = index, .start = start, .size = size}};
}

/// `group` tiles of rows side by side, then the next of the columns: tiles that are worked on
/// together share operands in the cache.
void place_matrix(core::Builder& b, const Tiles& t, Term at, std::vector<Value>& out) {
  const std::size_t d = t.batches();
  const Term rows = t.extents[d].count, columns = t.extents[d + 1].count;
  const Term in_group = t.group == 1 ? columns : columns * t.group;
  if (t.group == 1) {
    out.push_back(position(b, t, d, b.make(Op::divide, {at, in_group})));
    out.push_back(position(b, t, d + 1, b.make(Op::remainder, {at, in_group})));
    return;
  }
  const Term first = b.make(Op::divide, {at, in_group}) * t.group;
  const Term rest = b.make(Op::remainder, {at, in_group});
  const Term high =
      b.make(Op::max, {b.number(1), b.make(Op::min, {rows - first, b.number(t.group)})});
  out.push_back(position(b, t, d, first + b.make(Op::remainder, {rest, high})));
  out.push_back(position(b, t, d + 1, b.make(Op::divide, {rest, high})));
}

std::vector<Value> place(core::Builder& b, const Tiles& t, Term at) {
  std::vector<Value> out;
  for (std::size_t d = 0; d < t.batches(); ++d) {
    if (is_one(t.extents[d].count)) {
      out.push_back(position(b, t, d, b.number(0)));
      continue;
    }
    const Term inner = tiles_from(b, t, d + 1);
    out.push_back(position(b, t, d, b.make(Op::divide, {at, inner})));
    at = b.make(Op::remainder, {at, inner});
  }
  if (t.extents.size() == 1)
    out.push_back(position(b, t, 0, at));
  else
    place_matrix(b, t, at, out);
  return out;
}

Term clusters(const Tiles& t, Term blocks) {
  return t.cluster == 1 ? blocks : floor_div(blocks, t.cluster);
}

Term at_least_one(core::Builder& b, const Tiles& t, Term n) {
  return t.cluster == 1 ? n : b.make(Op::max, {n, b.number(1)});
}

/// The block's share of the tiles; of a cluster's blocks together.
core::Deal share(core::Builder& b, const Tiles& t) {
  return {tiles_from(b, t, 0), clusters(t, b.at().block),
          at_least_one(b, t, clusters(t, b.at().blocks)), t.alternates};
}

/// How many of `by` each `a` takes, of terms that are at least 1: at least 1, as divisors have to
/// be.
Term ceil_div(core::Builder& b, Term a, Term by) {
  return b.make(Op::divide, {a - 1, by}) + 1;
}

/// The blocks of a grid that stays, clusters together: all that run at once, or where they are to
/// have even shares as few as take no more turns.
Term staying(core::Builder& b, const Tiles& t, Term all) {
  const Term most = at_least_one(b, t, b.make(Op::min, {clusters(t, b.at().multiprocessors), all}));
  if (!t.even) return most;
  return ceil_div(b, all, ceil_div(b, all, most));
}

Status run(Elaborator& e, const Tiles& t, const LoopRef::Body& body) {
  core::Builder& b = e.builder();
  const Term all = tiles_from(b, t, 0);
  const Term busy = t.persistent ? staying(b, t, all) : all;
  TESSERA_CHECK(e.set_grid(t.cluster == 1 ? busy : busy * t.cluster, t.span));
  if (!t.persistent) return body(place(b, t, clusters(t, b.at().block)));
  const core::Deal deal = share(b, t);
  const Term turns = core::rounds_of(deal);
  return machine_loop(e, "turn", turns, false, t.span, [&](Term turn) {
    e.turns.push_back({turn, turns, true});
    Status status = body(place(b, t, core::item_of(deal, turn)));
    e.turns.pop_back();
    return status;
  });
}

/// Which turn of the loop over these tiles the block is in.
Result<Value> turn_of(Elaborator& e, const Tiles& t) {
  const Term turns = core::rounds_of(share(e.builder(), t));
  for (const Turn& around : e.turns)
    if (t.persistent && around.of_tiles && around.trips == turns)
      return Value{Position{.index = around.index,
                            .start = around.index,
                            .size = 1,
                            .count = around.index,
                            .stages = t.stages}};
  return error(fail(wrong_place, "the turn of a loop over tiles is known within it alone")
                   .label(e.label(t.span, "these tiles"))
                   .expect("a loop of the machine over these tiles around it")
                   .but_found("{}", t.persistent ? "none" : "one tile a block, and no loop")
                   .help("write `for m, n in work:` around it"));
}

/// `extents`: an extent and the size of its tiles, by turns.
Status read_extents(Call& c, Tiles& t) {
  std::vector<const Call::Bound*> given;
  for (const Call::Bound& b : c.bound)
    if (b.name == "extents") given.push_back(&b);
  const auto refuse = [&] {
    return error(fail(wrong_call, "a tile has at least one element along each extent")
                     .label(c.e.label(c.span))
                     .expect("`tiles(M, 128)`, `tiles(M, 128, N, 256)` or, with batches in front, "
                             "`tiles(L, 1, M, 128, N, 256)`")
                     .but_found("`{}`", c.e.source().text(c.span))
                     .help("write a size behind each extent"));
  };
  if (given.empty() || given.size() % 2 != 0) return refuse();
  for (std::size_t i = 0; i < given.size(); i += 2) {
    TESSERA_TRY(n, c.e.number(given[i]->value, given[i]->span));
    const Value& size = given[i + 1]->value;
    if (size.as<Term>() != nullptr)
      return error(fail(not_constant, "the size of a tile has to be known before the launch")
                       .label(c.e.label(given[i + 1]->span, "chosen by the launch or the thread"))
                       .help("write a number, or make it a `const` of the kernel"));
    const auto* s = size.as<int64_t>();
    if (s == nullptr || *s < 1 || t.group < 1) return refuse();
    t.extents.push_back({*s, n});
  }
  for (std::size_t d = 0; d < t.extents.size(); ++d) {
    Extent& e = t.extents[d];
    const int64_t of_cluster = e.size * t.together(d);
    if (is_known(e.count) && e.count->value > 0)
      e.count = c.e.builder().number((e.count->value - 1) / of_cluster + 1);
    else if (of_cluster > 1)
      e.count = c.e.builder().divide_up(e.count, of_cluster);
  }
  return {};
}

Status read_cluster(Call& c, Tiles& t, bool matrix) {
  const int64_t blocks = c.e.builder().kernel().cluster;
  TESSERA_TRY(along, c.text("cluster", ""));
  const bool known = along == "rows" || (along == "columns" && matrix);
  if ((known || along.empty()) && (blocks == 1 || known)) {
    t.cluster = blocks;
    t.along = along == "columns" ? Along::columns : Along::rows;
    return {};
  }
  return error(fail(wrong_call, "nothing says how the tiles of a cluster's {} blocks lie", blocks)
                   .label(c.e.label(c.span_of("cluster")))
                   .expect("{}", matrix ? "cluster=\"rows\", one above the other, or "
                                          "cluster=\"columns\", side by side"
                                        : "cluster=\"rows\", one behind the other")
                   .but_found("{}", along.empty() ? "none of them" : "\"" + along + "\"")
                   .help("write `tiles(M, 128, N, 256, cluster=\"rows\")`"));
}

Result<Value> tiles(Call& c) {
  Tiles t;
  t.span = c.span;
  TESSERA_TRY(group, c.integer("group", 1));
  TESSERA_TRY(persistent, c.flag("persistent", true));
  TESSERA_TRY(stages, c.integer("stages", 0));
  t.group = group;
  TESSERA_TRY(alternates, c.flag("alternate", false));
  TESSERA_TRY(even, c.flag("even", false));
  t.persistent = persistent;
  t.alternates = alternates;
  t.even = even;
  t.stages = stages;
  if (even && (!persistent || alternates))
    return error(fail(wrong_call, "shares are even where blocks stay, and take tiles in one order")
                     .label(c.e.label(c.span_of("even")))
                     .help("leave out `even`, `persistent` and `alternate`, or all but one"));
  std::size_t given = 0;
  for (const Call::Bound& b : c.bound) given += b.name == "extents" ? 1 : 0;
  t.extents.reserve(given / 2);
  TESSERA_CHECK(read_cluster(c, t, given > 2));
  TESSERA_CHECK(read_extents(c, t));
  LoopRef out{.name = "tiles"};
  out.yields = static_cast<int>(t.extents.size());
  out.run = [t](Elaborator& e, const std::string&, const LoopRef::Body& body) {
    return run(e, t, body);
  };
  out.attribute = [t](Elaborator& e, std::string_view name) -> Result<Value> {
    return name == "turn" ? turn_of(e, t) : Result<Value>(Value{});
  };
  if (t.persistent)
    out.turns = [t](Elaborator& e) { return core::rounds_of(share(e.builder(), t)); };
  return Value{std::move(out)};
}

constexpr Builtin records[] = {
    {"tiles", "*extents, group=, persistent=, alternate=, even=, cluster=, stages=",
     "The tiles of one extent or more, shared by the blocks", tiles},
};

}  // namespace

namespace groups {
extern const Group tiles = {records};
}

}  // namespace tessera::language
