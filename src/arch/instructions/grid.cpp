// Programmatic launch: a grid that starts before the one before it has ended (PTX ISA,
// "griddepcontrol").
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      {.name = "grid.wait",
       .doc = "Waits until the grids before it have ended and what they wrote is visible",
       .capability = "programmatic_launch",
       .ptx = "griddepcontrol.wait;",
       .effects = {.issuer = Issuer::thread,
                   .events = {{.verb = Verb::awaits,
                               .kind = EventKind::prerequisites,
                               .amount = Amount::number(1),
                               .order = Ordering::acquire,
                               .scope = Scope::gpu}}}},
      {.name = "grid.launch",
       .doc = "The next grid may start once every block has said so or ended; it says nothing of "
              "what this one wrote",
       .capability = "programmatic_launch",
       .ptx = "griddepcontrol.launch_dependents;",
       .effects = {.issuer = Issuer::thread,
                   .events = {{.verb = Verb::signals,
                               .kind = EventKind::dependents,
                               .amount = Amount::number(1),
                               .scope = Scope::gpu}}}},
  };
  return all;
}

}  // namespace

namespace instructions {
extern const Family grid = {
    .name = "grid",
    .doc = "Order between a grid and those before and after it in the stream",
    .section = "Parallel Synchronization and Communication Instructions: griddepcontrol",
    .forms = forms,
};
}

}  // namespace tessera::arch
