#include <algorithm>

#include "evaluate/evaluate.h"
#include "pipeline/pipeline.h"

namespace tessera::pipeline {
namespace {

/// The realizers of the candidates that are synthesized, or of the others; each once.
std::vector<std::string> realizers_of(const evaluate::Offers& offers, bool synthesized) {
  std::vector<std::string> names;
  for (const auto& c : offers.candidates) {
    if ((c.kind == kernel::Kind::synthesized) != synthesized) continue;
    if (std::find(names.begin(), names.end(), c.realizer) == names.end())
      names.push_back(c.realizer);
  }
  return names;
}

}  // namespace

void ask_realizers(Discovered& found) {
  for (rules::Pattern& p : found.discovery.patterns) {
    const evaluate::Offers offers = evaluate::offers(p, found.graph, *found.arch);
    p.makers = rules::Makers{.synthesized = realizers_of(offers, true),
                             .library = realizers_of(offers, false),
                             .refused = evaluate::refused_of_ours(offers.unsupported)};
  }
}

}  // namespace tessera::pipeline
