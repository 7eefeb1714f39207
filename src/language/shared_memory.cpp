// `load` and `store` of matrices in shared memory, by the threads themselves.
#include <algorithm>

#include "language/tile_layout.h"
#include "language/transfer.h"

namespace tessera::language {
namespace {

constexpr int64_t widest = 16;  // bytes of an access

/// The matrix with two dimensions, as it lies.
Result<SharedRef> matrix_of(Call& c) {
  SharedRef box = *c["box"].as<SharedRef>();
  if (box.extents.size() == 2 && !box.transposed) return box;
  return error(fail(wrong_shape, "threads move matrices of shared memory as they lie")
                   .label(c.e.label(c.span_of("box")))
                   .expect("two dimensions")
                   .but_found("{}{}", shape_text(box.extents), box.transposed ? ", transposed" : "")
                   .help("take one slot first: `a[k]`"));
}

Status no_argument(Call& c, const char* name) {
  if (c.find(name) == nullptr) return {};
  return error(fail(wrong_kind, "`{}` is of boxes of tensors", name)
                   .label(c.e.label(c.span_of(name)))
                   .help("shared memory has no outside; `like=` says how elements lie"));
}

/// Vectors of n elements are whole: along the last dimension, from multiples of n on, everywhere.
bool may_be_wide(const core::Shared& s, const SharedRef& box, int64_t n) {
  if (!last_is_contiguous(s, box) || box.extents[1] % n != 0) return false;
  if (!box.at[static_cast<std::size_t>(box.kept[1])]->facts.multiple_of(n)) return false;
  const std::vector<int64_t> strides = flatten(s.layout.stride());
  return std::all_of(strides.begin(), strides.end(),
                     [&](int64_t stride) { return stride == 1 || stride % n == 0; });
}

/// Lanes side by side take rows one below the other, whose places a swizzle puts into different
/// banks: 8 rows of 16 bytes each, or 32 rows where these lie side by side. Nothing where the
/// threads do not share the matrix evenly.
std::optional<Layout> by_rows(int64_t rows, int64_t columns, int64_t vector, int64_t in_16_bytes,
                              bool rows_apart, int64_t threads) {
  const int64_t low = rows_apart ? 8 : 32;
  if (rows % low != 0 || columns % in_16_bytes != 0) return {};
  const std::pair<int64_t, int64_t> modes[] = {{low, 1},
                                               {in_16_bytes / vector, vector * rows},
                                               {columns / in_16_bytes, in_16_bytes * rows},
                                               {rows / low, low}};
  std::vector<int64_t> thread_shape, thread_stride, shape = {vector}, stride = {rows};
  int64_t left = threads;
  for (const auto& [extent, step] : modes) {
    const int64_t here = std::min(left, extent);
    if (extent % here != 0 || left % here != 0) return {};
    left /= here;
    if (here > 1) thread_shape.push_back(here), thread_stride.push_back(step);
    if (extent > here) shape.push_back(extent / here), stride.push_back(step * here);
  }
  if (left != 1) return {};
  return Layout(IntTuple::tuple({IntTuple::flat(thread_shape), IntTuple::flat(shape)}),
                IntTuple::tuple({IntTuple::flat(thread_stride), IntTuple::flat(stride)}));
}

Result<Layout> layout_for(Call& c, const core::Shared& s, const SharedRef& box) {
  if (c.find("like") != nullptr) return layout_beside(c, box.extents);
  const int64_t threads = int64_t{32} * c.e.threads().warps, most = widest / size_of(s.element);
  for (int64_t vector = most; vector >= 1; vector /= 2)
    if (const auto found = by_rows(box.extents[0], box.extents[1], vector, most,
                                   last_is_contiguous(s, box), threads))
      return *found;
  return error(
      fail(wrong_shape, "the threads do not share the matrix evenly")
          .label(c.e.label(c.span_of("box"), "shared memory of " + shape_text(box.extents)))
          .expect("rows and columns that {} threads share", threads)
          .but_found("{}", shape_text(box.extents))
          .help("choose extents that are multiples of powers of two"));
}

Status transfer(Call& c, const SharedRef& box, const Fragment& registers, const Layout& layout,
                bool loads) {
  Elaborator& e = c.e;
  const core::Shared s = e.builder().kernel()[box.id];
  int64_t vector = widest / size_of(s.element);
  while (vector > 1 &&
         !(may_be_wide(s, box, vector) && has_vectors(layout, registers.tile, vector)))
    vector /= 2;
  TESSERA_TRY(b, e.emit(c.span));
  const int64_t vectors = layout.mode(1).size() / vector;
  const Term zero = b->number(0), upper = b->number(vectors);
  const std::string counter = e.counter_name("vector", zero, upper);
  const Term i = b->take(b->kernel().pool->counter(counter, zero, upper));
  const Term slot = vector == 1 ? i : i * vector;
  const std::vector<Term> in = inside(e, registers.tile, layout, slot);
  core::SharedAt at{box.id, box.at};
  for (std::size_t d = 0; d < 2; ++d) {
    Term& start = at.at[static_cast<std::size_t>(box.kept[d])];
    if (in[d]) start = start == zero ? in[d] : start + in[d];
  }
  const core::Argument held =
      core::Slice{registers.id, registers.whole ? slot : registers.first + slot};
  const core::Argument memory = at;
  b->unrolled(counter, vectors, [&, b = b](Term) {
    b->issue(fmt::format("{}.shared.{}", loads ? "load" : "store", vector * size_of(s.element)),
             {loads ? held : memory, loads ? memory : held});
  });
  if (loads) e.wrote(registers.id);
  return {};
}

/// Threads that have the same elements would write them at the same time.
Status each_once(Call& c, const Fragment& f, const Layout& layout) {
  for (const Digit& d : digits(layout.mode(0), f.tile))
    if (d.dim < 0 && d.extent > 1)
      return error(fail(no_layout, "several threads have the same elements")
                       .label(c.e.label(c.span_of("values")))
                       .expect("each element in one thread")
                       .but_found("{}", to_string(layout))
                       .help("store a tile that the threads share"));
  return {};
}

}  // namespace

bool last_is_contiguous(const core::Shared& s, const SharedRef& box) {
  return flatten(s.layout.mode(box.kept[1]).stride()).front() == 1;
}

Result<Value> load_shared(Call& c) {
  TESSERA_TRY(box, matrix_of(c));
  TESSERA_CHECK(no_argument(c, "fill"));
  TESSERA_CHECK(no_argument(c, "lanes"));
  const core::Shared s = c.e.builder().kernel()[box.id];
  TESSERA_TRY(layout, layout_for(c, s, box));
  TESSERA_TRY(out, c.e.registers(s.element, box.extents, layout, c.span));
  TESSERA_CHECK(transfer(c, box, out, layout, true));
  return Value{std::move(out)};
}

Result<Value> store_shared(Call& c) {
  Elaborator& e = c.e;
  TESSERA_TRY(box, matrix_of(c));
  TESSERA_TRY(what, e.elementwise(c["values"], c.span_of("values")));
  const core::Shared s = e.builder().kernel()[box.id];
  if (what.tile != box.extents)
    return error(
        fail(wrong_shape, "the values and the shared memory have different shapes")
            .label(e.label(c.span_of("values"), "values of " + shape_text(what.tile)))
            .label(e.label(c.span_of("box"), "shared memory of " + shape_text(box.extents)))
            .expect("{}", shape_text(box.extents))
            .but_found("{}", shape_text(what.tile))
            .help("give both the same extents"));
  what.element = s.element;
  const auto* same = c["values"].as<Fragment>();
  const bool as_it_is =
      same != nullptr && same->whole && e.builder().kernel()[same->id].element == s.element;
  TESSERA_TRY(from, e.keep(as_it_is ? c["values"] : Value{what}, c.span));
  TESSERA_TRY(layout, e.layout_of(from, c.span));
  TESSERA_CHECK(each_once(c, from, layout));
  TESSERA_CHECK(transfer(c, box, from, layout, false));
  return Value{};
}

}  // namespace tessera::language
