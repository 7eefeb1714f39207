// Fences between proxies and of memory (PTX ISA, "membar / fence", "Memory Consistency Model:
// Proxies"). wgmma.fence stands with wgmma, barriers order by themselves.
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

Form async_proxy(const std::string& suffix, Space space, const std::string& of) {
  return {.name = "fence.async" + suffix,
          .doc = "The thread's accesses before it, by the generic proxy, come before accesses of " +
                 of + " by TMA and wgmma after it, and the other way round",
          .capability = "tma",
          .ptx = "fence.proxy.async" + suffix + ";",
          .effects = {.issuer = Issuer::thread,
                      .fences = {{.kind = FenceKind::async_proxy, .space = space}}}};
}

Form tensormap(bool acquire) {
  Form f;
  f.name = acquire ? "fence.tensormap_acquire" : "fence.tensormap_release";
  f.doc = acquire ? "A tensor map that another thread wrote and released is read anew by TMA"
                  : "The thread's writes to tensor maps come before a later acquire";
  f.capability = "tma";
  f.ptx = acquire ? "fence.proxy.tensormap::generic.acquire.gpu [$map], 128;"
                  : "fence.proxy.tensormap::generic.release.gpu;";
  if (acquire) f.operands = {{.name = "map", .kind = OperandKind::tensor_map, .alignment = 128}};
  f.effects = {
      .issuer = Issuer::thread,
      .fences = {{.kind = acquire ? FenceKind::tensormap_acquire : FenceKind::tensormap_release,
                  .order = acquire ? Ordering::acquire : Ordering::release,
                  .scope = Scope::gpu}}};
  return f;
}

Form barrier_init() {
  return {.name = "fence.mbarrier_init",
          .doc =
              "Barriers that the thread has initialized are so for the cluster and for TMA; a "
              "barrier of the block or the cluster must still follow",
          .capability = "mbarrier",
          .ptx = "fence.mbarrier_init.release.cluster;",
          .effects = {.issuer = Issuer::thread,
                      .fences = {{.kind = FenceKind::barrier_init,
                                  .space = Space::shared,
                                  .order = Ordering::release,
                                  .scope = Scope::cluster}}}};
}

Form memory(const std::string& ptx_scope, Scope scope, std::string_view capability) {
  return {.name = "fence.memory." + std::string(name_of(scope)),
          .doc = fmt::format("Accesses of the thread by the generic proxy, before and after it, "
                             "for threads of the {}",
                             name_of(scope)),
          .capability = capability,
          .ptx = "fence.acq_rel." + ptx_scope + ";",
          .effects = {.issuer = Issuer::thread,
                      .fences = {{.kind = FenceKind::memory, .scope = scope}}}};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {
      async_proxy("", Space::global, "any memory"),
      async_proxy(".shared::cta", Space::shared, "the block's shared memory"),
      async_proxy(".shared::cluster", Space::cluster_shared, "the cluster's shared memory"),
      tensormap(false),
      tensormap(true),
      barrier_init(),
      memory("cta", Scope::block, "cuda"),
      memory("cluster", Scope::cluster, "cluster"),
      memory("gpu", Scope::gpu, "cuda"),
      memory("sys", Scope::system, "cuda")};
  return all;
}

}  // namespace

namespace instructions {
extern const Family fence = {
    .name = "fence",
    .doc = "Order between accesses of one thread, by proxies and scopes",
    .section = "Parallel Synchronization and Communication Instructions: membar / fence",
    .forms = forms,
};
}

}  // namespace tessera::arch
