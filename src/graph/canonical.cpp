#include "graph/canonical.h"
namespace tessera::graph { std::vector<Rewrite> canonicalize(Graph& g) { g.erase_dead(); return {}; } }
