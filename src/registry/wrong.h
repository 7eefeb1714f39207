// Winners that gave a wrong result in a module: among an entry's failed trials, and nowhere else.
#pragma once

#include "registry/registry.h"

namespace tessera::registry {

/// Takes out the winners that `negative` names as wrong in a module.
void drop_wrong(Entry& e);
/// The line that `negative` gets for such a winner.
Json wrong_trial(const Wrong& wrong);
bool is_wrong_trial(const Json& trial);

}  // namespace tessera::registry
