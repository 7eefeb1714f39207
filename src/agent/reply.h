// What a model's reply says: a plan, a source, or that it has nothing more.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/json.h"

namespace tessera::agent {

/// A subgraph that no rule takes, as `discover --propose` wants it.
struct Proposal {
  std::string name;
  std::vector<std::string> nodes;
  std::string rationale;
};

struct Plan {
  std::vector<std::string> order;                            // ids of patterns
  std::vector<std::pair<std::string, std::string>> reasons;  // by id
};

struct Written {
  std::string text;
  std::string ending;  // by the fence's language; "" where it says none
  std::string note;    // the first line outside of the fence, 200 bytes at most
};

/// The model has nothing more to try.
struct Done {
  std::string why;
};

struct Unreadable {
  std::string why;  // for the model
};

/// The longest fenced block is the source; `DONE: why` without one ends it.
std::variant<Written, Done, Unreadable> read_source_reply(const std::string& text);
/// A JSON object, in a fence or not: {"order": ["p02"], "reasons": {"p02": "..."}}.
std::variant<Plan, Unreadable> read_plan_reply(const std::string& text);
/// {"proposals": [{"name": "...", "nodes": [...], "rationale": "..."}]}; none is an answer too.
std::variant<std::vector<Proposal>, Unreadable> read_proposals_reply(const std::string& text);

}  // namespace tessera::agent
