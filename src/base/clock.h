#pragma once

#include <chrono>
#include <string>

namespace tessera {

/// "2026-11-21T03:18:11Z".
std::string now_utc();
/// The same for `days` before now, not before 1970.
std::string utc_before(double days);
/// Seconds of the steady clock.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace tessera
