// Barriers in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions:
// mbarrier"). A phase completes when its pending arrivals and its pending bytes are both zero; the
// next one then has the arrivals that the barrier was initialized with. A fresh barrier is in phase
// 0, and waiting for parity 1 returns at once.
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

constexpr int64_t most = (int64_t{1} << 20) - 1;  // arrivals of a phase, and pending bytes

Operand barrier(OperandKind kind = OperandKind::shared) {
  return {.name = "barrier", .kind = kind, .alignment = 8};
}
Operand count() {
  return {.name = "count", .kind = OperandKind::b32, .low = 1, .high = most};
}
Operand bytes() {
  return {.name = "bytes", .kind = OperandKind::b32, .low = 0, .high = most};
}
Operand parity() {
  return {.name = "parity", .kind = OperandKind::b32, .low = 0, .high = 1};
}
Event arrival(Amount amount, Scope scope) {
  return {.verb = Verb::signals,
          .kind = EventKind::arrival,
          .operand = "barrier",
          .amount = amount,
          .order = Ordering::release,
          .scope = scope};
}
Event expectation() {
  return {.verb = Verb::signals,
          .kind = EventKind::expectation,
          .operand = "barrier",
          .amount = Amount::operand("bytes")};
}
Event phase(Scope scope) {
  return {.verb = Verb::awaits,
          .kind = EventKind::phase,
          .operand = "barrier",
          .amount = Amount::operand("parity"),
          .order = Ordering::acquire,
          .scope = scope};
}

/// A write of the barrier's 8 bytes by the generic proxy; everything after acts on it as one.
Form init() {
  return {.name = "mbarrier.init",
          .doc = "Makes 8 bytes a barrier of `count` arrivals a phase",
          .capability = "mbarrier",
          .operands = {barrier(), count()},
          .ptx = "mbarrier.init.shared::cta.b64 [$barrier], $count;",
          .effects = {.issuer = Issuer::elected,
                      .accesses = {{Action::write, Space::shared, Proxy::generic, "barrier",
                                    Place::once, Amount::number(8)}}}};
}

Form invalidate() {
  return {.name = "mbarrier.inval",
          .doc = "Makes the 8 bytes memory again",
          .capability = "mbarrier",
          .operands = {barrier()},
          .ptx = "mbarrier.inval.shared::cta.b64 [$barrier];",
          .effects = {.issuer = Issuer::elected,
                      .accesses = {{Action::write, Space::shared, Proxy::generic, "barrier",
                                    Place::once, Amount::number(8)}}}};
}

Form make(const std::string& name, const std::string& doc, std::vector<Operand> operands,
          const std::string& ptx, std::vector<Event> events) {
  return {.name = name,
          .doc = doc,
          .capability = "mbarrier",
          .operands = std::move(operands),
          .ptx = ptx,
          .effects = {.issuer = Issuer::thread,
                      .events = std::move(events),
                      .needs = {{FenceKind::barrier_init, "barrier"}}}};
}

/// At the barrier that lies at the same offset in block `rank` of the cluster.
Form remote(const std::string& name, const std::string& doc, const std::string& order,
            Event arrival) {
  Form f = make(name, doc, {barrier(), {.name = "rank", .kind = OperandKind::b32, .high = 15}},
                "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, $barrier, $rank;\n"
                "mbarrier.arrive" +
                    order + ".shared::cluster.b64 _, [there];\n}",
                {arrival});
  f.capability = "cluster";
  f.effects.events.front().block = "rank";
  return f;
}

/// The loop over try_wait, which may give up after a while without saying why.
std::string waiting(const std::string& qualifiers) {
  return "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity" + qualifiers +
         ".shared::cta.b64 done, [$barrier], $parity;\n@done bra.uni over;\nbra.uni again;\n"
         "over:\n}";
}

std::vector<Form> arrivals() {
  Event relaxed = arrival(Amount::number(1), Scope::cluster);
  relaxed.order = Ordering::relaxed;
  return {
      make("mbarrier.arrive", "One arrival", {barrier()},
           "mbarrier.arrive.shared::cta.b64 _, [$barrier];",
           {arrival(Amount::number(1), Scope::block)}),
      make("mbarrier.arrive_many", "`count` arrivals", {barrier(), count()},
           "mbarrier.arrive.shared::cta.b64 _, [$barrier], $count;",
           {arrival(Amount::operand("count"), Scope::block)}),
      make("mbarrier.arrive_expect_tx", "Expects `bytes` more in this phase, then one arrival",
           {barrier(), bytes()}, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$barrier], $bytes;",
           {expectation(), arrival(Amount::number(1), Scope::block)}),
      make("mbarrier.expect_tx", "Expects `bytes` more in this phase, without an arrival",
           {barrier(), bytes()},
           "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$barrier], $bytes;", {expectation()}),
      remote("mbarrier.arrive_at", "One arrival in block `rank`, for what TMA and wgmma did",
             ".relaxed.cluster", relaxed),
      remote("mbarrier.arrive_at_release",
             "One arrival in block `rank`, after the thread's own accesses", ".release.cluster",
             arrival(Amount::number(1), Scope::cluster)),
  };
}

std::span<const Form> forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> out = {init(), invalidate()};
    for (Form& f : arrivals()) out.push_back(std::move(f));
    out.push_back(make("mbarrier.wait", "Waits for the phase of `parity` to complete",
                       {barrier(), parity()}, waiting(""), {phase(Scope::block)}));
    out.push_back(
        make("mbarrier.wait_cluster", "The same, after which what other blocks released is visible",
             {barrier(), parity()}, waiting(".acquire.cluster"), {phase(Scope::cluster)}));
    return out;
  }();
  return all;
}

}  // namespace

namespace instructions {
extern const Family mbarrier = {
    .name = "mbarrier",
    .doc = "Barriers in shared memory that count arrivals and bytes",
    .section = "Parallel Synchronization and Communication Instructions: mbarrier",
    .forms = forms,
};
}

}  // namespace tessera::arch
