// Barriers of a block by number (PTX ISA, "barrier{.cta}", "bar.warp.sync"). A barrier is complete
// when as many threads have come as each of them says; all must say the same, a multiple of 32.
// Number 0 is __syncthreads.
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

Operand id() {
  return {.name = "id", .kind = OperandKind::b32, .low = 0, .high = 15};
}
Operand threads() {
  return {.name = "threads", .kind = OperandKind::b32, .low = 32, .high = 1024, .step = 32};
}
Event event(Verb verb, Ordering order) {
  return {.verb = verb,
          .kind = EventKind::named_barrier,
          .operand = "id",
          .amount = Amount::operand("threads"),
          .order = order};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      {.name = "barrier.sync",
       .doc = "Comes to barrier `id` and waits for the others",
       .capability = "cuda",
       .operands = {id(), threads()},
       .ptx = "bar.sync $id, $threads;",
       .effects = {.issuer = Issuer::warp,
                   .events = {event(Verb::signals, Ordering::release),
                              event(Verb::awaits, Ordering::acquire)}}},
      {.name = "barrier.arrive",
       .doc = "Comes to barrier `id` and goes on",
       .capability = "cuda",
       .operands = {id(), threads()},
       .ptx = "bar.arrive $id, $threads;",
       .effects = {.issuer = Issuer::warp, .events = {event(Verb::signals, Ordering::release)}}},
      {.name = "warp.sync",
       .doc = "The lanes of `lanes` wait for each other",
       .capability = "cuda",
       .operands = {{.name = "lanes", .kind = OperandKind::b32}},
       .ptx = "bar.warp.sync $lanes;",
       .effects = {.issuer = Issuer::warp,
                   .events = {{.verb = Verb::awaits,
                               .kind = EventKind::warp,
                               .operand = "lanes",
                               .amount = Amount::number(1),
                               .order = Ordering::both}}}},
  };
  return all;
}

}  // namespace

namespace instructions {
extern const Family named_barrier = {
    .name = "named_barrier",
    .doc = "Sixteen barriers of a block, by number, and the barrier of a warp",
    .section = "Parallel Synchronization and Communication Instructions: barrier, bar.warp.sync",
    .forms = forms,
};
}

}  // namespace tessera::arch
