#include <fmt/format.h>

#include "arch/instruction.h"
#include "arch/mma.h"

namespace tessera::arch {
namespace {

std::string name(const MmaSync& i) {
  return fmt::format("mma.m16n8k{}.{}.{}.{}{}", i.k, name_of(i.c), name_of(i.a), name_of(i.b),
                     i.saturating ? ".satfinite" : "");
}

Form make(const MmaSync& i) {
  const OperandKind c = i.c == Element::f32 ? OperandKind::f32 : OperandKind::b32;
  const int64_t a_registers = i.a_layout().mode(1).size() / i.per_register();
  const Amount c_registers = Amount::number(i.c == Element::f16 ? 2 : 4);
  return {
      .name = name(i),
      .doc = "D = A B + C, all in registers",
      .capability = bytes_of(i.a) == 1 && i.c != Element::s32 ? "fp8" : "mma_sync",
      .operands = {{.name = "d", .kind = c, .direction = Direction::out, .registers = c_registers},
                   {.name = "a", .registers = Amount::number(a_registers), .list = true},
                   {.name = "b", .registers = Amount::number(a_registers / 2), .list = true},
                   {.name = "c", .kind = c, .registers = c_registers}},
      .ptx = fmt::format("mma.sync.aligned.m16n8k{}.row.col{}.{}.{}.{}.{} $d, $a, $b, $c;", i.k,
                         i.saturating ? ".satfinite" : "", name_of(i.c), name_of(i.a), name_of(i.b),
                         name_of(i.c)),
      .effects = {.issuer = Issuer::warp}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> out;
    for (const MmaSync& i : mma_sync_kinds()) out.push_back(make(i));
    return out;
  }();
  return all;
}

/// (lanes, registers) without modes of extent 1.
Layout fragment(const Layout& lanes, const std::vector<Layout>& registers) {
  std::vector<Layout> kept;
  for (const Layout& r : registers)
    if (r.size() > 1) kept.push_back(r);
  return concat({lanes, kept.size() == 1 ? kept.front() : concat(kept)});
}

}  // namespace

std::vector<MmaSync> mma_sync_kinds() {
  std::vector<MmaSync> out;
  for (Element e : {Element::f16, Element::bf16})
    for (int64_t k : {8, 16}) out.push_back({e, e, Element::f32, k});
  for (int64_t k : {8, 16}) out.push_back({Element::f16, Element::f16, Element::f16, k});
  for (int64_t k : {4, 8}) out.push_back({Element::tf32, Element::tf32, Element::f32, k});
  for (Element a : {Element::e4m3, Element::e5m2})
    for (Element b : {Element::e4m3, Element::e5m2})
      for (Element c : {Element::f32, Element::f16}) out.push_back({a, b, c, 32});
  for (Element a : {Element::s8, Element::u8})
    for (Element b : {Element::s8, Element::u8})
      for (int64_t k : {16, 32})
        for (bool saturating : {false, true}) out.push_back({a, b, Element::s32, k, saturating});
  return out;
}

/// Lane 4 g + t holds rows g and g + 8, and of k the elements of a register that begins at t times
/// as many; where k is longer, the same 4 registers on.
Layout MmaSync::a_layout() const {
  const int64_t e = per_register();
  const Layout lanes(IntTuple::flat({4, 8}), IntTuple::flat({m * e, 1}));
  return fragment(lanes, {{e, m}, {2, 8}, {k / (4 * e), m * 4 * e}});
}

Layout MmaSync::b_layout() const {
  const int64_t e = per_register();
  const Layout lanes(IntTuple::flat({4, 8}), IntTuple::flat({n * e, 1}));
  return fragment(lanes, {{e, n}, {k / (4 * e), n * 4 * e}});
}

Layout MmaSync::c_layout() {
  return {IntTuple::tuple({IntTuple::flat({4, 8}), IntTuple::flat({2, 2})}),
          IntTuple::tuple({IntTuple::flat({32, 1}), IntTuple::flat({16, 8})})};
}

const Form& MmaSync::form() const {
  return *find_form(name(*this));
}

namespace instructions {
extern const Family mma_sync = {
    .name = "mma_sync",
    .doc = "Products of a warp, all operands in registers",
    .section = "Warp Level Matrix Instructions: mma.sync",
    .forms = forms,
};
}

}  // namespace tessera::arch
