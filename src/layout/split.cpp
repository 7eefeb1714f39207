#include "layout/split.h"

#include <stdexcept>

#include "layout/fit.h"

namespace tessera {
namespace {

constexpr Code no_split{"TS0112", "layout.no_split"};

}  // namespace

Status splits(const Swizzle& s, int64_t divisor) {
  if (divisor < 1) throw std::logic_error("a divisor is at least 1");
  const int64_t aligned = divisor & -divisor;
  if (s.bits == 0 || aligned % s.period() == 0) return {};
  // The multiple of the divisor whose lowest set bit is one that the swizzle reads. One that is
  // read lies at or above `aligned`, and odd multiples of `aligned` have it at `aligned` itself.
  const int64_t lowest = int64_t{1} << (s.base + s.shift);
  const int64_t moved = divisor * std::max<int64_t>(1, lowest / aligned);
  return error(fail(no_split, "a base cannot be taken out of {}", to_string(s))
                   .expect("a multiple of {}", s.period())
                   .but_found("a multiple of {}", divisor)
                   .note("base {} is moved to {}", moved, s(moved))
                   .help("align the buffer to {} elements", s.period()));
}

Status splits(const Swizzle& s, int64_t base, const Layout& f) {
  if (base < 0) throw std::logic_error("a base is at least 0");
  if (base % s.period() == 0) return {};
  if (f.size() > layout::most_enumerated) {
    return error(
        fail(no_split, "whether a base can be taken out of {} is not decided", to_string(s))
            .expect("a multiple of {}", s.period())
            .but_found("{} under {}", base, to_string(f)));
  }
  for (int64_t i = 0; i < f.size(); ++i) {
    const int64_t together = s(base + f(i));
    const int64_t apart = base + s(f(i));
    if (together == apart) continue;
    return error(fail(no_split, "base {} cannot be taken out of {}", base, to_string(s))
                     .expect("{} at index {} of {}", apart, i, to_string(f))
                     .but_found("{}", together)
                     .help("align the base to {} elements", s.period())
                     .with("index", i));
  }
  return {};
}

}  // namespace tessera
