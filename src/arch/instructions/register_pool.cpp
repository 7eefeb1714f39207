// Registers moved between the warps of a block (PTX ISA, "setmaxnreg"). A kernel that uses it is
// compiled for a fixed number of registers a thread; what warps give back goes to the block's pool.
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

Form make(const std::string& direction, Verb verb, const std::string& doc) {
  return {.name = "setmaxnreg." + direction,
          .doc = doc,
          .capability = "setmaxnreg",
          .operands = {{.name = "registers",
                        .kind = OperandKind::immediate,
                        .low = 24,
                        .high = 256,
                        .step = 8}},
          .ptx = "setmaxnreg." + direction + ".sync.aligned.u32 $registers;",
          .effects = {.issuer = Issuer::warpgroup,
                      .events = {{.verb = verb,
                                  .kind = EventKind::register_pool,
                                  .amount = Amount::operand("registers")}}}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      make("dec", Verb::signals, "Keeps `registers` a thread and gives the others back"),
      make("inc", Verb::awaits, "Waits until the pool has what lacks to `registers` a thread")};
  return all;
}

}  // namespace

namespace instructions {
extern const Family register_pool = {
    .name = "register_pool",
    .doc = "Registers a thread, given back and claimed by whole warpgroups",
    .section = "Miscellaneous Instructions: setmaxnreg",
    .forms = forms,
};
}

}  // namespace tessera::arch
