// What stands in brackets: parts of tensors, of shared memory, of registers; slots of barriers.
#include "language/elaborator.h"

namespace tessera::language {
namespace {

bool is_all(const syntax::Expr& e) {
  const auto* slice = e.as<syntax::Slice>();
  return slice != nullptr && !slice->from && !slice->to && !slice->step;
}

Term sum(Term a, Term b) {
  if (a->op == term::Op::constant && a->value == 0) return b;
  if (b->op == term::Op::constant && b->value == 0) return a;
  return a + b;
}

}  // namespace

Result<Value> Elaborator::subscript(const Value& of, const syntax::Subscript& s, Span span) {
  if (const auto* t = of.as<TensorRef>()) return box(*t, s, span);
  if (const auto* b = of.as<BoxRef>()) return part(*b, s, span);
  if (const auto* b = of.as<SharedRef>()) return part(*b, s, span);
  if (const auto* b = of.as<BarriersRef>()) return slot(*b, s, span);
  if (const auto* n = of.as<NamedRef>(); n != nullptr && !n->one) return place(*n, s, span);
  if (const auto* f = of.as<Fragment>()) return part(*f, s, span);
  if (const auto* p = of.as<Position>()) return part(*p, s, span);
  if (const auto* items = of.as<Sequence>()) {
    TESSERA_TRY(i, evaluate(s.indices.front()));
    const auto* n = i.as<int64_t>();
    const auto size = static_cast<int64_t>(items->items->size());
    if (s.indices.size() == 1 && n != nullptr && *n >= -size && *n < size)
      return (*items->items)[static_cast<std::size_t>(*n < 0 ? *n + size : *n)];
  }
  return error(fail(wrong_kind, "{} has no such parts", kind_of(of))
                   .label(label(span))
                   .help("tensors, shared memory, barriers and registers are taken apart by "
                         "brackets"));
}

Result<Elaborator::Index> Elaborator::index(const syntax::Expr& e, int64_t extent) {
  Index out;
  if (is_all(e)) {
    out.start = builder_->number(0);
    out.extent = extent;
    out.whole = true;
    return out;
  }
  if (e.as<syntax::Slice>() != nullptr)
    return error(fail(wrong_place, "parts are not taken by bounds")
                     .label(label(e.span))
                     .expect("`:` for all of it, an index, or a position")
                     .help("write `part(i, size)`, or go over `parts(extent, size)`"));
  TESSERA_TRY(v, evaluate(e));
  if (const auto* p = v.as<Position>()) {
    out.start = p->start;
    out.extent = p->size;
    out.position = *p;
    return out;
  }
  TESSERA_TRY(n, number(v, e.span));
  if (n->op == term::Op::constant && extent > 0 && (n->value < 0 || n->value >= extent))
    return error(fail(wrong_shape, "the index lies outside")
                     .label(label(e.span))
                     .expect("0 to {}", extent - 1)
                     .but_found("{}", n->value)
                     .help("the first has the index 0"));
  out.start = n;
  out.kept = false;
  return out;
}

Status Elaborator::dimensions(const syntax::Subscript& s, std::size_t have, std::string_view what,
                              Span span) {
  if (s.indices.size() <= have) return {};
  return error(fail(wrong_shape, "{} has fewer dimensions than the brackets", what)
                   .label(label(span))
                   .expect("at most {} indices", have)
                   .but_found("{}", s.indices.size())
                   .help("name one index a dimension; those at the end may be left out"));
}

Result<Value> Elaborator::box(const TensorRef& t, const syntax::Subscript& s, Span span) {
  const core::Tensor& tensor = builder_->kernel()[t.id];
  const std::size_t named = t.has.empty() ? tensor.extents.size() : t.has.size();
  TESSERA_CHECK(dimensions(s, named, "`" + tensor.name + "`", span));
  BoxRef out{t.id, {}};
  for (std::size_t i = 0; i < named; ++i) {
    const bool given = i < s.indices.size();
    if (!t.has.empty() && !t.has[i]) {  // the same elements for each index
      if (given) TESSERA_CHECK(index(s.indices[i], 0));
      continue;
    }
    const std::optional<int64_t> extent = tensor.extents[out.dims.size()]->facts.constant();
    if ((!given || is_all(s.indices[i])) && !extent)
      return error(
          fail(not_constant, "a part of a tensor has a known size")
              .label(label(given ? s.indices[i].span : span))
              .but_found("all of dimension {} of `{}`, which the launch chooses", i, tensor.name)
              .help("go over it by `tiles`, `ring` or `parts`"));
    if (!given) {
      out.dims.push_back({builder_->number(0), *extent, true});
      continue;
    }
    TESSERA_TRY(at, index(s.indices[i], extent.value_or(0)));
    out.dims.push_back({at.start, at.kept ? at.extent : 1, at.kept});
  }
  return Value{std::move(out)};
}

/// A part of a position's elements, as a position of its own.
Result<Value> Elaborator::part(const Position& p, const syntax::Subscript& s, Span span) {
  TESSERA_TRY(at, index(s.indices.front(), p.size));
  if (s.indices.size() != 1 || !at.position || p.size % at.extent != 0)
    return error(fail(wrong_kind, "a position has parts that are positions")
                     .label(label(span))
                     .expect("a position whose size divides {}", p.size)
                     .help("go over `parts({}, size)`, or write `part(i, size)`", p.size));
  const int64_t pieces = p.size / at.extent;
  const Term first = pieces == 1 ? p.index : p.index * pieces;
  return Value{Position{
      .index = sum(first, at.position->index), .start = sum(p.start, at.start), .size = at.extent}};
}

Result<Value> Elaborator::part(const BoxRef& b, const syntax::Subscript& s, Span span) {
  BoxRef out = b;
  TESSERA_CHECK(dimensions(s, shape_of(b).size(), "the box", span));
  std::size_t given = 0;
  for (BoxRef::Dim& d : out.dims) {
    if (!d.kept || given == s.indices.size()) continue;
    TESSERA_TRY(at, index(s.indices[given], d.extent));
    TESSERA_CHECK(fits(at, d.extent, s.indices[given].span));
    ++given;
    d.start = sum(d.start, at.start);
    d.extent = at.kept ? at.extent : 1;
    d.kept = at.kept;
  }
  return Value{std::move(out)};
}

Status Elaborator::fits(const Index& at, int64_t extent, Span span) {
  const bool known = at.start->op == term::Op::constant;
  if (!at.kept || (at.extent <= extent && (!known || at.start->value + at.extent <= extent)))
    return {};
  return error(
      fail(wrong_shape, "the part is not inside")
          .label(label(span))
          .expect("elements of 0 to {}", extent - 1)
          .but_found("{}", known ? fmt::format("{} elements from {}", at.extent, at.start->value)
                                 : fmt::format("{} elements", at.extent))
          .help("take a smaller part"));
}

Result<Term> Elaborator::ring_slot(const Position& p, int64_t slots, std::string_view of,
                                   Span span) {
  if (p.stages == slots) return floor_mod(p.count, slots);
  return error(fail(wrong_ring, "the ring turns over {} slots, `{}` has {}", p.stages, of, slots)
                   .label(label(span))
                   .expect("{} slots", slots)
                   .but_found("a ring of {}", p.stages)
                   .help("give both the same number"));
}

Result<Value> Elaborator::part(const SharedRef& b, const syntax::Subscript& s, Span span) {
  SharedRef out = b;
  const std::string& name = builder_->kernel()[b.id].name;
  TESSERA_CHECK(dimensions(s, b.kept.size(), "`" + name + "`", span));
  if (b.transposed)
    return error(fail(wrong_place, "a transposed matrix is not taken apart")
                     .label(label(span))
                     .help("take the part first: `b[k].T`"));
  out.kept.clear();
  out.extents.clear();
  for (std::size_t i = 0; i < b.kept.size(); ++i) {
    const auto mode = static_cast<std::size_t>(b.kept[i]);
    Index at{.start = builder_->number(0), .extent = b.extents[i]};
    if (i < s.indices.size()) {
      const Span where = s.indices[i].span;
      TESSERA_TRY(given, index(s.indices[i], b.extents[i]));
      at = given;
      if (at.position && at.position->stages > 0) {
        TESSERA_TRY(slot, ring_slot(*at.position, b.extents[i], name, where));
        at = {.start = slot, .kept = false};
      }
      TESSERA_CHECK(fits(at, b.extents[i], where));
    }
    out.at[mode] = sum(b.at[mode], at.start);
    if (!at.kept) continue;
    out.kept.push_back(b.kept[i]);
    out.extents.push_back(at.extent);
  }
  return Value{std::move(out)};
}

Result<Value> Elaborator::slot(const BarriersRef& b, const syntax::Subscript& s, Span span) {
  const core::Barriers& barriers = builder_->kernel()[b.id];
  TESSERA_CHECK(dimensions(s, 1, "`" + barriers.name + "`", span));
  TESSERA_TRY(at, index(s.indices.front(), barriers.count));
  if (!at.position && at.kept)
    return error(fail(wrong_kind, "one barrier is named at a time")
                     .label(label(s.indices.front().span))
                     .help("write its index, or a position of a ring"));
  if (at.position && at.position->stages == 0)
    return error(fail(wrong_ring, "this position has no slot: it is none of a ring")
                     .label(label(s.indices.front().span))
                     .help("go over `ring(extent, size, stages)`, or write `.index`"));
  if (!at.position) return Value{BarrierRef{b.id, at.start, {}}};
  TESSERA_TRY(slot, ring_slot(*at.position, barriers.count, barriers.name, s.indices.front().span));
  return Value{BarrierRef{b.id, slot, at.position->count}};
}

Result<Value> Elaborator::place(const NamedRef& n, const syntax::Subscript& s, Span span) {
  TESSERA_CHECK(dimensions(s, 1, "the array of named barriers", span));
  TESSERA_TRY(v, evaluate(s.indices.front()));
  TESSERA_TRY(at, number(v, s.indices.front().span));
  if (at->op == term::Op::constant && (at->value < 0 || at->value >= n.count))
    return error(fail(wrong_shape, "the index lies outside")
                     .label(label(s.indices.front().span))
                     .expect("0 to {}", n.count - 1)
                     .but_found("{}", at->value)
                     .help("the first has the index 0"));
  NamedRef out = n;
  out.one = true;
  out.first = at->op == term::Op::constant && n.first->op == term::Op::constant
                  ? builder_->number(n.first->value + at->value)
                  : sum(n.first, at);
  return Value{out};
}

Result<Value> Elaborator::part(const Fragment& f, const syntax::Subscript& s, Span span) {
  TESSERA_CHECK(dimensions(s, f.tile.size(), "the tile", span));
  std::vector<std::optional<Position>> parts(f.tile.size());
  for (std::size_t i = 0; i < s.indices.size(); ++i) {
    TESSERA_TRY(at, index(s.indices[i], f.tile[i]));
    if (at.whole) continue;
    if (!at.position)
      return error(fail(wrong_kind, "registers are taken apart by positions")
                       .label(label(s.indices[i].span))
                       .help("write `part(i, size)`, or go over `parts(extent, size)`"));
    TESSERA_CHECK(fits(at, f.tile[i], s.indices[i].span));
    parts[i] = at.position;
  }
  TESSERA_TRY(out, part_of(f, parts, span));
  return Value{std::move(out)};
}

}  // namespace tessera::language
