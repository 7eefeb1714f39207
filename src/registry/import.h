// What is taken of an exported registry: configurations and evidence (private to the folder).
//
// The file is another machine's word, or an enemy's. Of a kernel it says which realizer made it
// with which configuration, and nothing of it is ever built, loaded or called: source texts, flags,
// library calls and launch integers are left out, the realizers here make them again. Every field
// is checked for its type, its size and its characters; one that is wrong refuses the whole file.
#pragma once

#include <string>
#include <vector>

#include "diag/result.h"
#include "registry/registry.h"

namespace tessera::registry {

struct Sanitized {
  std::vector<Entry> entries;  // accepted ones
  Imported counts;             // but `taken`
};
/// Reads schema tessera.registry/1 (which had sources) and /2. `registry.bad_import` for what is no
/// export, `registry.bad_entry` for a field that is missing, of a wrong type or out of bounds: it
/// names the entry and the field.
Result<Sanitized> sanitize(const Json& exported, const std::string& file, const std::string& now);

}  // namespace tessera::registry
