// Child processes: run one to its end with a time limit, or hold one and talk to it in lines.
//
// A child gets its own process group; ending it ends everything that it started, so a hung compiler
// or evaluator leaves nothing behind. A child dies with the thread that started it, however that
// ends: it must be started by one that outlives it.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct Command {
  std::vector<std::string> argv;
  std::filesystem::path folder;            // working folder; empty keeps ours
  std::map<std::string, std::string> env;  // added to ours
  int niceness = 0;                        // added to ours: gives way to what has less
};

struct Finished {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;      // the signal that ended it, else 0
  bool timed_out = false;
  bool cancelled = false;
  std::string output;  // stdout and stderr, interleaved
  double seconds = 0;
  [[nodiscard]] bool ok() const { return exit_code == 0 && !timed_out && !cancelled; }
};

/// Runs to the end; a child over `limit` is killed with its group, and so is one whose `cancel` is
/// set meanwhile. Throws std::system_error when it cannot start.
Finished run(const Command& command, std::chrono::milliseconds limit,
             const std::atomic<bool>* cancel = nullptr);

/// A child that reads lines on its stdin and writes lines on its stdout; its stderr goes to `log`
/// (appended).
class LineChild {
 public:
  LineChild(const Command& command, const std::filesystem::path& log);
  ~LineChild();  // kills the group if it still runs
  LineChild(const LineChild&) = delete;
  LineChild& operator=(const LineChild&) = delete;

  /// False when the child is gone.
  bool write_line(const std::string& line);
  /// The next line without its newline; empty optional at the end of the stream or when `limit`
  /// passes (then `timed_out()` is true).
  std::optional<std::string> read_line(std::chrono::milliseconds limit);
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  void kill();
  /// How it ended, after the stream has: "exit 1", "signal 11 (Segmentation fault)".
  std::string how_it_ended();

 private:
  int pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  bool timed_out_ = false;
  std::string buffer_;
};

/// Kills every running child with its group; safe in a signal handler, for a program about to end
/// by a signal.
void kill_all_children();

/// Asks the kernel to end this process when the one that started it is gone.
void die_with_parent();

/// The first folder of $PATH that has an executable of this name.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace tessera
