// Functions of values that are no functions of single elements: the identity, conversions, bounds.
#include <limits>

#include "language/elaborator.h"

namespace tessera::language {
namespace {

Result<Value> identity(Call& c) {
  return c["x"];
}

/// The elements in registers of another type.
Result<Value> to(Call& c) {
  TESSERA_TRY(element, c.element("element"));
  TESSERA_TRY(e, c.e.elementwise(*c.self, c.span));
  const bool narrower = size_of(element) < size_of(e.element);
  e.element = element;
  if (!narrower) return Value{std::move(e)};
  TESSERA_TRY(kept, c.e.keep(Value{std::move(e)}, c.span));  // which rounds
  return Value{std::move(kept)};
}

Result<Value> extreme(Call& c, std::string_view op, const char* of_elements) {
  const bool elements = c["a"].as<Fragment>() != nullptr || c["a"].as<Elementwise>() != nullptr ||
                        c["b"].as<Fragment>() != nullptr || c["b"].as<Elementwise>() != nullptr;
  if (elements) return c.e.apply(of_elements, {&c["a"], &c["b"]}, c.span);
  return c.e.binary(op, c["a"], c["b"], c.span);
}
Result<Value> min(Call& c) {
  return extreme(c, "min", "minimum");
}
Result<Value> max(Call& c) {
  return extreme(c, "max", "maximum");
}

Result<Value> cdiv(Call& c) {
  TESSERA_TRY(by, c.integer("b"));
  if (by < 1)
    return error(fail(bad_constant, "divisors are at least 1")
                     .label(c.e.label(c.span_of("b")))
                     .but_found("{}", by)
                     .help("write a number from 1"));
  TESSERA_TRY(sum, c.e.binary("+", c["a"], Value{by - 1}, c.span));
  return c.e.binary("//", sum, Value{by}, c.span);
}

Value list(const std::vector<int64_t>& numbers) {
  std::vector<Value> items;
  for (int64_t n : numbers) items.push_back({n});
  return {Sequence{std::make_shared<const std::vector<Value>>(std::move(items))}};
}
/// The extents of what lies in memory or in registers.
Result<Value> shape(Call& c) {
  if (const auto* b = c.self->as<BoxRef>()) return list(shape_of(*b));
  if (const auto* s = c.self->as<SharedRef>()) return list(shape_of(*s));
  if (const auto* f = c.self->as<Fragment>()) return list(f->tile);
  return list(c.self->as<Elementwise>()->tile);
}

/// Where each element lies along a dimension of its tile.
Result<Value> indices(Call& c) {
  TESSERA_TRY(f, c.the<Fragment>("x", "registers: acc"));
  TESSERA_TRY(axis, c.integer("axis"));
  const auto rank = static_cast<int64_t>(f.tile.size());
  if (axis < -rank || axis >= rank)
    return error(fail(wrong_shape, "the tile has no dimension {}", axis)
                     .label(c.e.label(c.span_of("axis")))
                     .expect("{} to {}", -rank, rank - 1)
                     .but_found("{}", axis)
                     .help("-1 is the last one"));
  TESSERA_TRY(out,
              c.e.index_of_elements(f, static_cast<int>(axis < 0 ? axis + rank : axis), c.span));
  return Value{out};
}

Result<Value> infinity(Call&) {
  return Value{std::numeric_limits<double>::infinity()};
}

constexpr Builtin records[] = {
    {"indices", "x, axis", "The index of each element along a dimension, an integer of the element",
     indices},
    {"inf", "", "Infinity", infinity, true, true},
    {"identity", "x", "x itself: the epilogue that does nothing", identity, false, true},
    {".registers.to", "element", "The elements, rounded to another type", to},
    {".elements.to", "element", "The elements, rounded to another type", to},
    {".box.shape", "", "Its extents", shape, true},
    {".shared.shape", "", "Its extents", shape, true},
    {".registers.shape", "", "Its extents", shape, true},
    {".elements.shape", "", "Its extents", shape, true},
    {"min", "a, b", "The lesser of two integers, or of elements", min, false, true},
    {"max", "a, b", "The greater of two integers, or of elements", max, false, true},
    {"cdiv", "a, b", "a / b rounded up", cdiv, false, true},
};

}  // namespace

namespace groups {
extern const Group elements = {records};
}

}  // namespace tessera::language
