#pragma once

#include <string>

namespace tessera {

/// "2026-11-21T03:18:11Z".
std::string now_utc();
/// The same for `days` before now, not before 1970.
std::string utc_before(double days);

}  // namespace tessera
