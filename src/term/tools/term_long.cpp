// term_long [COUNT [SEED]]: the laws of simplify on COUNT random terms (default 1 000 000), and how
// fast terms are evaluated. Exit 1 on the first mismatch.
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>

#include "term/rules.h"
#include "term/testing/agreement.h"

namespace tessera::term {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int laws(int64_t count, uint64_t seed) {
  testing::RandomTerms random(seed);
  int64_t points = 0;
  const auto begin = Clock::now();
  for (int64_t i = 0; i < count; ++i) {
    if (i % 16 == 0) random.renew();
    const Term t = i % 4 == 3 ? random.predicate(4) : random.number(2 + static_cast<int>(i % 4));
    const testing::Agreement found = testing::agreement(t);
    points += found.points;
    if (!found.fault.empty()) {
      fmt::print("term {} of seed {}: {}\n", i, seed, found.fault);
      return 1;
    }
  }
  const double seconds = seconds_since(begin);
  fmt::print(
      "{} random terms agree with their normal form at {} points: {:.1f} s, {:.1f} us a term\n",
      count, points, seconds, 1e6 * seconds / static_cast<double>(count));
  return 0;
}

void speed() {
  Pool pool;
  const Term lane = *pool.coordinate("lane", 128), reg = *pool.coordinate("reg", 128);
  const Term offset =
      *parse(pool, "(lane // 4 + reg // 2 % 2 * 8) * 128 + lane % 4 * 2 + reg % 2 + reg // 4 * 8");
  const Term swizzled =
      *parse(pool, fmt::format("({0}) ^ ((({0}) >> 7 & 7) << 4)", to_string(offset)));
  Program program({offset, swizzled});
  const std::vector<Axis> axes{{lane, 0, 1, 128}, {reg, 0, 1, 128}};
  double best = 1e9;
  for (int i = 0; i < 50; ++i) {
    const auto begin = Clock::now();
    walk(program, axes, [](int64_t, int) { return true; });
    best = std::min(best, seconds_since(begin));
  }
  fmt::print("16384 points of a swizzled fragment offset, {} operations each: {:.3f} ms\n",
             program.operations(), 1e3 * best);
}

}  // namespace
}  // namespace tessera::term

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  tessera::term::speed();
  return tessera::term::laws(count, seed);
}
