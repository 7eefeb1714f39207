// What came of a run with a language model: per pattern and in figures.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/view.h"
#include "llm/budget.h"

namespace tessera::agent {

struct Worked {
  std::string id, rule, summary;
  std::vector<Tried> tried;
  int judged = 0;                  // sources that went through the gates
  int verified = 0;                // of them, that passed the gate `verify`
  int first_passed = 0;            // the number of the first source that passed all gates; 0: none
  std::string best;                // the file of the fastest that passed; "" for none
  double best_ms = 0;              // 0: none was timed
  double eager_ms = 0;             // beside it
  Json tunables = Json::object();  // of its fastest choice
  bool won = false;                // one of its sources is stored in the registry
  std::string ended;  // why the model did not go on; "" where its attempts were used up
};

struct Report {
  std::string model;
  int named = 0;  // patterns and subgraphs that the model named
  int found = 0;  // of them, that there are
  std::vector<std::pair<std::string, std::string>> plan;  // id, reason
  std::vector<std::string> proposals;                     // subgraphs, with what became of each
  std::vector<Worked> patterns;
  llm::Spent spent;
  std::string stopped;                // why it ended early; "" where it came to its end
  std::optional<Diagnostic> failure;  // of the provider, that ended it
  bool compose = true;                // a person refused it otherwise
};

/// Schema "tessera.mind_report/1" (docs/mind.md).
Json to_json(const Report& report);
/// For people, 80 columns.
std::string to_text(const Report& report);

}  // namespace tessera::agent
