// Runs of bytes by the accelerator's non-tensor copies, and the groups that complete bulk stores of
// both kinds (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.commit_group",
// "cp.async.bulk.wait_group").
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

/// Bytes of a copy: what an mbarrier can count, where shared memory does not end before.
Operand bytes() {
  return {.name = "bytes", .kind = OperandKind::b32, .low = 16, .high = (1 << 20) - 16, .step = 16};
}
Operand address(std::string_view name, OperandKind kind) {
  return {.name = name, .kind = kind, .alignment = 16};
}
Operand barrier() {
  return {.name = "barrier", .kind = OperandKind::cluster_shared, .alignment = 8};
}
Access access(Action action, Space space, std::string_view operand, Completion until) {
  return {action, space, Proxy::async, operand, Place::once, Amount::operand("bytes"), until};
}
Event counted(std::string_view blocks = "") {
  return {.verb = Verb::signals,
          .kind = EventKind::bytes,
          .operand = "barrier",
          .amount = Amount::operand("bytes"),
          .when = When::with_accesses,
          .order = Ordering::release,
          .scope = Scope::cluster,
          .blocks = blocks};
}

Form load(bool multicast) {
  Form f;
  f.name = multicast ? "bulk.load_multicast" : "bulk.load";
  f.doc = multicast ? "Bytes of global memory to the same place in every block whose bit is set"
                    : "Bytes of global memory to shared memory";
  f.capability = "tma";
  f.operands = {address("to", OperandKind::cluster_shared), address("from", OperandKind::global),
                bytes(), barrier()};
  if (multicast) f.operands.push_back({.name = "blocks", .kind = OperandKind::b16});
  f.ptx = std::string("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes") +
          (multicast ? ".multicast::cluster" : "") + " [$to], [$from], $bytes, [$barrier]" +
          (multicast ? ", $blocks;" : ";");
  const std::string_view blocks = multicast ? "blocks" : "";
  Access write = access(Action::write, Space::cluster_shared, "to", Completion::barrier_bytes);
  write.blocks = blocks;
  f.effects = {
      .issuer = Issuer::elected,
      .accesses = {access(Action::read, Space::global, "from", Completion::barrier_bytes), write},
      .events = {counted(blocks)},
      .needs = {{FenceKind::async_proxy, "from"},
                {FenceKind::async_proxy, "to"},
                {FenceKind::barrier_init, "barrier"}}};
  return f;
}

/// Counted at the barrier in the block that gets the bytes.
Form to_peer() {
  return {.name = "bulk.to_block",
          .doc = "Bytes of this block's shared memory to another block's of the cluster",
          .capability = "cluster",
          .operands = {address("to", OperandKind::cluster_shared),
                       address("from", OperandKind::shared), bytes(), barrier()},
          .ptx =
              "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$to], "
              "[$from], $bytes, [$barrier];",
          .effects = {
              .issuer = Issuer::elected,
              .accesses = {access(Action::read, Space::shared, "from", Completion::barrier_bytes),
                           access(Action::write, Space::cluster_shared, "to",
                                  Completion::barrier_bytes)},
              .events = {counted()},
              .needs = {{FenceKind::async_proxy, "from"},
                        {FenceKind::async_proxy, "to"},
                        {FenceKind::barrier_init, "barrier"}}}};
}

Form store() {
  return {.name = "bulk.store",
          .doc = "Bytes of shared memory to global memory",
          .capability = "tma",
          .operands = {address("to", OperandKind::global), address("from", OperandKind::shared),
                       bytes()},
          .ptx = "cp.async.bulk.global.shared::cta.bulk_group [$to], [$from], $bytes;",
          .effects = {
              .issuer = Issuer::elected,
              .accesses = {access(Action::read, Space::shared, "from", Completion::bulk_group_read),
                           access(Action::write, Space::global, "to", Completion::bulk_group)},
              .needs = {{FenceKind::async_proxy, "from"}, {FenceKind::async_proxy, "to"}}}};
}

Form reduce(const std::string& name, const std::string& qualifiers,
            std::vector<std::string> operations) {
  Access update = access(Action::update, Space::global, "to", Completion::bulk_group);
  update.atomic = Scope::gpu;
  return {.name = "bulk.reduce." + name,
          .doc =
              "Elements of shared memory into global memory by an operation, each at once, in no "
              "order",
          .capability = "tma",
          .modifiers = {{"op", std::move(operations)}},
          .operands = {address("to", OperandKind::global), address("from", OperandKind::shared),
                       bytes()},
          .ptx = "cp.reduce.async.bulk.global.shared::cta.bulk_group.<op>" + qualifiers + "." +
                 name + " [$to], [$from], $bytes;",
          .effects = {
              .issuer = Issuer::elected,
              .accesses = {access(Action::read, Space::shared, "from", Completion::bulk_group_read),
                           update},
              .needs = {{FenceKind::async_proxy, "from"}, {FenceKind::async_proxy, "to"}}}};
}

Form prefetch() {
  return {.name = "bulk.prefetch",
          .doc = "Bytes to the L2 cache: a hint without a completion",
          .capability = "tma",
          .operands = {address("from", OperandKind::global), bytes()},
          .ptx = "cp.async.bulk.prefetch.L2.global [$from], $bytes;",
          .effects = {.issuer = Issuer::elected}};
}

/// Groups are a thread's own: those of other threads complete unseen.
Form group(const std::string& name, const std::string& doc, Verb verb, EventKind kind) {
  Form f;
  f.name = name;
  f.doc = doc;
  f.capability = "tma";
  const bool waits = verb == Verb::awaits;
  if (waits)
    f.operands = {{.name = "pending", .kind = OperandKind::immediate, .low = 0, .high = 63}};
  f.ptx = !waits                               ? "cp.async.bulk.commit_group;"
          : kind == EventKind::bulk_group_read ? "cp.async.bulk.wait_group.read $pending;"
                                               : "cp.async.bulk.wait_group $pending;";
  f.effects = {.issuer = Issuer::thread,
               .events = {{.verb = verb,
                           .kind = kind,
                           .amount = waits ? Amount::operand("pending") : Amount::number(1)}}};
  return f;
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      load(false),
      load(true),
      to_peer(),
      store(),
      reduce("f16", ".noftz", {"add"}),
      reduce("bf16", ".noftz", {"add"}),
      reduce("f32", "", {"add"}),
      reduce("f64", "", {"add"}),
      reduce("s32", "", {"add", "min", "max"}),
      reduce("u32", "", {"add", "min", "max", "inc", "dec"}),
      reduce("u64", "", {"add", "min", "max"}),
      reduce("b32", "", {"and", "or", "xor"}),
      prefetch(),
      group("bulk.commit",
            "Closes a group of all bulk stores and reductions that the thread has issued since "
            "the last one, TMA's too",
            Verb::signals, EventKind::bulk_group),
      group("bulk.wait_read",
            "Waits until all but the latest `pending` groups of the thread have read shared memory",
            Verb::awaits, EventKind::bulk_group_read),
      group("bulk.wait",
            "Waits until all but the latest `pending` groups of the thread have completed",
            Verb::awaits, EventKind::bulk_group)};
  return all;
}

}  // namespace

namespace instructions {
extern const Family bulk_copy = {
    .name = "bulk_copy",
    .doc = "Runs of bytes between global and shared memory, and the groups of bulk stores",
    .section = "Data Movement and Conversion Instructions: Bulk copy",
    .forms = forms,
};
}

}  // namespace tessera::arch
