// The barrier of a cluster, and shared memory of its other blocks (PTX ISA, "barrier.cluster",
// "ld", "st.async"). No block may end while another one still reads its shared memory or arrives at
// its barriers.
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

Event event(Verb verb, Ordering order) {
  return {.verb = verb,
          .kind = EventKind::cluster_barrier,
          .amount = Amount::number(1),
          .order = order,
          .scope = Scope::cluster};
}

Form barrier(const std::string& name, const std::string& doc, const std::string& ptx,
             std::vector<Event> events) {
  return {.name = "cluster." + name,
          .doc = doc,
          .capability = "cluster",
          .ptx = ptx,
          .effects = {.issuer = Issuer::warp, .events = std::move(events)}};
}

/// The address, in the cluster's window, of what lies at `address` in block `rank`.
Form map_address() {
  return {.name = "cluster.map",
          .doc = "The address that block `rank` has at the place of `address`",
          .capability = "cluster",
          .operands = {{.name = "there",
                        .kind = OperandKind::cluster_shared,
                        .direction = Direction::out},
                       {.name = "address", .kind = OperandKind::shared},
                       {.name = "rank", .kind = OperandKind::b32, .low = 0, .high = 15}},
          .ptx = "mapa.shared::cluster.u32 $there, $address, $rank;",
          .effects = {.issuer = Issuer::thread}};
}

Form load() {
  return {.name = "cluster.load",
          .doc = "4 bytes of shared memory of a block of the cluster",
          .capability = "dsmem",
          .operands = {{.name = "to", .kind = OperandKind::b32, .direction = Direction::out},
                       {.name = "from", .kind = OperandKind::cluster_shared, .alignment = 4}},
          .ptx = "ld.shared::cluster.b32 $to, [$from];",
          .effects = {.issuer = Issuer::thread,
                      .accesses = {{Action::read, Space::cluster_shared, Proxy::generic, "from",
                                    Place::lanes, Amount::number(4)}}}};
}

Form store() {
  return {.name = "cluster.store",
          .doc = "4 bytes to shared memory of a block of the cluster",
          .capability = "dsmem",
          .operands = {{.name = "to", .kind = OperandKind::cluster_shared, .alignment = 4},
                       {.name = "from", .kind = OperandKind::b32}},
          .ptx = "st.shared::cluster.b32 [$to], $from;",
          .effects = {.issuer = Issuer::thread,
                      .accesses = {{Action::write, Space::cluster_shared, Proxy::generic, "to",
                                    Place::lanes, Amount::number(4)}}}};
}

Form store_async() {
  return {
      .name = "cluster.store_async",
      .doc = "4 bytes to shared memory of a block of the cluster, counted at its barrier",
      .capability = "dsmem",
      .operands = {{.name = "to", .kind = OperandKind::cluster_shared, .alignment = 4},
                   {.name = "from", .kind = OperandKind::b32},
                   {.name = "barrier", .kind = OperandKind::cluster_shared, .alignment = 8}},
      .ptx =
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$to], $from, "
          "[$barrier];",
      .effects = {.issuer = Issuer::thread,
                  .accesses = {{Action::write, Space::cluster_shared, Proxy::async, "to",
                                Place::lanes, Amount::number(4), Completion::barrier_bytes}},
                  .events = {{.verb = Verb::signals,
                              .kind = EventKind::bytes,
                              .operand = "barrier",
                              .amount = Amount::number(4),
                              .when = When::with_accesses,
                              .order = Ordering::release,
                              .scope = Scope::cluster}},
                  .needs = {{FenceKind::async_proxy, "to"}, {FenceKind::barrier_init, "barrier"}}}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      barrier("arrive", "Comes to the cluster's barrier and goes on",
              "barrier.cluster.arrive.release.aligned;", {event(Verb::signals, Ordering::release)}),
      barrier("arrive_relaxed", "The same, ordering none of the thread's accesses",
              "barrier.cluster.arrive.relaxed.aligned;", {event(Verb::signals, Ordering::relaxed)}),
      barrier("wait", "Waits until all threads of the cluster have come",
              "barrier.cluster.wait.acquire.aligned;", {event(Verb::awaits, Ordering::acquire)}),
      map_address(),
      load(),
      store(),
      store_async()};
  return all;
}

}  // namespace

namespace instructions {
extern const Family cluster = {
    .name = "cluster",
    .doc = "The barrier of a cluster and its blocks' shared memory",
    .section =
        "Parallel Synchronization and Communication Instructions: barrier.cluster; mapa; "
        "st.async",
    .forms = forms,
};
}

}  // namespace tessera::arch
