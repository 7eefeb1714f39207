// The turns of one pattern: a source is written, judged, mended and made faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

#include "agent/loop.h"

namespace tessera::agent {

class Turns {
 public:
  Turns(const Options& options, const Prompts& prompts, const Tools& tools,
        llm::Conversation& conversation)
      : options_(options), prompts_(prompts), tools_(tools), conversation_(conversation) {}

  /// The reply to a prompt with this view; nothing where the run ends here.
  Result<std::optional<llm::Reply>> ask(const std::string& prompt, const View& view);
  /// A person's word; nothing where a replay ends here.
  Result<std::optional<Decision>> decide(const Checkpoint& checkpoint);
  /// Adds what came of it to `worked`, also where it fails.
  Status work_on(const Subject& subject, const Module& module, std::vector<Worked>& worked);

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Tools& tools() const { return tools_; }
  [[nodiscard]] llm::Conversation& conversation() { return conversation_; }

 private:
  /// One pattern while it is worked on.
  struct State {
    const Subject& subject;
    Worked& worked;
    View view;
    std::vector<std::string> sources;  // by their number
    std::string best_source;
    std::optional<attempt::Verdict> best_verdict;
  };
  /// False where the pattern is done.
  Result<bool> turn(State& at, int number);
  Result<bool> judge(State& at, int number, Written written);
  Result<std::optional<attempt::Verdict>> verdict_on(State& at, int number, const Written& written);
  void take(State& at, int number, const Written& written, attempt::Verdict verdict);

  const Options& options_;
  const Prompts& prompts_;
  const Tools& tools_;
  llm::Conversation& conversation_;
};

}  // namespace tessera::agent
