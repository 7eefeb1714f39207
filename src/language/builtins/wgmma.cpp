// Products of warpgroups, and the matrices of 8 x 8 that their results leave by.
#include "arch/wgmma.h"

#include "arch/ldmatrix.h"

#include "language/elaborator.h"
#include "language/tile_layout.h"
#include "language/transfer.h"

namespace tessera::language {
namespace {

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

/// A, B in shared memory or A in registers, and the sums.
struct Product {
  std::variant<SharedRef, Fragment> a;
  SharedRef b;
  Fragment sum;
  arch::Wgmma instruction = {};
  [[nodiscard]] const SharedRef* shared_a() const { return std::get_if<SharedRef>(&a); }
  [[nodiscard]] const Fragment* held_a() const { return std::get_if<Fragment>(&a); }
  [[nodiscard]] std::vector<int64_t> shape_of_a() const {
    return held_a() != nullptr ? held_a()->tile : shape_of(*shared_a());
  }
};

Result<arch::Wgmma> instruction_of(Call& c, const Product& p) {
  const core::Kernel& kernel = c.e.builder().kernel();
  const Fragment& sum = p.sum;
  const DType ta =
      p.held_a() != nullptr ? kernel[p.held_a()->id].element : kernel[p.shared_a()->id].element;
  const DType tb = kernel[p.b.id].element, tc = kernel[sum.id].element;
  const auto feed = p.held_a() != nullptr ? arch::Feed::registers : arch::Feed::shared;
  const auto ea = element_of(ta), eb = element_of(tb);
  const arch::Element ec = tc == DType::float16 ? arch::Element::f16
                           : tc == DType::int32 ? arch::Element::s32
                                                : arch::Element::f32;
  const bool sums = tc == DType::float32 || tc == DType::float16 || tc == DType::int32;
  if (ea && eb && sums) {
    auto w = arch::wgmma(*ea, *eb, ec, feed, sum.tile[1]);
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

Status fits(Call& c, const Product& p) {
  Elaborator& e = c.e;
  const Fragment& sum = p.sum;
  const std::vector<int64_t> sa = p.shape_of_a(), sb = shape_of(p.b);
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
  const bool turned = p.shared_a() != nullptr && p.shared_a()->transposed;
  if (turned || !p.b.transposed)
    return error(fail(no_instruction, "wgmma reads both matrices with k last in shared memory")
                     .label(e.label(c.span_of(turned ? "a" : "b")))
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
  const auto first_operand = [&]() -> core::Argument {
    const Fragment* const held = p.held_a();
    if (held == nullptr) return from(*p.shared_a(), group * 64);
    const int64_t slot = step / 2;  // 64 rows in 128 threads
    if (held->whole) return core::Slice{held->id, b.number(slot)};
    return core::Slice{held->id, slot == 0 ? held->first : held->first + slot};
  };
  std::vector<core::Argument> out;
  for (const arch::Operand& o : p.instruction.form().operands) {
    if (o.name == "d")
      out.emplace_back(core::Slice{p.sum.id, b.number(0)});
    else if (o.name == "a")
      out.push_back(first_operand());
    else if (o.name == "b")
      out.emplace_back(from(p.b, b.number(0)));
    else if (o.name == "accumulate")
      out.emplace_back(core::Integers{{keeps}});
    else if (const auto* const a = p.shared_a(); o.name == "transpose_a" && a != nullptr)
      out.emplace_back(core::Integers{{b.number(turned(*a))}});
    else if (o.name == "transpose_b")
      out.emplace_back(core::Integers{{b.number(turned(p.b))}});
    else
      out.emplace_back(core::Integers{{b.number(1)}});  // scale_a, scale_b
  }
  return out;
}

/// A in registers lies as sums of as many columns as it has along k do.
Status lies_right(Call& c, const Product& p) {
  const Fragment* const held = p.held_a();
  if (held == nullptr) return {};
  Elaborator& e = c.e;
  TESSERA_TRY(has, e.layout_of(*held, c.span_of("a")));
  const Layout step = p.instruction.a_layout();
  const int64_t steps = held->tile[1] / p.instruction.k();
  const Layout one = accumulators(step, held->tile[0]);
  const int64_t slots = one.mode(1).size();
  bool right = has.mode(0).size() == one.mode(0).size() && has.mode(1).size() == slots * steps &&
               (held->whole || held->steps == Layout(held->layout.mode(1).size(), 1));
  const int64_t further = held->tile[0] * p.instruction.k();  // elements of a step
  for (int64_t t = 0; right && t < has.mode(0).size(); ++t)
    right = has.mode(0)(t) == one.mode(0)(t);
  for (int64_t s = 0; right && s < has.mode(1).size(); ++s)
    right = has.mode(1)(s) == one.mode(1)(s % slots) + s / slots * further;
  if (right) return {};
  return error(fail(no_layout, "the first matrix does not lie in registers as wgmma takes it")
                   .label(e.label(c.span_of("a")))
                   .expect("{}, for each {} of k", to_string(one), p.instruction.k())
                   .but_found("{}", to_string(has))
                   .help("round the sums of a product to it: `p[:] = acc`"));
}

/// The sums, which lie as the instruction has them from its first use on.
Status take_sums(Call& c, const Product& p) {
  Elaborator& e = c.e;
  const Fragment& sum = p.sum;
  const Layout layout = accumulators(p.instruction.c_layout(), sum.tile[0]);
  if (sum.whole && !e.laid(sum.id)) e.lay(sum.id, layout);
  TESSERA_TRY(has, e.layout_of(sum, c.span));
  if (sum.whole && has == layout) return {};
  return error(fail(no_layout, "the sums do not lie as wgmma has them")
                   .label(e.label(c.span_of("sum")))
                   .expect("{}", to_string(layout))
                   .but_found("{}", to_string(has))
                   .help("let the product be the first that takes these registers, whole"));
}

Result<Product> product_of(Call& c) {
  Elaborator& e = c.e;
  Product p;
  if (const auto* held = c["a"].as<Fragment>()) {
    p.a = *held;
  } else {
    TESSERA_TRY(a, c.the<SharedRef>("a", "a matrix in shared memory or in registers: a[k]"));
    p.a = a;
  }
  TESSERA_TRY(b, c.the<SharedRef>("b", "a matrix in shared memory: b[k].T"));
  TESSERA_TRY(sum, c.the<Fragment>("sum", "registers: acc"));
  p.b = b;
  p.sum = sum;
  TESSERA_CHECK(e.may_issue(*arch::find_form("wgmma.fence"), c.span));
  TESSERA_CHECK(fits(c, p));
  TESSERA_TRY(w, instruction_of(c, p));
  p.instruction = w;
  return p;
}

Result<Value> wgmma(Call& c) {
  Elaborator& e = c.e;
  TESSERA_TRY(p, product_of(c));
  const arch::Wgmma& w = p.instruction;
  if (p.shared_a() != nullptr) TESSERA_CHECK(may_transpose(c, "a", *p.shared_a(), w));
  TESSERA_CHECK(may_transpose(c, "b", p.b, w));
  const int64_t k = p.shape_of_a()[1];
  if (k % w.k() != 0)
    return error(fail(wrong_shape, "the instruction takes {} along k at a time", w.k())
                     .label(e.label(c.span_of("a"), shape_text(p.shape_of_a())))
                     .expect("a multiple of {}", w.k())
                     .but_found("{}", k)
                     .help("choose a larger last extent"));
  TESSERA_CHECK(lies_right(c, p));
  TESSERA_CHECK(take_sums(c, p));
  TESSERA_TRY(to, e.emit(c.span));
  Term first = to->number(1);
  if (c["start"].as<Term>() != nullptr) {
    first = to->select(*c["start"].as<Term>(), to->number(0), to->number(1));
  } else {
    TESSERA_TRY(starts, c.flag("start", false));
    first = to->number(starts ? 0 : 1);
  }
  for (int64_t step = 0; step < k; step += w.k())
    to->issue(w.form().name, arguments(c, p, step, step > 0 ? to->number(1) : first), w.choices());
  e.wrote(p.sum.id);
  return Value{};
}

/// What warpgroups store of sums: 64 rows each, to shared memory of their own.
struct Rows {
  Fragment from;
  SharedRef to;
  int64_t columns = 0;
  /// Where a thread's part begins: rows and columns from the first on.
  [[nodiscard]] core::SharedAt at(core::Builder& b, Term row, Term column) const {
    core::SharedAt out{to.id, to.at};
    for (const auto& [dim, t] : {std::pair{0, row}, std::pair{1, column}}) {
      Term& had = out.at[static_cast<std::size_t>(to.kept[static_cast<std::size_t>(dim)])];
      had = had == b.number(0) ? t : had + t;
    }
    return out;
  }
};

/// `bytes`: of an element that the word's instruction stores.
Result<Rows> rows_of(Call& c, std::string_view word, std::string_view instruction, int64_t bytes) {
  Elaborator& e = c.e;
  TESSERA_TRY(from, e.keep(c["from"], c.span_of("from")));
  TESSERA_TRY(to, c.the<SharedRef>("to", "shared memory"));
  TESSERA_CHECK(e.may_issue(*arch::find_form(instruction), c.span));
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
  const DType held = registers.element;
  if (size_of(held) != bytes || e.builder().kernel()[to.id].element != held || !fragment ||
      !from.whole || layout != accumulators(fragment->c_layout(), from.tile[0]))
    return error(fail(no_instruction, "{} stores elements of {} bits that lie as wgmma's sums do",
                      word, bytes * 8)
                     .label(e.label(c.span_of("from")))
                     .expect("registers of {} bits, assigned from parts of a product's sums, and "
                             "shared memory of their type",
                             bytes * 8)
                     .but_found("{}, {}", short_name(held), to_string(layout))
                     .help("`out = registers({}, [BM, {}])`, then `out[:] = acc[:, c]`",
                           bytes == 2 ? "bf16" : "f32", bytes == 2 ? 64 : 32));
  return Rows{from, to, wanted[1]};
}

/// 16 columns at a time.
Result<Value> stmatrix(Call& c) {
  TESSERA_TRY(rows, rows_of(c, "stmatrix", "stmatrix", 2));
  TESSERA_TRY(b, c.e.emit(c.span));
  const Term warp = floor_mod(c.e.threads().warp, int64_t{4});
  const Term lane = b->at().lane;
  const std::string counter = c.e.counter_name("j", b->number(0), b->number(rows.columns / 16));
  b->unrolled(counter, rows.columns / 16, [&, b = b](Term j) {
    b->issue("stmatrix",
             {rows.at(*b, warp * 16 + floor_mod(lane, int64_t{16}),
                      j * 16 + floor_div(lane, int64_t{16}) * 8),
              core::Slice{rows.from.id, j * 8}},
             {{"matrices", "4"}});
  });
  return Value{};
}

/// A thread has two columns of a row side by side; of its rows the other lies 8 below. The two go
/// together where they lie so in shared memory too.
Result<Value> store_rows(Call& c) {
  TESSERA_TRY(rows, rows_of(c, "store_rows", "store.shared.8", 4));
  TESSERA_TRY(b, c.e.emit(c.span));
  const int64_t together = last_is_contiguous(b->kernel()[rows.to.id], rows.to) ? 2 : 1;
  const std::string instruction = fmt::format("store.shared.{}", 4 * together);
  const Term warp = floor_mod(c.e.threads().warp, int64_t{4});
  const Term lane = b->at().lane;
  const int64_t stores = rows.columns / 2 / together;
  const std::string counter = c.e.counter_name("j", b->number(0), b->number(stores));
  b->unrolled(counter, stores, [&, b = b](Term j) {
    const Term pair = together == 2 ? j : floor_div(j, int64_t{2});
    Term column = floor_div(pair, int64_t{2}) * 8 + floor_mod(lane, int64_t{4}) * 2;
    if (together == 1) column = column + floor_mod(j, int64_t{2});
    b->issue(instruction,
             {rows.at(*b, warp * 16 + floor_mod(pair, int64_t{2}) * 8 + floor_div(lane, int64_t{4}),
                      column),
              core::Slice{rows.from.id, j * together}});
  });
  return Value{};
}

constexpr Builtin records[] = {
    {"wgmma", "a, b, sum, start=",
     "sum += a b by the warpgroups, 64 rows each; where `start` holds, sum = a b", wgmma},
    {"stmatrix", "from, to", "Each warpgroup's 64 rows to shared memory", stmatrix},
    {"store_rows", "from, to", "The same of elements of 32 bits, each thread its own", store_rows},
};

}  // namespace

namespace groups {
extern const Group wgmma = {records};
}

}  // namespace tessera::language
