// `optimize --mind llm`: a language model writes kernels for the patterns of a module before the
// ordinary search, which finds them in the registry (docs/mind.md).
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "commands/commands.h"
#include "commands/common/mind_provider.h"
#include "commands/common/model.h"

#include "agent/report.h"
#include "llm/budget.h"

namespace tessera::commands {

/// --mind and all that it takes.
std::vector<Parameter> mind_parameters();

/// What --mind asks for; nothing for the search alone. Errors, before anything is traced: TS0742 no
/// such mind, no model named, or figures that leave nothing to work with; TS0730 to TS0732 and
/// TS0741 of its provider; TS0737 and TS0738 of the money.
struct Mind {
  std::filesystem::path archive;       // empty: OUTPUT/mind
  std::unique_ptr<Provider> provider;  // null for a replay
  std::optional<llm::Price> price;
};
Result<std::optional<Mind>> mind_of(const Json& arguments, Context& context);

/// What the run may spend, by the flags.
llm::Limits limits_of(const Json& arguments);

/// The loop over the module. What wins is in the registry afterwards. Errors: of the provider
/// before anything came of it (TS073x), of the archive (TS0739), of a person who does not answer
/// (TS0744), and those of `try`.
Result<agent::Report> think(const Json& arguments, const Mind& mind, Model& model,
                            const std::filesystem::path& output, Context& context);

/// The run is whole: the same command begins another.
void close_archive(const Mind& mind, const std::filesystem::path& output,
                   const agent::Report& report);

}  // namespace tessera::commands
