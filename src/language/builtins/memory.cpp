// Tiles between tensors and registers, in vectors as wide as the addresses allow; what may lie
// outside of the tensor is bounded.
#include "language/elaborator.h"
#include "language/tile_layout.h"
#include "language/transfer.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::language {
namespace {

constexpr int64_t widest = 16;                            // bytes of a load
constexpr term::Effort little = {.operations = 1 << 18};  // for one bound

struct Transfer {
  BoxRef box;
  Fragment registers;
  Layout layout;
  int64_t vector = 1;  // elements
};

/// True where vectors of n elements begin at multiples of n of the tensor's elements, and lie in
/// the tensor whole or not at all.
bool may_be_wide(const core::Tensor& t, const BoxRef& box, int64_t n) {
  const std::size_t last = t.extents.size() - 1;
  if (t.strides[last]->facts.constant() != 1 || !t.extents[last]->facts.multiple_of(n))
    return false;
  for (std::size_t i = 0; i < last; ++i)
    if (!t.strides[i]->facts.multiple_of(n)) return false;
  return box.dims[last].kept && box.dims[last].start->facts.multiple_of(n) &&
         box.dims[last].extent % n == 0;
}

/// Where slot `slot` of this thread lies in the tensor.
std::vector<Term> place(Elaborator& e, const Transfer& t, Term slot) {
  const std::vector<Term> at = inside(e, t.registers.tile, t.layout, slot);
  std::vector<Term> out;
  std::size_t kept = 0;
  for (const BoxRef::Dim& d : t.box.dims) {
    const Term inside = d.kept ? at[kept++] : Term();
    const bool begins = d.start->op == term::Op::constant && d.start->value == 0;
    out.push_back(!inside ? d.start : begins ? inside : d.start + inside);
  }
  return out;
}

/// The condition under which this thread is the first of those that have the same elements.
std::optional<Term> first_of_same(Elaborator& e, const Transfer& t) {
  const Term thread = e.threads().warp * 32 + e.builder().at().lane;
  std::optional<Term> out;
  for (const Digit& d : digits(t.layout.mode(0), t.registers.tile)) {
    if (d.dim >= 0 || d.extent == 1) continue;
    const Term high = d.weight == 1 ? thread : floor_div(thread, d.weight);
    const Term first = equals(floor_mod(high, d.extent), e.builder().number(0));
    out = out ? term::logical_and(*out, first) : first;
  }
  return out;
}

/// The condition under which the place is in the tensor; nothing where it always is.
std::optional<Term> bound(const core::Tensor& tensor, const std::vector<Term>& at,
                          std::optional<Term> out) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    const Term in = term::less(at[i], tensor.extents[i]);
    if (term::always(in, little).proved()) continue;
    out = out ? term::logical_and(*out, in) : in;
  }
  return out;
}

Status transfer(Call& c, const Transfer& t, const std::optional<Elementwise>& fill) {
  Elaborator& e = c.e;
  const core::Tensor tensor = e.builder().kernel()[t.box.id];
  const bool loads = fill.has_value();
  TESSERA_TRY(b, e.emit(c.span));
  const int64_t vectors = t.layout.mode(1).size() / t.vector;
  const Term zero = b->number(0), upper = b->number(vectors);
  const std::string counter = e.counter_name("vector", zero, upper);
  const Term i = b->take(b->kernel().pool->counter(counter, zero, upper));
  const Term slot = t.vector == 1 ? i : i * t.vector;
  const std::vector<Term> at = place(e, t, slot);
  const std::optional<Term> in = bound(tensor, at, loads ? std::nullopt : first_of_same(e, t));
  const core::Argument memory = core::GlobalAt{t.box.id, at};
  const core::Argument registers =
      core::Slice{t.registers.id, t.registers.whole ? slot : t.registers.first + slot};
  std::vector<core::Argument> arguments = {loads ? registers : memory, loads ? memory : registers};
  if (in) arguments.emplace_back(core::Integers{{b->select(*in, b->number(1), zero)}});
  if (in && loads) TESSERA_CHECK(e.compute(t.registers, *fill, c.span));
  b->unrolled(counter, vectors, [&, b = b](Term) {
    b->issue(fmt::format("{}.global.{}{}", loads ? "load" : "store",
                         t.vector * size_of(tensor.element), in ? ".bounded" : ""),
             arguments);
  });
  if (loads) e.wrote(t.registers.id);
  return {};
}

/// The widest vectors that the addresses and the layout allow.
int64_t vector_of(const core::Tensor& tensor, const BoxRef& box, const Layout& layout,
                  const std::vector<int64_t>& tile) {
  int64_t vector = widest / size_of(tensor.element);
  while (vector > 1 && !(may_be_wide(tensor, box, vector) && has_vectors(layout, tile, vector)))
    vector /= 2;
  return vector;
}

Result<Value> load(Call& c) {
  if (c["box"].as<SharedRef>() != nullptr) return load_shared(c);
  Elaborator& e = c.e;
  TESSERA_TRY(box, c.the<BoxRef>("box", "a box of a tensor, X[m, :], or shared memory"));
  TESSERA_TRY(lanes, c.integer("lanes", 0));
  const core::Tensor tensor = e.builder().kernel()[box.id];
  const std::vector<int64_t> tile = shape_of(box);
  const int64_t threads = int64_t{32} * e.threads().warps;
  const bool beside = c.find("like") != nullptr;
  std::optional<Layout> layout;
  int64_t vector = widest / size_of(tensor.element);
  if (beside) {
    TESSERA_TRY(as_there, layout_beside(c, tile));
    layout = as_there;
    vector = vector_of(tensor, box, *layout, tile);
  }
  for (; !beside && vector >= 1; vector /= 2) {
    if (tile.empty() || !(vector == 1 || may_be_wide(tensor, box, vector))) continue;
    layout = row_layout(tile, vector, lanes, threads);
    if (layout) break;
  }
  if (!layout)
    return error(fail(wrong_shape, "the threads do not share the box evenly")
                     .label(e.label(c.span_of("box"), "a box of " + shape_text(tile)))
                     .expect("rows and columns that {} threads share", threads)
                     .but_found("{}{}", shape_text(tile),
                                lanes > 0 ? fmt::format(", {} threads along a row", lanes) : "")
                     .help("choose extents that are multiples of powers of two"));
  TESSERA_TRY(out, e.registers(tensor.element, tile, layout, c.span));
  TESSERA_TRY(fill, e.elementwise(c.find("fill") == nullptr ? Value{0.0} : c["fill"], c.span));
  TESSERA_CHECK(transfer(c, {box, out, *layout, vector}, fill));
  return Value{std::move(out)};
}

Result<Value> store(Call& c) {
  if (c["box"].as<SharedRef>() != nullptr) return store_shared(c);
  Elaborator& e = c.e;
  TESSERA_TRY(box, c.the<BoxRef>("box", "a box of a tensor, Y[m, n], or shared memory"));
  TESSERA_TRY(what, e.elementwise(c["values"], c.span_of("values")));
  const core::Tensor tensor = e.builder().kernel()[box.id];
  if (what.tile != shape_of(box))
    return error(fail(wrong_shape, "the values and the box have different shapes")
                     .label(e.label(c.span_of("values"), "values of " + shape_text(what.tile)))
                     .label(e.label(c.span_of("box"), "a box of " + shape_text(shape_of(box))))
                     .expect("{}", shape_text(shape_of(box)))
                     .but_found("{}", shape_text(what.tile))
                     .help("give both the same extents"));
  if (tensor.access == core::Access::input)
    return error(fail(wrong_place, "`{}` is read alone", tensor.name)
                     .label(e.label(c.span_of("box")))
                     .expect("a tensor that is written")
                     .help("declare it so: `{}: Tensor[..., out]`", tensor.name));
  what.element = tensor.element;
  const auto* same = c["values"].as<Fragment>();
  const bool as_it_is = same != nullptr &&
                        e.builder().kernel()[same->id].element == tensor.element &&
                        (same->whole || same->steps == Layout(same->layout.mode(1).size(), 1));
  TESSERA_TRY(from, e.keep(as_it_is ? c["values"] : Value{what}, c.span));
  TESSERA_TRY(layout, e.layout_of(from, c.span));
  const int64_t vector = vector_of(tensor, box, layout, from.tile);
  TESSERA_CHECK(transfer(c, {box, from, layout, vector}, {}));
  return Value{};
}

constexpr Builtin records[] = {
    {"load", "box, fill=, lanes=, like=",
     "A box of a tensor in registers; what lies outside of the tensor is `fill`, or 0. Or a matrix "
     "of shared memory",
     load},
    {"store", "values, box",
     "Elements to a box of a tensor, as far as it lies in the tensor; or to shared memory", store},
};

}  // namespace

namespace groups {
extern const Group memory = {records};
}

}  // namespace tessera::language
