#include "base/clock.h"

#include <chrono>
#include <fmt/chrono.h>

namespace tessera {

std::string now_utc() {
  return utc_before(0);
}

std::string utc_before(double days) {
  using std::chrono::system_clock;
  const auto then = system_clock::now() - std::chrono::duration_cast<system_clock::duration>(
                                              std::chrono::duration<double>(days * 86400));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(system_clock::to_time_t(then)));
}

}  // namespace tessera
