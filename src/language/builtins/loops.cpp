// Loops: plain ones, unrolled ones, parts of an extent, and turns of a ring.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

Term product(Term t, int64_t by) {
  int64_t known = 0;
  if (t->op == term::Op::constant && !__builtin_mul_overflow(t->value, by, &known))
    return t.pool().constant(known);
  return by == 1 ? t : t * by;
}

/// Writes a loop of the machine and counts it among those around its body.
Status counted(Elaborator& e, const std::string& counter, Term upper, bool unroll, Span span,
               const std::function<Status(Term)>& body) {
  return machine_loop(e, counter, upper, unroll, span, [&](Term i) {
    e.turns.push_back({i, upper});
    Status status = body(i);
    e.turns.pop_back();
    return status;
  });
}

LoopRef plain(std::string name, Term lower, Term upper, bool unroll, Span span) {
  LoopRef out{.name = std::move(name)};
  out.run = [=](Elaborator& e, const std::string& counter, const LoopRef::Body& body) {
    const bool zero = lower->op == term::Op::constant && lower->value == 0;
    return counted(e, counter, zero ? upper : upper - lower, unroll, span,
                   [&](Term i) { return body({Value{zero ? i : lower + i}}); });
  };
  return out;
}

Result<Value> range(Call& c) {
  Elaborator& e = c.e;
  TESSERA_TRY(first, c.number("first"));
  if (c.find("upper") == nullptr)
    return Value{plain("range", e.builder().number(0), first, false, c.span)};
  TESSERA_TRY(upper, c.number("upper"));
  return Value{plain("range", first, upper, false, c.span)};
}

Result<Value> unrolled(Call& c) {
  TESSERA_TRY(n, c.integer("count"));
  core::Builder& b = c.e.builder();
  return Value{plain("unrolled", b.number(0), b.number(n), true, c.span)};
}

/// Turns that are written one by one, each with a number that is known.
Result<Value> static_range(Call& c) {
  TESSERA_TRY(n, c.integer("count"));
  if (n > 1024)
    return error(fail(bad_constant, "{} turns are too many to write one by one", n)
                     .label(c.e.label(c.span))
                     .expect("at most 1024")
                     .help("write `unrolled` or `range`"));
  std::vector<Value> items;
  for (int64_t i = 0; i < n; ++i) items.push_back({i});
  return Value{Sequence{std::make_shared<const std::vector<Value>>(std::move(items))}};
}

Result<int64_t> divisor(Call& c, int64_t extent) {
  TESSERA_TRY(size, c.integer("size"));
  if (size >= 1 && extent % size == 0) return size;
  return error(fail(wrong_shape, "parts of {} do not fill {}", size, extent)
                   .label(c.e.label(c.span_of("size")))
                   .expect("a divisor of {}", extent)
                   .but_found("{}", size)
                   .help("choose a size that divides the extent"));
}

Result<Value> part(Call& c) {
  TESSERA_TRY(index, c.number("index"));
  TESSERA_TRY(size, c.integer("size"));
  return Value{Position{.index = index, .start = product(index, size), .size = size}};
}

// ---- rings

struct Ring {
  Term trips;
  int64_t size = 1, stages = 1;
  Span span;
};

bool has(Term t, Term leaf) {
  return term::any_node(t, [&](Term n) { return n == leaf; });
}

/// Turns of the ring before this loop's first, over the loops around: a product where they are the
/// same number in each turn, else a sum that the one loop around carries on. The producer's and the
/// consumers' loops then count alike. Null: no loop is around.
Result<Term> turns_before(Elaborator& e, const Ring& r) {
  core::Builder& b = e.builder();
  if (e.turns.size() == 1 && has(r.trips, e.turns[0].index)) {
    const std::string name = e.counter_name("before", b.number(0), b.number(core::most_carried));
    return b.carried(e.turns[0].index, name, r.trips);
  }
  Term outer;
  for (const Turn& t : e.turns) {
    for (const Turn& around : e.turns)
      if (has(r.trips, around.index) || has(t.trips, around.index))
        return error(fail(wrong_ring, "the ring has another number of turns each time")
                         .label(e.label(r.span))
                         .but_found("{} turns", to_string(r.trips))
                         .help("let it stand in one loop alone, or the extents of the loops be "
                               "the same in all turns of those around them"));
    outer = outer ? outer * t.trips + t.index : t.index;
  }
  return outer ? outer * r.trips : Term();
}

Position turn_of(const Ring& r, Term before, Term k) {
  return {.index = k,
          .start = product(k, r.size),
          .size = r.size,
          .count = before ? before + k : k,
          .stages = r.stages};
}

/// Parts of an extent, unrolled; with `stages` they pass through slots as a ring's do.
Result<Value> parts(Call& c) {
  TESSERA_TRY(extent, c.integer("extent"));
  TESSERA_TRY(size, divisor(c, extent));
  TESSERA_TRY(stages, c.integer("stages", 0));
  const Ring r{c.e.builder().number(extent / size), size, stages, c.span};
  LoopRef out{.name = "parts"};
  out.run = [r](Elaborator& e, const std::string& counter, const LoopRef::Body& body) -> Status {
    Term before;
    if (r.stages > 0) {
      TESSERA_TRY(turns, turns_before(e, r));
      before = turns;
    }
    return counted(e, counter, r.trips, true, r.span,
                   [&](Term i) { return body({Value{turn_of(r, before, i)}}); });
  };
  return Value{std::move(out)};
}

Result<Value> last_turn(Elaborator& e, const Ring& r) {
  TESSERA_TRY(before, turns_before(e, r));
  Position p = turn_of(r, before, r.trips - 1);
  p.count = (before ? before + r.trips : r.trips) - 1;
  return Value{p};
}

Result<Value> ring(Call& c) {
  TESSERA_TRY(extent, c.number("extent"));
  TESSERA_TRY(size, c.integer("size"));
  TESSERA_TRY(stages, c.integer("stages"));
  if (size < 1 || stages < 1)
    return error(fail(bad_constant, "a ring has at least one slot, and turns of one element")
                     .label(c.e.label(c.span))
                     .but_found("size {}, stages {}", size, stages)
                     .help("write `ring(K, BK, STAGES)`"));
  const Ring r{c.e.builder().divide_up(extent, size), size, stages, c.span};
  LoopRef out{.name = "ring"};
  out.run = [r](Elaborator& e, const std::string& counter, const LoopRef::Body& body) -> Status {
    TESSERA_TRY(before, turns_before(e, r));
    return counted(e, counter, r.trips, false, r.span,
                   [&](Term k) { return body({Value{turn_of(r, before, k)}}); });
  };
  out.attribute = [r](Elaborator& e, std::string_view name) -> Result<Value> {
    if (name == "last") return last_turn(e, r);
    if (name == "turns") return Value{r.trips};
    return Value{};
  };
  out.turns = [r](Elaborator&) { return r.trips; };
  out.stages = r.stages;
  return Value{std::move(out)};
}

/// Where a loop over the ring stands in one over the tiles alone, its count goes on from their
/// product.
Result<Value> next_turns(Call& c) {
  const auto* const steps = c.find("steps")->value.as<LoopRef>();
  const auto* const work = c.find("work")->value.as<LoopRef>();
  if (steps == nullptr || steps->stages == 0 || work == nullptr || !work->turns ||
      work->stages != 0)
    return error(fail(wrong_call, "only a ring has slots, and only tiles are taken in turns")
                     .label(c.e.label(c.span))
                     .expect("`next_turns(steps, work)`, of a `ring` and of `tiles`")
                     .but_found("`{}`", c.e.source().text(c.span))
                     .help("give both names first: `steps = ring(K, BK, STAGES)`"));
  const Term turns = steps->turns(c.e), done = work->turns(c.e) * turns;
  if (term::any_node(turns, [](Term n) { return n->op == term::Op::counter; }))
    return error(fail(wrong_ring, "the ring has another number of turns each time")
                     .label(c.e.label(c.span))
                     .but_found("{} turns", to_string(turns))
                     .help("let the ring's extent be the same for all tiles"));
  const Span span = c.span;
  LoopRef out{.name = "next_turns"};
  out.run = [=, stages = steps->stages](Elaborator& e, const std::string& counter,
                                        const LoopRef::Body& body) -> Status {
    if (!e.turns.empty())
      return error(fail(wrong_ring, "the turns after all tiles stand in a loop")
                       .label(e.label(span))
                       .help("put them behind the loop over the tiles"));
    return machine_loop(e, counter, e.builder().number(stages), true, span, [&](Term s) {
      return body({Value{
          Position{.index = s, .start = s, .size = 1, .count = done + s, .stages = stages}}});
    });
  };
  return Value{std::move(out)};
}

Result<Value> of_position(Call& c, Term (*take)(const Position&)) {
  return Value{take(*c.self->as<Position>())};
}
Result<Value> index_of(Call& c) {
  return of_position(c, [](const Position& p) { return p.index; });
}
Result<Value> start_of(Call& c) {
  return of_position(c, [](const Position& p) { return p.start; });
}
Result<Value> size_of_position(Call& c) {
  return Value{c.self->as<Position>()->size};
}
Result<Value> is_first(Call& c) {
  return of_position(c,
                     [](const Position& p) { return equals(p.index, p.index.pool().constant(0)); });
}
Result<Value> count_of(Call& c) {
  const auto& p = *c.self->as<Position>();
  if (p.stages > 0) return Value{p.count};
  return error(fail(wrong_ring, "this position is none of a ring")
                   .label(c.e.label(c.span))
                   .help("say `.index`"));
}

constexpr Builtin records[] = {
    {"range", "first, upper=", "A loop from 0 or `first`, up to and without its upper bound",
     range},
    {"unrolled", "count", "A loop of known length whose counter may choose registers", unrolled},
    {"static_range", "count", "Turns written one by one, with numbers that are known",
     static_range},
    {"parts", "extent, size, stages=",
     "An extent in parts, unrolled; with `stages` through the slots of a ring", parts},
    {"part", "index, size", "The elements [index * size, (index + 1) * size)", part},
    {"ring", "extent, size, stages", "An extent in parts that pass through the slots of a ring",
     ring},
    {"next_turns", "steps, work",
     "Behind a loop over tiles with one over a ring in it: the turns that would come next, one for "
     "each slot",
     next_turns},
    {".position.index", "", "Which part it is, from 0", index_of, true},
    {".position.start", "", "Its first element", start_of, true},
    {".position.size", "", "Its elements", size_of_position, true},
    {".position.first", "", "True of part 0", is_first, true},
    {".position.count", "", "The turns of the ring before it, over all loops around", count_of,
     true},
};

}  // namespace

namespace groups {
extern const Group loops = {records};
}

}  // namespace tessera::language
