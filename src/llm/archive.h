// A run with a language model on disk: every request, reply, verdict and decision as one JSON line
// of `DIR/turns.jsonl`, in their order. A run that was ended goes on behind its last line; one that
// is replayed takes all lines and adds none.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diag/result.h"

namespace tessera::llm {

class Archive {
 public:
  enum class Use : uint8_t {
    record,  // goes on with an unfinished run of the same; a finished one is moved aside
    replay   // reads alone
  };
  /// `of`: what the run is of. Errors TS0739: the folder holds an unfinished run of something else,
  /// or, for a replay, none; a line that is none of ours.
  static Result<Archive> open(const std::filesystem::path& folder, const Json& of, Use use);
  /// What the run in this folder is of. Error TS0739: there is none.
  static Result<Json> run_of(const std::filesystem::path& folder);

  /// The next record: the archived one where there is one, else what `make` returns, which is
  /// stored. `about` names what it answers: an archived record about something else is of another
  /// run (TS0739). Nothing where a replay is at its end.
  Result<std::optional<Json>> once(const std::string& kind, const std::string& about,
                                   const std::function<Result<Json>()>& make);
  /// What happened, beside the turns: "resumed", "stopped". Not stored by a replay.
  void note(const std::string& event, const Json& more = Json::object());
  /// Notes that the run in this folder is whole: the same command begins another.
  static void finish(const std::filesystem::path& folder, const Json& metrics);

  /// Whether the next record is an archived one.
  [[nodiscard]] bool repeats() const { return next_ < records_.size(); }
  [[nodiscard]] bool replays() const { return use_ == Use::replay; }
  /// Seconds of the run when the last archived line was written.
  [[nodiscard]] double seconds_before() const { return before_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Why the archived run ended, where it did not come to its end; "" where nothing says it.
  [[nodiscard]] const std::string& stopped_because() const { return stopped_; }

 private:
  Archive(std::filesystem::path folder, Use use) : folder_(std::move(folder)), use_(use) {}
  void append(Json record);
  Status read();

  std::filesystem::path folder_;
  Use use_;
  Json of_;
  std::vector<Json> records_;  // of earlier, without notes
  std::size_t next_ = 0;
  bool finished_ = false;
  double before_ = 0;
  std::string stopped_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tessera::llm
