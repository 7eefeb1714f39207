// Loads and stores of a thread (PTX ISA, "ld", "ld.global.nc", "st"): 1 to 16 bytes at an address
// that is a multiple of as many. A bounded one takes a flag: where it is 0, nothing happens, the
// address is not looked at and a load leaves its registers as they were.
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

struct Width {
  int64_t bytes;
  std::string type;  // after the vector's extent
  OperandKind kind;
  int64_t registers;
};
std::vector<Width> widths() {
  return {{1, "b8", OperandKind::b16, 1},
          {2, "b16", OperandKind::b16, 1},
          {4, "b32", OperandKind::b32, 1},
          {8, "v2.b32", OperandKind::b32, 2},
          {16, "v4.b32", OperandKind::b32, 4}};
}

Operand registers(std::string_view name, const Width& w, Direction direction) {
  return {.name = name,
          .kind = w.kind,
          .direction = direction,
          .registers = Amount::number(w.registers)};
}
Operand address(std::string_view name, const Width& w, Space space) {
  return {.name = name,
          .kind = space == Space::global ? OperandKind::global : OperandKind::shared,
          .alignment = w.bytes};
}
std::string bounded(const std::string& access) {
  return "{\n.reg .pred inside;\nsetp.ne.b32 inside, $inside, 0;\n@inside " + access + "\n}";
}
Form load(const Width& w, Space space, const std::string& qualifiers, bool bound) {
  Form f;
  f.name = fmt::format("load.{}.{}{}", name_of(space), w.bytes, bound ? ".bounded" : "");
  f.doc = fmt::format("{} bytes of {} memory{}", w.bytes, name_of(space),
                      bound ? "; where `inside` is 0, `to` keeps what it has" : "");
  f.capability = "cuda";
  f.operands = {registers("to", w, bound ? Direction::inout : Direction::out),
                address("from", w, space)};
  const std::string access =
      fmt::format("ld.{}{}.{} $to, [$from];", name_of(space), qualifiers, w.type);
  if (bound) f.operands.push_back({.name = "inside", .kind = OperandKind::b32});
  f.ptx = bound ? bounded(access) : access;
  f.effects = {.issuer = Issuer::thread,
               .accesses = {{Action::read, space, Proxy::generic, "from", Place::lanes,
                             Amount::number(w.bytes)}}};
  if (bound) f.effects.accesses.front().unless_zero = "inside";
  return f;
}

Form store(const Width& w, Space space, const std::string& qualifiers, bool bound) {
  Form f;
  f.name = fmt::format("store.{}.{}{}", name_of(space), w.bytes, bound ? ".bounded" : "");
  f.doc = fmt::format("{} bytes to {} memory{}", w.bytes, name_of(space),
                      bound ? ", unless `inside` is 0" : "");
  f.capability = "cuda";
  f.operands = {address("to", w, space), registers("from", w, Direction::in)};
  const std::string access =
      fmt::format("st.{}{}.{} [$to], $from;", name_of(space), qualifiers, w.type);
  if (bound) f.operands.push_back({.name = "inside", .kind = OperandKind::b32});
  f.ptx = bound ? bounded(access) : access;
  f.effects = {.issuer = Issuer::thread,
               .accesses = {{Action::write, space, Proxy::generic, "to", Place::lanes,
                             Amount::number(w.bytes)}}};
  if (bound) f.effects.accesses.front().unless_zero = "inside";
  return f;
}

/// Through the cache of memory that no one writes while the kernel runs.
Form load_constant(const Width& w) {
  Form f = load(w, Space::global, ".nc.L1::no_allocate", false);
  f.name = fmt::format("load.constant.{}", w.bytes);
  f.doc =
      fmt::format("{} bytes of global memory that nothing writes while the kernel runs", w.bytes);
  return f;
}

/// Lines that are not read again: first to leave the caches.
Form store_streaming(const Width& w) {
  Form f = store(w, Space::global, ".cs", false);
  f.name = fmt::format("store.streaming.{}", w.bytes);
  f.doc = fmt::format("{} bytes to global memory that are not read again soon", w.bytes);
  return f;
}

/// What the copies that take a policy do with lines in the L2 cache.
Form cache_policy() {
  return {.name = "cache.policy",
          .doc = "A policy for copies that take one",
          .capability = "tma",
          .modifiers = {{"priority", {"evict_first", "evict_normal", "evict_last"}}},
          .operands = {{.name = "policy", .kind = OperandKind::b64, .direction = Direction::out}},
          .ptx = "createpolicy.fractional.L2::<priority>.b64 $policy, 1.0;",
          .effects = {.issuer = Issuer::thread}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> out;
    for (const Width& w : widths()) {
      for (Space space : {Space::global, Space::shared})
        for (bool bound : {false, true}) {
          out.push_back(load(w, space, "", bound));
          out.push_back(store(w, space, "", bound));
        }
      out.push_back(load_constant(w));
      out.push_back(store_streaming(w));
    }
    out.push_back(cache_policy());
    return out;
  }();
  return all;
}

}  // namespace

namespace instructions {
extern const Family memory = {
    .name = "memory",
    .doc = "Loads and stores of a thread, whole and bounded",
    .section = "Data Movement and Conversion Instructions: ld, st, createpolicy",
    .forms = forms,
};
}

}  // namespace tessera::arch
