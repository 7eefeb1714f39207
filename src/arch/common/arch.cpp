#include "arch/arch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace tessera::arch {
namespace {
constexpr Code no_such_arch{"TS0020", "input.no_such_arch"};
}

bool Arch::has(std::string_view capability) const {
  return std::find(capabilities.begin(), capabilities.end(), capability) != capabilities.end();
}

double Arch::bandwidth_of(double bytes, double main) const {
  return bytes <= static_cast<double>(l2_bytes) ? std::max(main, cached_bandwidth_gbs) : main;
}

const Mma* Arch::product(Precision operands) const {
  if (products == nullptr) return nullptr;
  for (const Mma& i : products())
    if (i.operands == operands && has(i.capability)) return &i;
  return nullptr;
}

Result<const Arch*> find(std::string_view name) {
  std::vector<std::string> names;
  for (const Arch* arch : all()) {
    if (arch->name == name) return arch;
    names.emplace_back(arch->name);
  }
  Diagnostic d = fail(no_such_arch, "there is no architecture `{}`", name)
                     .expect("one of: {}", join(names, ", "))
                     .but_found("{}", name);
  if (const std::string near = nearest(name, names); !near.empty())
    d.helps.push_back(fmt::format("did you mean `{}`?", near));
  return error(std::move(d));
}

}  // namespace tessera::arch
