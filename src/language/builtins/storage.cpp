// Storage: shared memory, barriers, registers, and the types of a kernel's parameters.
#include "arch/wgmma.h"

#include "language/elaborator.h"
#include "language/tile_layout.h"

namespace tessera::language {
namespace {

Status before_ops(Call& c, std::string_view what) {
  if (c.e.turns.empty() && c.e.threads().role.empty()) return {};
  return error(fail(wrong_place, "{} is made outside of roles and loops", what)
                   .label(c.e.label(c.span))
                   .help("move the line to the kernel's own body, before the roles"));
}

Result<arch::SwizzleMode> swizzle(Call& c) {
  TESSERA_TRY(bytes, c.integer("swizzle", 0));
  for (const auto mode :
       {arch::SwizzleMode::bytes_32, arch::SwizzleMode::bytes_64, arch::SwizzleMode::bytes_128})
    if (arch::width_of(mode) == bytes) return mode;
  if (bytes == 0) return arch::SwizzleMode::none;
  return error(fail(bad_constant, "there is no swizzle of {} bytes", bytes)
                   .label(c.e.label(c.span_of("swizzle")))
                   .expect("0, 32, 64 or 128")
                   .but_found("{}", bytes)
                   .help("128 suits rows of 128 bytes"));
}

/// Extents with dimension `contiguous` of the last two side by side, in panels of `width` elements:
/// a panel has all of the other dimension, and panels lie one after the other.
Layout panels(const std::vector<int64_t>& extents, std::size_t contiguous, int64_t width) {
  std::vector<IntTuple> shape(extents.begin(), extents.end()), stride(extents.size());
  int64_t high = 1;
  if (const std::size_t n = extents.size(); n > 1) {
    const std::size_t other = contiguous == n - 1 ? n - 2 : n - 1;
    high = extents[other];
    stride[other] = width;
    int64_t below = high * extents[contiguous];
    for (std::size_t d = n - 2; d-- > 0; below *= extents[d]) stride[d] = below;
  }
  stride[contiguous] = 1;
  if (extents[contiguous] > width) {
    shape[contiguous] = IntTuple::flat({width, extents[contiguous] / width});
    stride[contiguous] = IntTuple::flat({1, width * high});
  }
  return {IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride))};
}

/// Without `contiguous` the last dimension is, and fills its swizzle.
Result<Layout> layout_of(Call& c, DType element, const std::vector<int64_t>& extents,
                         arch::SwizzleMode mode) {
  const auto rank = static_cast<int64_t>(extents.size());
  TESSERA_TRY(contiguous, c.integer("contiguous", rank - 1));
  if (contiguous < 0 || contiguous >= rank || contiguous + 2 < rank)
    return error(fail(bad_constant, "one of the last two dimensions is contiguous")
                     .label(c.e.label(c.span_of("contiguous")))
                     .expect("{}", rank == 1 ? "0" : fmt::format("{} or {}", rank - 2, rank - 1))
                     .but_found("{}", contiguous)
                     .help("dimensions are counted from 0: slots of a ring come first"));
  const int64_t along = extents[static_cast<std::size_t>(contiguous)];
  const bool swizzled = mode != arch::SwizzleMode::none;
  const int64_t width = swizzled ? arch::width_of(mode) / size_of(element) : along;
  const bool whole = c.find("contiguous") == nullptr ? along == width : along % width == 0;
  if (whole) return panels(extents, static_cast<std::size_t>(contiguous), width);
  const auto found = fmt::format("{} elements of {}: {} bytes", along, short_name(element),
                                 along * size_of(element));
  if (c.find("contiguous") != nullptr)
    return error(
        fail(wrong_shape, "extent {} is not made of panels as wide as the swizzle", contiguous)
            .label(c.e.label(c.span_of("extents")))
            .expect("a multiple of {} elements, {} bytes", width, arch::width_of(mode))
            .but_found("{}", found)
            .help("choose another extent, or a smaller swizzle"));
  return error(fail(wrong_shape, "rows do not have the bytes of their swizzle")
                   .label(c.e.label(c.span_of("extents")))
                   .expect("rows of {} bytes", arch::width_of(mode))
                   .but_found("{}", found)
                   .help("let the last extent be {}", width));
}

Result<Value> shared(Call& c) {
  TESSERA_CHECK(before_ops(c, "shared memory"));
  TESSERA_TRY(element, c.element("element"));
  TESSERA_TRY(extents, c.extents("extents"));
  TESSERA_TRY(mode, swizzle(c));
  TESSERA_TRY(layout, layout_of(c, element, extents, mode));
  core::Builder& b = c.e.builder();
  SharedRef out{.id = b.shared(c.e.fresh(c.e.naming), element, layout, mode),
                .at = std::vector<Term>(extents.size(), b.number(0)),
                .extents = extents};
  b.kernel().shared.back().span = c.span;
  for (std::size_t i = 0; i < extents.size(); ++i) out.kept.push_back(static_cast<int>(i));
  return Value{std::move(out)};
}

/// Of an element type.
Result<Value> bytes(Call& c) {
  return Value{int64_t{size_of(*c.self->as<DType>())}};
}

Result<Value> transposed(Call& c) {
  SharedRef out = *c.self->as<SharedRef>();
  if (out.extents.size() != 2)
    return error(fail(wrong_shape, "only a matrix is transposed")
                     .label(c.e.label(c.span))
                     .expect("two dimensions")
                     .but_found("{}", shape_text(out.extents))
                     .help("take one slot first: `b[k].T`"));
  out.transposed = !out.transposed;
  return Value{std::move(out)};
}

Result<Value> barrier(Call& c) {
  TESSERA_CHECK(before_ops(c, "a barrier"));
  TESSERA_TRY(count, c.integer("count", 1));
  TESSERA_TRY(complete, c.flag("starts_complete", false));
  std::optional<int64_t> arrivals;
  if (c.find("arrivals") != nullptr) {
    TESSERA_TRY(n, c.integer("arrivals"));
    arrivals = n;
  }
  if (count < 1 || arrivals.value_or(1) < 1)
    return error(fail(bad_constant, "barriers and their arrivals are counted from 1")
                     .label(c.e.label(c.span_of(count < 1 ? "count" : "arrivals")))
                     .but_found("{}", count < 1 ? count : *arrivals)
                     .help("write the number of slots, and of arrivals a phase"));
  const BarriersRef out{c.e.builder().barriers(c.e.fresh(c.e.naming), count)};
  c.e.builder().kernel().barriers.back().span = c.span;
  TESSERA_CHECK(c.e.made_barriers(out.id, arrivals, complete, c.span));
  return Value{out};
}

/// As wgmma takes its first operand in registers: what it takes along k at a time, side by side.
std::optional<Layout> left_operand(DType element, const std::vector<int64_t>& tile) {
  const auto type = element == DType::float32    ? arch::Element::tf32
                    : element == DType::bfloat16 ? arch::Element::bf16
                                                 : arch::Element::f16;
  const auto w = arch::wgmma(type, type, arch::Element::f32, arch::Feed::registers, 8);
  if (!w || tile[1] % w->k() != 0 || size_of(element) != arch::bytes_of(type)) return {};
  const Layout one = accumulators(w->a_layout(), tile[0]);
  return Layout(IntTuple::tuple({one.mode(0).shape(),
                                 IntTuple::tuple({one.mode(1).shape(), tile[1] / w->k()})}),
                IntTuple::tuple({one.mode(0).stride(),
                                 IntTuple::tuple({one.mode(1).stride(), tile[0] * w->k()})}));
}

/// "wgmma": as its sums lie; "wgmma_a": as its first operand; else a layout as it is written.
Result<Layout> named_layout(Call& c, DType element, const std::vector<int64_t>& tile) {
  TESSERA_TRY(text, c.text("layout", ""));
  if (text == "wgmma_a" && tile.size() == 2 && tile[0] % 64 == 0)
    if (const auto left = left_operand(element, tile)) return *left;
  if (text == "wgmma" && tile.size() == 2 && tile[0] % 64 == 0) {
    using arch::Element;
    const auto w =
        arch::wgmma(Element::f16, Element::f16, Element::f32, arch::Feed::shared, tile[1]);
    if (w) return accumulators(w->c_layout(), tile[0]);
  }
  auto parsed = parse_layout(text);
  if (parsed && parsed->rank() == 2) return *parsed;
  return error(fail(no_layout, "this is no layout of threads and their elements")
                   .label(c.e.label(c.span_of("layout")))
                   .expect("a layout of two modes, as docs/layouts.md writes them, \"wgmma\" or "
                           "\"wgmma_a\"")
                   .but_found("{}", parsed ? to_string(*parsed) : parsed.error().message)
                   .help("write `layout=\"(128,4):(1,128)\"`, from (thread, slot) to the element, "
                         "first dimension fastest"));
}

/// Beside other registers: along a dimension one element goes with all of theirs, or each lane that
/// shares it has one.
Result<Layout> layout_like(Call& c, const std::vector<int64_t>& tile) {
  TESSERA_TRY(like, c.the<Fragment>("like", "registers: acc"));
  TESSERA_TRY(layout, c.e.layout_of(like, c.span_of("like")));
  std::vector<int64_t> shape = like.tile;
  for (std::size_t d = 0; tile.size() == shape.size() && d < tile.size(); ++d) {
    if (tile[d] == shape[d]) continue;
    const int dim = static_cast<int>(d);
    std::vector<int64_t> lanes = shape;
    const Layout apart = one_a_lane(layout, lanes, dim);
    layout = tile[d] == lanes[d] ? apart : without(layout, shape, dim);
    shape[d] = tile[d] == lanes[d] ? lanes[d] : 1;
  }
  if (shape == tile) return layout;
  return error(
      fail(wrong_shape, "the tile does not go together with the registers")
          .label(c.e.label(c.span_of("like"), "registers of " + shape_text(like.tile)))
          .expect("{}, or along a dimension 1, or as many as lanes share it", shape_text(like.tile))
          .but_found("{}", shape_text(tile))
          .help("give both the same extents"));
}

Result<Value> registers(Call& c) {
  TESSERA_TRY(element, c.element("element"));
  TESSERA_TRY(extents, c.extents("extents"));
  std::optional<Layout> layout;
  if (c.find("layout") != nullptr) {
    TESSERA_TRY(named, named_layout(c, element, extents));
    layout = named;
  } else if (c.find("like") != nullptr) {
    TESSERA_TRY(beside, layout_like(c, extents));
    layout = beside;
  }
  TESSERA_TRY(out, c.e.registers(element, extents, layout, c.span));
  return Value{std::move(out)};
}

Result<Value> zeros(Call& c) {
  TESSERA_TRY(v, registers(c));
  TESSERA_TRY(zero, c.e.elementwise(Value{0.0}, c.span));
  TESSERA_CHECK(c.e.compute(*v.as<Fragment>(), zero, c.span));
  return v;
}

Result<Value> index(Call& c) {
  TESSERA_TRY(multiple, c.integer("multiple", 1));
  TESSERA_TRY(at_least, c.integer("at_least", multiple));
  TESSERA_TRY(below, c.integer("below", int64_t{1} << 31));
  if (multiple < 1 || at_least >= below)
    return error(fail(bad_constant, "no integer is like that")
                     .label(c.e.label(c.span))
                     .expect("a multiple from 1, and room between `at_least` and `below`")
                     .but_found("multiples of {} in [{}, {})", multiple, at_least, below)
                     .help("write `index(multiple=8)`"));
  return Value{IndexType{at_least, below, multiple}};
}

constexpr Builtin records[] = {
    {"shared", "element, extents, swizzle=, contiguous=",
     "Shared memory of the block, its last extent contiguous, or one of the last two", shared},
    {".shared.T", "", "The matrix with its dimensions exchanged", transposed, true},
    {".element.bytes", "", "Bytes of one element", bytes, true},
    {"barrier", "count, arrivals=, starts_complete=",
     "Barriers of shared memory; without `arrivals` they are counted", barrier},
    {"registers", "element, extents, layout=, like=",
     "A tile in the registers of the threads that are here", registers},
    {"zeros", "element, extents", "Registers that hold zeros", zeros},
    {"index", "multiple=, at_least=, below=", "The type of an integer of the launch", index, false,
     true},
};

}  // namespace

namespace groups {
extern const Group storage = {records};
}

}  // namespace tessera::language
