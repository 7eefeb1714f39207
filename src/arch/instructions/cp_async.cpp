// Copies of a few bytes a thread that do not pass through registers (PTX ISA, "cp.async",
// "cp.async.commit_group", "cp.async.wait_group", "cp.async.mbarrier.arrive").
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

/// The generic proxy's, although it completes later: no proxy fence stands between it and the
/// thread's own loads, only its completion.
Access access(Action action, Space space, std::string_view operand, Amount bytes) {
  return {action, space, Proxy::generic, operand, Place::lanes, bytes, Completion::cp_async_group};
}

/// Reads `filled` bytes and writes `width`: zeros for the rest.
Form copy(int64_t width, bool filling) {
  Form f;
  f.name = fmt::format("cp_async.{}{}", width, filling ? ".fill" : "");
  f.doc = fmt::format("{} bytes of global memory to shared memory{}", width,
                      filling ? ", zeros past the first `filled`" : "");
  f.capability = "cp_async";
  f.operands = {{.name = "to", .kind = OperandKind::shared, .alignment = width},
                {.name = "from", .kind = OperandKind::global, .alignment = width}};
  if (filling)
    f.operands.push_back({.name = "filled", .kind = OperandKind::b32, .low = 0, .high = width});
  f.ptx = fmt::format("cp.async.{}.shared.global [$to], [$from], {}{};", width == 16 ? "cg" : "ca",
                      width, filling ? ", $filled" : "");
  const Amount read = filling ? Amount::operand("filled") : Amount::number(width);
  f.effects = {.issuer = Issuer::thread,
               .accesses = {access(Action::read, Space::global, "from", read),
                            access(Action::write, Space::shared, "to", Amount::number(width))}};
  return f;
}

Form commit() {
  return {.name = "cp_async.commit",
          .doc = "Closes a group of all cp.async that the thread has issued since the last one",
          .capability = "cp_async",
          .ptx = "cp.async.commit_group;",
          .effects = {.issuer = Issuer::thread,
                      .events = {{.verb = Verb::signals,
                                  .kind = EventKind::cp_async_group,
                                  .amount = Amount::number(1)}}}};
}

/// What is complete is visible to the waiting thread alone.
Form wait() {
  return {.name = "cp_async.wait",
          .doc = "Waits until all but the latest `pending` groups of the thread have completed",
          .capability = "cp_async",
          .operands = {{.name = "pending", .kind = OperandKind::immediate, .low = 0, .high = 63}},
          .ptx = "cp.async.wait_group $pending;",
          .effects = {.issuer = Issuer::thread,
                      .events = {{.verb = Verb::awaits,
                                  .kind = EventKind::cp_async_group,
                                  .amount = Amount::operand("pending")}}}};
}

/// Without .noinc the barrier's pending count first goes up by one, so that the arrival is not one
/// of those that it was initialized for.
Form arrive(bool counted) {
  const Event arrival{.verb = Verb::signals,
                      .kind = EventKind::arrival,
                      .operand = "barrier",
                      .amount = Amount::number(1),
                      .when = When::with_prior_copies,
                      .order = Ordering::release};
  const Event one_more{.verb = Verb::signals,
                       .kind = EventKind::arrival,
                       .operand = "barrier",
                       .amount = Amount::number(-1)};
  std::vector<Event> events = {arrival};
  if (!counted) events.insert(events.begin(), one_more);
  return {.name = counted ? "cp_async.arrive" : "cp_async.arrive_extra",
          .doc = counted ? "Arrives at an mbarrier when all earlier cp.async of the thread are "
                           "complete; one of its expected arrivals"
                         : "The same, beyond the barrier's expected arrivals: nets to none",
          .capability = "mbarrier",
          .operands = {{.name = "barrier", .kind = OperandKind::shared, .alignment = 8}},
          .ptx = counted ? "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$barrier];"
                         : "cp.async.mbarrier.arrive.shared::cta.b64 [$barrier];",
          .effects = {.issuer = Issuer::thread,
                      .events = std::move(events),
                      .needs = {{FenceKind::barrier_init, "barrier"}}}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      copy(4, false), copy(8, false), copy(16, false), copy(4, true), copy(8, true),
      copy(16, true), commit(),       wait(),          arrive(true),  arrive(false)};
  return all;
}

}  // namespace

namespace instructions {
extern const Family cp_async = {
    .name = "cp_async",
    .doc = "Copies of 4, 8 or 16 bytes a thread from global to shared memory",
    .section = "Data Movement and Conversion Instructions: Non-bulk copy",
    .forms = forms,
};
}

}  // namespace tessera::arch
