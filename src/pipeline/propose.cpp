#include "pipeline/propose.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "pipeline/stages.h"
#include "registry/subgraphs.h"

namespace tessera::pipeline {
namespace {

inline constexpr Code no_registry{"TS0239", "propose.no_registry"};
inline constexpr Code no_proposal{"TS0260", "propose.no_proposal"};

}  // namespace

Result<std::vector<Json>> proposed_before(const Options& options) {
  const std::filesystem::path place = registry_file(options);
  std::error_code ignored;
  if (!options.use_registry || !std::filesystem::exists(place, ignored)) return std::vector<Json>();
  TESSERA_TRY(opened, registry::Subgraphs::open(place));
  return opened->subgraphs();
}

Result<std::vector<Proposed>> propose(const Discovered& found,
                                      const std::vector<rules::Proposal>& proposals,
                                      const Options& options) {
  if (!options.use_registry)
    return error(fail(no_registry, "what is proposed is kept in the registry, which is not used")
                     .help("leave out --use-registry false"));
  TESSERA_TRY(opened, registry::Subgraphs::open(registry_file(options)));
  const rules::Flow flow(found.graph);
  std::vector<Proposed> out;
  for (const rules::Proposal& p : proposals) {
    Proposed one{.proposal = p};
    const auto pattern = rules::propose(flow, p);
    if (pattern) {
      one.signature = pattern->signature();
      TESSERA_CHECK(opened->store_subgraph({{"name", p.name},
                                            {"rationale", p.rationale},
                                            {"model", found.graph.name},
                                            {"subgraph", pattern->body->to_json()}}));
    } else {
      one.refused = pattern.error();
    }
    out.push_back(std::move(one));
  }
  return out;
}

Status withdraw(const std::vector<std::string>& names, const Options& options) {
  if (!options.use_registry)
    return error(fail(no_registry, "what was proposed is in the registry, which is not used")
                     .help("leave out --use-registry false"));
  TESSERA_TRY(opened, registry::Subgraphs::open(registry_file(options)));
  TESSERA_TRY(stored, opened->subgraphs());
  std::vector<std::string> known;
  for (const Json& one : stored) known.push_back(one.value("name", ""));
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    Diagnostic unknown =
        fail(no_proposal, "nothing of the name `{}` was proposed", name)
            .expect("{}", known.empty() ? "nothing: no proposal is kept" : join(known, ", "));
    const std::string near = nearest(name, known);
    if (!near.empty()) unknown.helps.push_back(fmt::format("did you mean `{}`?", near));
    return error(std::move(unknown));
  }
  return opened->withdraw(names).map([](int) {});
}

const rules::Pattern* pattern_of(const Discovered& found, const Proposed& proposed) {
  if (proposed.refused) return nullptr;
  for (const rules::Pattern& p : found.discovery.patterns)
    if (p.signature() == proposed.signature) return &p;
  return nullptr;
}

}  // namespace tessera::pipeline
