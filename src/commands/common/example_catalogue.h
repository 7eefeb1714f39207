// What `tessera examples` knows: CUTLASS's examples, kernel files, and configurations that won.
#pragma once

#include <string>

#include "commands/commands.h"
#include "rules/common/examples.h"

#include "examples/nearest.h"

namespace tessera::commands {

struct Catalogue {
  rules::ExampleIndex index;
  examples::Configurations configurations;
};

/// What comes with tessera, and what the registry at `place` has learned ("": the user's; none is
/// made where there is none).
Result<Catalogue> collect_examples(const std::string& place);

/// Those that have all of `words` and are of the rule, the precision and so on that are given, the
/// nearest extents first; and what has no example.
Outcome search_examples(const Catalogue& c, const examples::Asked& asked, const std::string& words);

Json to_json(const rules::Example& e);
/// With its name, by which it can be shown.
Json named(const examples::Known& k);

}  // namespace tessera::commands
