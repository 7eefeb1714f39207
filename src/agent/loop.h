// The loop: a plan, then for each pattern sources that the gates judge, until the attempts or the
// budget are used up. All that it does beyond talking is done by the tools that it is given.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "agent/prompt.h"
#include "agent/reply.h"
#include "agent/report.h"
#include "agent/view.h"
#include "attempt/verdict.h"
#include "llm/conversation.h"

namespace tessera::agent {

/// What the user asked to stop is no failure: tools answer with this code, and the best is kept.
inline constexpr Code user_stopped{"TS0743", "mind.stopped"};

/// Where a person looks before it goes on.
struct Checkpoint {
  std::string about;   // "plan", "source", "composition"
  std::string title;   // a line
  std::string text;    // what is approved, edited or refused
  std::string ending;  // of a file to edit it in; "" where it cannot be edited
};

struct Decision {
  enum class Kind : uint8_t { approved, edited, refused } kind = Kind::approved;
  std::string text;  // as it was edited; why it was refused
};

enum class Approve : uint8_t { none, plan, each };

struct Options {
  int proposals = 4;             // subgraphs beyond the rules, at most; 0: the model is not asked
  int patterns = 4;              // worked on, at most
  int attempts = 5;              // replies for each
  int64_t view_tokens = 8000;    // of a prompt and its view
  int64_t reply_tokens = 16000;  // of a reply
  Approve approve = Approve::none;
};

/// What the graph says of subgraphs that the model proposed.
struct Judged {
  std::vector<std::string> told;  // what became of each, in a line
  int legal = 0;                  // of them, that are patterns now
  std::vector<Subject> patterns;  // of the module, with those
};

struct Tools {
  /// A source through the gates; its place and name are said by the file alone. Errors are of the
  /// environment, and end the run.
  std::function<Result<attempt::Verdict>(const std::string& pattern,
                                         const std::filesystem::path& source)>
      judge;
  std::function<Result<Decision>(const Checkpoint&)> person;
  /// Makes patterns of subgraphs. Empty: nobody takes them, and the model is not asked for any.
  std::function<Result<Judged>(const std::vector<Proposal>&)> propose;
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// The module as the model sees it.
struct Module {
  std::string arch, device, precision;
  std::vector<Subject> patterns;  // by expected gain
  /// As the rules alone found it, whatever was proposed before: the same view in every run.
  std::string nodes;           // View::nodes
  int without_pattern = 0;     // nodes that compute and that no pattern has
  std::vector<Subject> ruled;  // patterns of the rules
};

/// Errors: of the provider before anything came of it, of the archive, and the tools'. A provider
/// that fails later ends the run with the best so far, and `failure` says why.
Result<Report> run(const Module& module, const Options& options, const Prompts& prompts,
                   const Tools& tools, llm::Conversation& conversation);

}  // namespace tessera::agent
