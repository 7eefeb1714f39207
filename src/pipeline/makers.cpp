#include <algorithm>

#include "evaluate/evaluate.h"
#include "pipeline/pipeline.h"

namespace tessera::pipeline {

void ask_realizers(Discovered& found) {
  for (rules::Pattern& p : found.discovery.patterns) {
    const evaluate::Offers offers = evaluate::offers(p, found.graph, *found.arch);
    rules::Makers makers{.refused = evaluate::refused_of_ours(offers.unsupported)};
    for (const auto& c : offers.candidates) {
      std::vector<std::string>& names =
          c.kind == kernel::Kind::synthesized ? makers.synthesized : makers.library;
      if (std::find(names.begin(), names.end(), c.realizer) == names.end())
        names.push_back(c.realizer);
    }
    p.makers = std::move(makers);
  }
}

}  // namespace tessera::pipeline
