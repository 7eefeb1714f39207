// Products of warpgroups, and the matrices of 8 x 8 that their results leave by.
#include "arch/wgmma.h"

#include "arch/ldmatrix.h"

#include "language/elaborator.h"

namespace tessera::language {
namespace {

/// wgmma's accumulators of 64 rows a warpgroup, one warpgroup below the other, in a tile of `rows`.
Layout accumulators(const Layout& one, int64_t rows) {
  const std::function<IntTuple(const IntTuple&)> widen = [&](const IntTuple& stride) -> IntTuple {
    if (stride.is_leaf) return stride.value >= 64 ? stride.value / 64 * rows : stride.value;
    std::vector<IntTuple> items;
    for (const IntTuple& i : stride.items) items.push_back(widen(i));
    return IntTuple::tuple(std::move(items));
  };
  IntTuple shape = one.mode(0).shape(), stride = widen(one.mode(0).stride());
  shape.items.emplace_back(rows / 64);
  stride.items.emplace_back(64);
  return {IntTuple::tuple({shape, one.mode(1).shape()}),
          IntTuple::tuple({stride, widen(one.mode(1).stride())})};
}

std::optional<arch::Element> element_of(DType t) {
  switch (t) {
    case DType::bfloat16:
      return arch::Element::bf16;
    case DType::float16:
      return arch::Element::f16;
    case DType::float32:
      return arch::Element::tf32;
    case DType::float8_e4m3fn:
      return arch::Element::e4m3;
    case DType::float8_e5m2:
      return arch::Element::e5m2;
    case DType::int8:
      return arch::Element::s8;
    case DType::uint8:
      return arch::Element::u8;
    default:
      return {};
  }
}

struct Product {
  SharedRef a, b;
  Fragment sum;
  arch::Wgmma instruction;
};

Result<arch::Wgmma> instruction_of(Call& c, const SharedRef& a, const SharedRef& b,
                                   const Fragment& sum) {
  const core::Kernel& kernel = c.e.builder().kernel();
  const DType ta = kernel[a.id].element, tb = kernel[b.id].element, tc = kernel[sum.id].element;
  const auto ea = element_of(ta), eb = element_of(tb);
  const arch::Element ec = tc == DType::float16 ? arch::Element::f16
                           : tc == DType::int32 ? arch::Element::s32
                                                : arch::Element::f32;
  const bool sums = tc == DType::float32 || tc == DType::float16 || tc == DType::int32;
  if (ea && eb && sums) {
    auto w = arch::wgmma(*ea, *eb, ec, arch::Feed::shared, sum.tile[1]);
    if (w) return *w;
  }
  return error(
      fail(no_instruction, "there is no wgmma for these")
          .label(c.e.label(c.span))
          .expect("bf16, f16, f32 (as tf32), e4m3, e5m2, i8 or u8 into f32, f16 or i32; 8 to "
                  "256 columns in steps of 8")
          .but_found("{} by {} into {}, {} columns", short_name(ta), short_name(tb), short_name(tc),
                     sum.tile[1])
          .help("`acc = registers(f32, [BM, BN])` takes bf16 and f16"));
}

Status fits(Call& c, const SharedRef& a, const SharedRef& b, const Fragment& sum) {
  Elaborator& e = c.e;
  const std::vector<int64_t> sa = shape_of(a), sb = shape_of(b);
  const bool two = sa.size() == 2 && sb.size() == 2 && sum.tile.size() == 2;
  if (!two || sa[1] != sb[0] || sa[0] != sum.tile[0] || sb[1] != sum.tile[1])
    return error(
        fail(wrong_shape, "the shapes of the product do not go together")
            .label(e.label(c.span_of("a"), "a: " + shape_text(sa)))
            .label(e.label(c.span_of("b"), "b: " + shape_text(sb)))
            .label(e.label(c.span_of("sum"), "sum: " + shape_text(sum.tile)))
            .expect("[m, k] by [k, n] into [m, n]")
            .but_found("{} by {} into {}", shape_text(sa), shape_text(sb), shape_text(sum.tile))
            .help("a matrix with k last is transposed by `.T`"));
  if (a.transposed || !b.transposed)
    return error(fail(no_instruction, "wgmma reads both matrices with k last in shared memory")
                     .label(e.label(c.span_of(a.transposed ? "a" : "b")))
                     .expect("`wgmma(a[k], b[k].T, acc)`, a and b with k as their last extent")
                     .help("store the matrix with k last"));
  const int64_t rows = int64_t{64} * e.threads().warpgroups();
  if (sum.tile[0] != rows)
    return error(fail(wrong_shape, "each warpgroup makes 64 rows of the product")
                     .label(e.label(c.span_of("sum"), "sum: " + shape_text(sum.tile)))
                     .expect("{} rows for {} warpgroups", rows, e.threads().warpgroups())
                     .but_found("{}", sum.tile[0])
                     .help("give the role `warpgroups={}`", (sum.tile[0] + 63) / 64));
  return {};
}

/// True where rows (m or n) lie side by side, not k.
bool by_rows(const core::Shared& s, const SharedRef& matrix) {
  return flatten(s.layout.mode(matrix.kept[0]).stride()).front() == 1;
}

Status may_transpose(Call& c, const char* name, const SharedRef& matrix, const arch::Wgmma& w) {
  const core::Shared& s = c.e.builder().kernel()[matrix.id];
  if (w.may_transpose() || !by_rows(s, matrix)) return {};
  return error(fail(no_instruction, "wgmma reads {} with k contiguous alone", short_name(s.element))
                   .label(c.e.label(c.span_of(name)))
                   .expect("shared memory whose last dimension is contiguous")
                   .but_found("\"{}\"", to_string(s.layout))
                   .help("of 16-bit types either dimension may be contiguous"));
}

/// `step`: the instruction's place along k.
std::vector<core::Argument> arguments(Call& c, const Product& p, int64_t step, Term keeps) {
  core::Builder& b = c.e.builder();
  const Term group = floor_div(c.e.threads().warp, int64_t{4});
  const auto from = [&](const SharedRef& s, Term row) {
    core::SharedAt out{s.id, s.at};
    const auto place = [&](int dim, Term t) {
      Term& at = out.at[static_cast<std::size_t>(s.kept[static_cast<std::size_t>(dim)])];
      at = at == b.number(0) ? t : at + t;
    };
    place(0, row);
    place(1, b.number(step));
    return out;
  };
  const auto turned = [&](const SharedRef& s) -> int64_t {
    return by_rows(b.kernel()[s.id], s) ? 1 : 0;
  };
  std::vector<core::Argument> out;
  for (const arch::Operand& o : p.instruction.form().operands) {
    if (o.name == "d")
      out.emplace_back(core::Slice{p.sum.id, b.number(0)});
    else if (o.name == "a")
      out.emplace_back(from(p.a, group * 64));
    else if (o.name == "b")
      out.emplace_back(from(p.b, b.number(0)));
    else if (o.name == "accumulate")
      out.emplace_back(core::Integers{{keeps}});
    else if (o.name == "transpose_a" || o.name == "transpose_b")
      out.emplace_back(core::Integers{{b.number(turned(o.name == "transpose_a" ? p.a : p.b))}});
    else
      out.emplace_back(core::Integers{{b.number(1)}});  // scale_a, scale_b
  }
  return out;
}

Result<Value> wgmma(Call& c) {
  Elaborator& e = c.e;
  TESSERA_TRY(a, c.the<SharedRef>("a", "a matrix in shared memory: a[k]"));
  TESSERA_TRY(b, c.the<SharedRef>("b", "a matrix in shared memory: b[k].T"));
  TESSERA_TRY(sum, c.the<Fragment>("sum", "registers: acc"));
  TESSERA_CHECK(e.may_issue(*arch::find_form("wgmma.fence"), c.span));
  TESSERA_CHECK(fits(c, a, b, sum));
  TESSERA_TRY(w, instruction_of(c, a, b, sum));
  TESSERA_CHECK(may_transpose(c, "a", a, w));
  TESSERA_CHECK(may_transpose(c, "b", b, w));
  const int64_t k = shape_of(a)[1];
  if (k % w.k() != 0)
    return error(fail(wrong_shape, "the instruction takes {} along k at a time", w.k())
                     .label(e.label(c.span_of("a"), shape_text(shape_of(a))))
                     .expect("a multiple of {}", w.k())
                     .but_found("{}", k)
                     .help("choose a larger last extent"));
  const Layout layout = accumulators(w.c_layout(), sum.tile[0]);
  if (sum.whole && !e.laid(sum.id)) e.lay(sum.id, layout);
  TESSERA_TRY(has, e.layout_of(sum, c.span));
  if (!sum.whole || has != layout)
    return error(fail(no_layout, "the sums do not lie as wgmma has them")
                     .label(e.label(c.span_of("sum")))
                     .expect("{}", to_string(layout))
                     .but_found("{}", to_string(has))
                     .help("let the product be the first that takes these registers, whole"));
  TESSERA_TRY(to, e.emit(c.span));
  Term first = to->number(1);
  if (c["start"].as<Term>() != nullptr) {
    first = to->select(*c["start"].as<Term>(), to->number(0), to->number(1));
  } else {
    TESSERA_TRY(starts, c.flag("start", false));
    first = to->number(starts ? 0 : 1);
  }
  const Product product{a, b, sum, w};
  for (int64_t step = 0; step < k; step += w.k())
    to->issue(w.form().name, arguments(c, product, step, step > 0 ? to->number(1) : first),
              w.choices());
  e.wrote(sum.id);
  return Value{};
}

/// The 64 rows of each warpgroup to shared memory of its own, 16 columns at a time.
Result<Value> stmatrix(Call& c) {
  Elaborator& e = c.e;
  TESSERA_TRY(from, e.keep(c["from"], c.span_of("from")));
  TESSERA_TRY(to, c.the<SharedRef>("to", "shared memory"));
  TESSERA_CHECK(e.may_issue(*arch::find_form("stmatrix"), c.span));
  const core::Registers& registers = e.builder().kernel()[from.id];
  const std::vector<int64_t> wanted = {64, from.tile.size() == 2 ? from.tile[1] : 0};
  if (shape_of(to) != wanted || to.transposed || wanted[1] % 16 != 0)
    return error(
        fail(wrong_shape, "a warpgroup's rows and the shared memory have different shapes")
            .label(e.label(c.span_of("from"), "64 rows a warpgroup of " + shape_text(from.tile)))
            .label(e.label(c.span_of("to"), "shared memory of " + shape_text(shape_of(to))))
            .expect("{}, a multiple of 16 columns", shape_text(wanted))
            .but_found("{}", shape_text(shape_of(to)))
            .help("give each warpgroup shared memory of its own: `c[warpgroup]`"));
  TESSERA_TRY(layout, e.layout_of(from, c.span));
  const auto fragment = arch::wgmma(arch::Element::f16, arch::Element::f16, arch::Element::f16,
                                    arch::Feed::shared, wanted[1]);
  if (size_of(registers.element) != 2 || !fragment || !from.whole ||
      layout != accumulators(fragment->c_layout(), from.tile[0]))
    return error(fail(no_instruction, "stmatrix stores 16-bit elements that lie as wgmma's sums do")
                     .label(e.label(c.span_of("from")))
                     .expect("bf16 or f16 registers, assigned from parts of a product's sums")
                     .but_found("{}, {}", short_name(registers.element), to_string(layout))
                     .help("`out = registers(bf16, [BM, 64])`, then `out[:] = acc[:, c]`"));
  TESSERA_TRY(b, e.emit(c.span));
  const Term warp = floor_mod(e.threads().warp, int64_t{4});
  const Term lane = b->at().lane;
  const std::string counter = e.counter_name("j", b->number(0), b->number(wanted[1] / 16));
  b->unrolled(counter, wanted[1] / 16, [&, b = b](Term j) {
    core::SharedAt at{to.id, to.at};
    const auto place = [&](std::size_t dim, Term t) {
      Term& had = at.at[static_cast<std::size_t>(to.kept[dim])];
      had = had == b->number(0) ? t : had + t;
    };
    place(0, warp * 16 + floor_mod(lane, int64_t{16}));
    place(1, j * 16 + floor_div(lane, int64_t{16}) * 8);
    b->issue("stmatrix", {at, core::Slice{from.id, j * 8}}, {{"matrices", "4"}});
  });
  return Value{};
}

constexpr Builtin records[] = {
    {"wgmma", "a, b, sum, start=",
     "sum += a b by the warpgroups, 64 rows each; where `start` holds, sum = a b", wgmma},
    {"stmatrix", "from, to", "Each warpgroup's 64 rows to shared memory", stmatrix},
};

}  // namespace

namespace groups {
extern const Group wgmma = {records};
}

}  // namespace tessera::language
