// Whether an entry of the same key is a verdict here.
#include <array>
#include <fmt/format.h>

#include "base/text.h"
#include "registry/registry.h"

namespace tessera::registry {
namespace {

std::string version(const Json& libraries, const std::string& name) {
  if (!libraries.is_object() || !libraries.contains(name)) return "unknown";
  const Json& v = libraries.at(name);
  return v.is_string() ? v.get<std::string>() : v.dump();
}

/// "torch 2.10.0, here 2.11.0"; "" where they agree.
std::string differing(const Json& made_with, const Json& here) {
  std::vector<std::string> out;
  if (!here.is_object()) return "";
  for (const auto& [name, unused] : here.items()) {
    const std::string then = version(made_with, name);
    const std::string now = version(here, name);
    if (then != now) out.push_back(fmt::format("{} {}, here {}", name, then, now));
  }
  return join(out, "; ");
}

std::string text_of(const Asked& asked) {
  return asked.seconds > 0 ? fmt::format("{:.3g} s of {}", asked.seconds, asked.effort)
                           : asked.effort;
}

}  // namespace

std::string_view name_of(Standing standing) {
  constexpr std::array names{"holds",      "imported", "other toolchain",
                             "unreliable", "shallow",  "other libraries"};
  return names.at(static_cast<std::size_t>(standing));
}

Judged judge(const Entry& e, const Here& here) {
  if (e.provenance.imported) {
    return {Standing::imported, fmt::format("imported from {} on {}; not tried here yet",
                                            e.provenance.file, e.provenance.when)};
  }
  if (e.toolchain != here.toolchain)
    return {Standing::other_toolchain, "built by another toolchain: " + e.toolchain};
  if (e.unreliable())
    return {Standing::unreliable, "the machine was too noisy for its figures to be relied on"};
  if (!satisfies(e.search, here.asked)) {
    return {Standing::shallow, fmt::format("its search was {}; asked for now: {}",
                                           to_text(e.search), text_of(here.asked))};
  }
  if (const std::string other = differing(e.libraries, here.libraries); !other.empty())
    return {Standing::other_libraries, "its library kernels are of other versions: " + other};
  return {};
}

}  // namespace tessera::registry
