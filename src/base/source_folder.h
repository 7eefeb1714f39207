// Where the source tree lies: for tests, which read fixtures and headers from it.
#pragma once

#include <string>

namespace tessera {

/// Defined in the test programs alone, by a file that the build writes: tests do not have the path
/// in their command lines, so that checkouts share their compiled tests.
const std::string& source_folder();

}  // namespace tessera
