// What other processes take of this machine's processors while something is timed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

/// Past this share the noise of a clock says that something else ran: no comparison rests on it
/// (timing.MOST_NOISE in Python).
inline constexpr double most_noise = 0.05;

/// A time with half of its interval, in ms.
struct Spread {
  double ms = 0;
  double ci95 = 0;
};
/// Whether two times are so near to one another that none is known to be the shorter on a machine
/// where others kept so many processors busy meanwhile: their spreads do not show what that costs.
bool near_tie_under_load(const Spread& a, const Spread& b, double elsewhere);

class Elsewhere {
 public:
  /// From now on.
  Elsewhere();
  /// What `pid` does is this process' work too, and what processes below it do: of a server, the
  /// process that it serves. Said once, before the first of these is made.
  static void serve(int pid);
  /// Processors that were kept busy since, on average, by others than this process, the one that it
  /// serves, and those below them, of those that this process may run on. 0 where /proc does not
  /// say.
  [[nodiscard]] double processors() const;
  struct Busy {
    std::string program;  // as /proc/PID/stat names it
    int pid = 0;
    double processors = 0;  // that it kept busy on average
  };
  /// The busiest of these others, `most` of them, each with a tenth of a processor at least. A
  /// machine's other containers are not seen.
  [[nodiscard]] std::vector<Busy> busiest(std::size_t most = 3) const;
  /// Whether that is more than a quarter of them: times of threads that wait for each other are
  /// then off, all by as much, so that no spread shows it.
  [[nodiscard]] static bool disturbs(double processors);

 private:
  struct Ticks {
    int64_t busy = 0;                 // of the processors
    int64_t own = 0;                  // of this process and those below it
    std::map<int, Busy> others = {};  // by pid; `processors` in ticks since its start
    double seconds = 0;
  };
  static Ticks now();
  Ticks begin_;
};

}  // namespace tessera
