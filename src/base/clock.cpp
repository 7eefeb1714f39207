#include "base/clock.h"

#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>

namespace tessera {

std::string now_utc() {
  return utc_before(0);
}

std::string utc_before(double days) {
  const auto now = static_cast<double>(std::time(nullptr));
  const auto then = static_cast<std::time_t>(std::max(0.0, now - days * 86400));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(then));
}

}  // namespace tessera
