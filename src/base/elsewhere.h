// What other processes take of this machine's processors while something is timed.
#pragma once

#include <cstdint>

namespace tessera {

class Elsewhere {
 public:
  /// From now on.
  Elsewhere();
  /// Processors that were kept busy since, on average, by others than this process and those below
  /// it, of those that this process may run on. 0 where /proc does not say.
  [[nodiscard]] double processors() const;
  /// Whether that is more than a quarter of them: times of threads that wait for each other are
  /// then off, all by as much, so that no spread shows it.
  [[nodiscard]] static bool disturbs(double processors);

 private:
  struct Ticks {
    int64_t busy = 0;  // of the processors
    int64_t own = 0;   // of this process and those below it
    double seconds = 0;
  };
  static Ticks now();
  Ticks begin_;
};

}  // namespace tessera
