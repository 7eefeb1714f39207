#include "pipeline/by_hand_sanitize.h"

#include "toolchain/compute_sanitizer.h"

namespace tessera::pipeline {

toolchain::Sanitized sanitizer_says(Session& s, const ByHand& given, const kernel::Candidate& c,
                                    const std::filesystem::path& library,
                                    const std::vector<toolchain::Storage>& tensors) {
  const toolchain::Toolchain& tools = s.tools.evaluation.tools;
  toolchain::Source source = *c.source;
  const std::vector<int64_t>& ints = c.launches.front().ints;
  if (source.language == toolchain::Language::cxx)
    return toolchain::sanitize(tools, source, tensors, ints, given.limit);
  s.say("try", "compute-sanitizer on " + given.source.file);
  auto found = toolchain::compute_sanitize(tools, library, tensors, ints, given.limit);
  if (!found.ran || found.clean || !found.forbidden.empty()) return found;
  source.flags.emplace_back("-lineinfo");
  const auto lined = toolchain::build(tools, source, s.tools.evaluation.cache, 10 * given.limit);
  if (!lined) return found;
  auto again = toolchain::compute_sanitize(tools, lined->library, tensors, ints, given.limit);
  const bool own = again.file == "source.cu" ||
                   again.file == std::filesystem::path(given.source.file).filename().string();
  return again.ran && !again.clean && own ? again : found;
}

}  // namespace tessera::pipeline
