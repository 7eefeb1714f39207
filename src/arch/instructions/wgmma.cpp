#include "arch/wgmma.h"

#include <algorithm>

#include "base/text.h"

namespace tessera::arch {
namespace {

constexpr Code no_such_form{"TS0450", "arch.no_such_form"};

bool is_integer(Element e) {
  return e == Element::s8 || e == Element::u8;
}
bool is_fp8(Element e) {
  return e == Element::e4m3 || e == Element::e5m2;
}

/// A and B may differ among the fp8 types and among the integers.
bool legal(Element a, Element b, Element c, bool saturating) {
  if (is_integer(a)) return is_integer(b) && c == Element::s32;
  if (saturating) return false;
  if (is_fp8(a)) return is_fp8(b) && (c == Element::f32 || c == Element::f16);
  if (a != b) return false;
  if (a == Element::f16) return c == Element::f32 || c == Element::f16;
  return (a == Element::bf16 || a == Element::tf32) && c == Element::f32;
}

std::string name(const Wgmma& w) {
  return fmt::format("wgmma.{}.{}.{}.{}{}", name_of(w.c), name_of(w.a), name_of(w.b),
                     w.a_from == Feed::shared ? "ss" : "rs", w.saturating ? ".satfinite" : "");
}

Effects effects(const Wgmma& w) {
  const auto registers = [](Action action, std::string_view operand, Completion until) {
    return Access{action, Space::registers, Proxy::none, operand, Place::register_, {}, until};
  };
  const auto matrix = [](std::string_view operand) {
    return Access{Action::read,  Space::shared,         Proxy::async,           operand,
                  Place::matrix, Amount::tile(operand), Completion::wgmma_group};
  };
  Effects e{.issuer = Issuer::warpgroup};
  e.accesses.push_back(registers(Action::update, "d", Completion::wgmma_group));
  e.accesses.push_back(w.a_from == Feed::shared
                           ? matrix("a")
                           : registers(Action::read, "a", Completion::wgmma_group));
  e.accesses.push_back(matrix("b"));
  e.needs.push_back({FenceKind::wgmma_registers, "d"});
  e.needs.push_back(
      {w.a_from == Feed::shared ? FenceKind::async_proxy : FenceKind::wgmma_registers, "a"});
  e.needs.push_back({FenceKind::async_proxy, "b"});
  return e;
}

Operand immediate(std::string_view name, int64_t low, int64_t high, int64_t step) {
  return {.name = name, .kind = OperandKind::immediate, .low = low, .high = high, .step = step};
}

Form make(const Wgmma& w) {
  const bool shared = w.a_from == Feed::shared;
  Form f;
  f.name = name(w);
  f.doc = fmt::format("D += A B, A in {}", shared ? "shared memory" : "registers");
  f.capability = "wgmma";
  Modifier n{"n", {}};
  for (int64_t i : wgmma_widths(w.a)) n.values.push_back(std::to_string(i));
  f.modifiers = {n};
  f.operands = {
      {.name = "d",
       .kind = w.c == Element::f32 ? OperandKind::f32 : OperandKind::b32,
       .direction = Direction::inout,
       .registers = Amount::modifier("n", 1, 2 * w.c_per_register())},
      shared ? Operand{.name = "a", .kind = OperandKind::descriptor}
             : Operand{.name = "a", .kind = OperandKind::b32, .registers = Amount::number(4)},
      {.name = "b", .kind = OperandKind::descriptor},
      {.name = "accumulate", .kind = OperandKind::b32},  // 0: D = A B
  };
  std::string more;
  if (!is_integer(w.a)) {
    f.operands.push_back(immediate("scale_a", -1, 1, 2));
    f.operands.push_back(immediate("scale_b", -1, 1, 2));
    more = ", $scale_a, $scale_b";
  }
  if (w.may_transpose()) {
    if (shared) f.operands.push_back(immediate("transpose_a", 0, 1, 1));
    f.operands.push_back(immediate("transpose_b", 0, 1, 1));
    more += shared ? ", $transpose_a, $transpose_b" : ", $transpose_b";
  }
  f.ptx = fmt::format(
      "{{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, $accumulate, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n<n>k{}{}.{}.{}.{} $d, $a, $b, accumulate{};\n}}",
      w.k(), w.saturating ? ".satfinite" : "", name_of(w.c), name_of(w.a), name_of(w.b), more);
  f.effects = effects(w);
  return f;
}

/// Orders, commits and waits (PTX ISA, "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group").
std::vector<Form> synchronization() {
  std::vector<Form> out(3);
  out[0] = {
      .name = "wgmma.fence",
      .doc =
          "Orders the warpgroup's earlier accesses of registers before wgmma's of the "
          "same ones; not needed between products of one shape into one accumulator",
      .capability = "wgmma",
      .ptx = "wgmma.fence.sync.aligned;",
      .effects = {.issuer = Issuer::warpgroup, .fences = {{.kind = FenceKind::wgmma_registers}}}};
  out[1] = {.name = "wgmma.commit",
            .doc = "Closes a group of all wgmma that the warp has issued since the last one",
            .capability = "wgmma",
            .ptx = "wgmma.commit_group.sync.aligned;",
            .effects = {.issuer = Issuer::warpgroup,
                        .events = {{.verb = Verb::signals,
                                    .kind = EventKind::wgmma_group,
                                    .amount = Amount::number(1)}}}};
  out[2] = {.name = "wgmma.wait",
            .doc =
                "Waits until at most `pending` of the warp's groups are under way: each warp "
                "for its own",
            .capability = "wgmma",
            .operands = {immediate("pending", 0, 7, 1)},
            .ptx = "wgmma.wait_group.sync.aligned $pending;",
            .effects = {.issuer = Issuer::warpgroup,
                        .events = {{.verb = Verb::awaits,
                                    .kind = EventKind::wgmma_group,
                                    .amount = Amount::operand("pending")}}}};
  return out;
}

std::span<const Form> forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> out = synchronization();
    for (const Wgmma& w : wgmma_kinds()) out.push_back(make(w));
    return out;
  }();
  return all;
}

}  // namespace

std::vector<int64_t> wgmma_widths(Element a) {
  std::vector<int64_t> out;
  for (int64_t n = 8; n <= 256; n += 8)
    if (!is_integer(a) || n % 16 == 0 || n == 8 || n == 24) out.push_back(n);
  return out;
}

std::vector<Wgmma> wgmma_kinds() {
  constexpr Element all[] = {Element::f16,  Element::bf16, Element::tf32, Element::e4m3,
                             Element::e5m2, Element::s8,   Element::u8};
  std::vector<Wgmma> out;
  for (Element a : all)
    for (Element b : all)
      for (Element c : {Element::f32, Element::f16, Element::s32})
        for (Feed from : {Feed::shared, Feed::registers})
          for (bool saturating : {false, true})
            if (legal(a, b, c, saturating)) out.push_back({a, b, c, from, 8, saturating});
  return out;
}

Result<Wgmma> wgmma(Element a, Element b, Element c, Feed a_from, int64_t n, bool saturating) {
  if (!legal(a, b, c, saturating)) {
    std::vector<std::string> there;
    for (const Wgmma& w : wgmma_kinds())
      if (w.a == a) there.push_back(name(w));
    return error(fail(no_such_form, "there is no wgmma of {} and {} into {}{}", name_of(a),
                      name_of(b), name_of(c), saturating ? " that saturates" : "")
                     .expect("one of: {}", there.empty() ? "none" : join(there, ", ")));
  }
  const std::vector<int64_t> widths = wgmma_widths(a);
  if (std::find(widths.begin(), widths.end(), n) == widths.end())
    return error(fail(no_such_form, "there is no wgmma of {} with n = {}", name_of(a), n)
                     .expect("{}", is_integer(a) ? "8, 24 or a multiple of 16 up to 256"
                                                 : "a multiple of 8 up to 256"));
  return Wgmma{a, b, c, a_from, n, saturating};
}

/// PTX ISA, "Register Fragments for wgmma": warp w of the warpgroup has rows 16 w to 16 w + 15,
/// lane 4 g + t of it rows g and g + 8; a 32-bit register has neighbours along k.
Layout Wgmma::a_layout() const {
  const int64_t e = a_per_register();
  return {IntTuple::tuple({IntTuple::flat({4, 8, 4}), IntTuple::flat({e, 2, 2})}),
          IntTuple::tuple(
              {IntTuple::flat({64 * e, 1, 16}), IntTuple::flat({64, 8, int64_t{256} * e})})};
}

/// The same of the accumulators: neighbours are columns 2 t and 2 t + 1 of every 8.
Layout Wgmma::c_layout() const {
  return {IntTuple::tuple({IntTuple::flat({4, 8, 4}), IntTuple::flat({2, 2, n / 8})}),
          IntTuple::tuple({IntTuple::flat({128, 1, 16}), IntTuple::flat({64, 8, 512})})};
}

const Form& Wgmma::form() const {
  return *find_form(name(*this));
}

namespace instructions {
extern const Family wgmma = {
    .name = "wgmma",
    .doc = "Products of a warpgroup, asynchronous: B in shared memory, A there or in registers",
    .section = "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions",
    .forms = forms,
};
}

}  // namespace tessera::arch
