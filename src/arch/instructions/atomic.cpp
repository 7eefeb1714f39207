// Updates of global and shared memory, each as one (PTX ISA, "atom", "red"), and the loads and
// stores that semaphores are made of ("ld.acquire", "st.release").
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

struct Kind {
  std::string type;
  OperandKind operand;
  int64_t bytes;
  int64_t registers = 1;
  std::vector<std::string> operations;
  std::string vector = "";  // qualifier: .v2, .v4
  std::string noftz = "";
};

OperandKind address_of(Space space) {
  return space == Space::global ? OperandKind::global : OperandKind::shared;
}

/// Relaxed, for the whole GPU: other threads see updates one after the other, nothing else is
/// ordered.
Form update(const Kind& k, Space space, bool returns) {
  Form f;
  f.name =
      fmt::format("{}.{}.{}{}", returns ? "atomic" : "reduce", name_of(space), k.type, k.vector);
  f.doc = returns ? "Updates memory and returns what was there" : "Updates memory";
  f.capability = k.vector.empty() && k.type != "bf16x2" ? "cuda" : "vector_atomics";
  f.modifiers = {{"op", k.operations}};
  if (returns)
    f.operands.push_back({.name = "old",
                          .kind = k.operand,
                          .direction = Direction::out,
                          .registers = Amount::number(k.registers)});
  f.operands.push_back({.name = "at", .kind = address_of(space), .alignment = k.bytes});
  f.operands.push_back({.name = "by", .kind = k.operand, .registers = Amount::number(k.registers)});
  const std::string scope = space == Space::global ? "gpu" : "cta";
  f.ptx = fmt::format("{}.relaxed.{}.{}.<op>{}{}.{} {}[$at], $by;", returns ? "atom" : "red", scope,
                      name_of(space), k.noftz, k.vector, k.type, returns ? "$old, " : "");
  f.effects = {.issuer = Issuer::thread,
               .accesses = {{Action::update, space, Proxy::generic, "at", Place::lanes,
                             Amount::number(k.bytes)}}};
  f.effects.accesses.front().atomic = space == Space::global ? Scope::gpu : Scope::block;
  return f;
}

Form exchange_if(Space space) {
  Form f;
  f.name = fmt::format("atomic.{}.compare", name_of(space));
  f.doc = "Writes `by` where memory is `expected`; returns what was there";
  f.capability = "cuda";
  f.operands = {{.name = "old", .kind = OperandKind::b32, .direction = Direction::out},
                {.name = "at", .kind = address_of(space), .alignment = 4},
                {.name = "expected", .kind = OperandKind::b32},
                {.name = "by", .kind = OperandKind::b32}};
  f.ptx = fmt::format("atom.relaxed.{}.{}.cas.b32 $old, [$at], $expected, $by;",
                      space == Space::global ? "gpu" : "cta", name_of(space));
  f.effects = {
      .issuer = Issuer::thread,
      .accesses = {{Action::update, space, Proxy::generic, "at", Place::lanes, Amount::number(4)}}};
  f.effects.accesses.front().atomic = space == Space::global ? Scope::gpu : Scope::block;
  return f;
}

/// Ordering of the accesses around a flag in global memory, for threads of the whole GPU.
Form flag(const std::string& name, const std::string& doc, const std::string& ptx, Action action,
          Ordering order) {
  Form f;
  f.name = "flag." + name;
  f.doc = doc;
  f.capability = "cuda";
  f.operands = {{.name = "at", .kind = OperandKind::global, .alignment = 4},
                {.name = "value",
                 .kind = OperandKind::b32,
                 .direction = action == Action::read ? Direction::out : Direction::in}};
  f.ptx = ptx;
  f.effects = {
      .issuer = Issuer::thread,
      .accesses = {{action, Space::global, Proxy::generic, "at", Place::lanes, Amount::number(4)}},
      .fences = {{.kind = FenceKind::memory, .order = order, .scope = Scope::gpu}}};
  f.effects.accesses.front().atomic = Scope::gpu;
  return f;
}

std::vector<Kind> kinds() {
  return {{"f32", OperandKind::f32, 4, 1, {"add"}},
          {"s32", OperandKind::b32, 4, 1, {"add", "min", "max"}},
          {"u32", OperandKind::b32, 4, 1, {"add", "min", "max", "inc", "dec"}},
          {"b32", OperandKind::b32, 4, 1, {"and", "or", "xor"}},
          {"u64", OperandKind::b64, 8, 1, {"add", "min", "max"}},
          {"f16x2", OperandKind::b32, 4, 1, {"add"}, "", ".noftz"},
          {"bf16x2", OperandKind::b32, 4, 1, {"add"}, "", ".noftz"}};
}
/// Several neighbours at once, each of them as one; of global memory alone.
std::vector<Kind> vectors() {
  return {{"f32", OperandKind::f32, 8, 2, {"add"}, ".v2"},
          {"f32", OperandKind::f32, 16, 4, {"add"}, ".v4"},
          {"f16x2", OperandKind::b32, 16, 4, {"add"}, ".v4", ".noftz"},
          {"bf16x2", OperandKind::b32, 16, 4, {"add"}, ".v4", ".noftz"}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> out;
    for (const Kind& k : kinds())
      for (Space space : {Space::global, Space::shared})
        for (bool returns : {false, true}) out.push_back(update(k, space, returns));
    for (const Kind& k : vectors()) out.push_back(update(k, Space::global, false));
    for (Space space : {Space::global, Space::shared}) out.push_back(exchange_if(space));
    out.push_back(flag("load", "Reads a flag, then what its writer wrote before it",
                       "ld.acquire.gpu.global.b32 $value, [$at];", Action::read,
                       Ordering::acquire));
    out.push_back(flag("store", "Writes a flag after what the thread wrote before it",
                       "st.release.gpu.global.b32 [$at], $value;", Action::write,
                       Ordering::release));
    out.push_back(flag("add", "Adds to a flag after what the thread wrote before it",
                       "red.release.gpu.global.add.u32 [$at], $value;", Action::update,
                       Ordering::release));
    return out;
  }();
  return all;
}

}  // namespace

namespace instructions {
extern const Family atomic = {
    .name = "atomic",
    .doc = "Updates of memory as one, and flags between blocks",
    .section = "Parallel Synchronization and Communication Instructions: atom, red; ld, st",
    .forms = forms,
};
}

}  // namespace tessera::arch
