#include "simulate/values.h"

#include <span>

#include "simulate/value_families.h"

namespace tessera::simulate {

const Semantics* semantics_of(std::string_view form) {
  const Semantics* best = nullptr;
  for (const std::span<const Semantics> family :
       {memory_values(), copy_values(), tma_values(), matrix_values(), product_values(),
        warp_values(), no_values()})
    for (const Semantics& s : family)
      if (form.starts_with(s.prefix) && (best == nullptr || s.prefix.size() > best->prefix.size()))
        best = &s;
  return best;
}

std::span<const Semantics> no_values() {
  static constexpr Semantics all[] = {
      {"mbarrier.", nullptr, nullptr},     {"barrier.", nullptr, nullptr},
      {"warp.sync", nullptr, nullptr},     {"cluster.arrive", nullptr, nullptr},
      {"cluster.wait", nullptr, nullptr},  {"setmaxnreg.", nullptr, nullptr},
      {"fence.", nullptr, nullptr},        {"wgmma.fence", nullptr, nullptr},
      {"wgmma.commit", nullptr, nullptr},  {"wgmma.wait", nullptr, nullptr},
      {"bulk.commit", nullptr, nullptr},   {"bulk.wait", nullptr, nullptr},
      {"bulk.prefetch", nullptr, nullptr}, {"cp_async.commit", nullptr, nullptr},
      {"cp_async.wait", nullptr, nullptr}, {"cp_async.arrive", nullptr, nullptr},
      {"tma.prefetch", nullptr, nullptr},  {"grid.", nullptr, nullptr},
  };
  return all;
}

}  // namespace tessera::simulate
