// The flags of --mind. All of them are the user's own, whose key and money it takes: no tool of
// `tessera mcp` has them.
#include "commands/common/mind.h"

namespace tessera::commands {
namespace {

using Type = Parameter::Type;

std::vector<Parameter> of_the_model() {
  return {
      {.type = Type::text,
       .name = "mind",
       .doc = "who proposes kernels: search (the built-in one), llm (a language model, then the "
              "search), or replay:DIR (an archived run, without a model)",
       .preset = "search"},
      {.type = Type::text,
       .name = "llm",
       .doc = "the language model's name, as its provider has it; scripted: a file of replies",
       .option = "model"},
      {.type = Type::text,
       .name = "provider",
       .doc = "whose model it is: anthropic, openai (or compatible), scripted; auto: by its name",
       .preset = "auto"},
      {.type = Type::text,
       .name = "endpoint",
       .doc = "URL of a server that speaks the provider's protocol (default: the provider's own)"},
      {.type = Type::text,
       .name = "approve",
       .doc = "where a person approves, edits or refuses on the terminal: each source, the plan "
              "and the composition, or none",
       .preset = "none",
       .choices = {"each", "plan", "none"}},
      {.type = Type::text,
       .name = "archive",
       .doc = "folder of the run's requests, replies and verdicts (default: OUTPUT/mind)"},
      {.type = Type::flag,
       .name = "unsandboxed",
       .doc = "build and run what the model writes with all that you may do yourself"},
  };
}

std::vector<Parameter> of_the_budget() {
  return {
      {.type = Type::integer,
       .name = "mind-proposals",
       .doc = "subgraphs that the model may propose where no rule takes an op, at most (0: it is "
              "not asked)",
       .preset = "4",
       .not_negative = true},
      {.type = Type::integer,
       .name = "mind-patterns",
       .doc = "patterns that the model works on, at most",
       .preset = "4",
       .not_negative = true},
      {.type = Type::integer,
       .name = "mind-attempts",
       .doc = "replies for each of them, at most",
       .preset = "5",
       .not_negative = true},
      {.type = Type::integer,
       .name = "mind-retries",
       .doc = "attempts more where the provider is busy, unreachable or breaks off",
       .preset = "5",
       .not_negative = true},
      {.type = Type::integer,
       .name = "view-tokens",
       .doc = "most tokens of a turn's prompt and view",
       .preset = "8000",
       .not_negative = true},
      {.type = Type::integer,
       .name = "reply-tokens",
       .doc = "most tokens of a reply",
       .preset = "16000",
       .not_negative = true},
      {.type = Type::integer,
       .name = "budget-tokens",
       .doc = "tokens of the whole run, read and written (0: no limit)",
       .preset = "500000",
       .not_negative = true},
      {.type = Type::real,
       .name = "budget-money",
       .doc = "dollars of the whole run, by the table of prices (0: no limit)",
       .preset = "0",
       .not_negative = true},
      {.type = Type::integer,
       .name = "budget-calls",
       .doc = "calls of the whole run (0: no limit)",
       .preset = "60",
       .not_negative = true},
      {.type = Type::real,
       .name = "budget-seconds",
       .doc = "seconds of the whole run with the model, judging included (0: no limit)",
       .preset = "0",
       .not_negative = true},
      {.type = Type::text,
       .name = "prices",
       .doc = "file of prices (default: knowledge/prices.json)"},
  };
}

}  // namespace

std::vector<Parameter> mind_parameters() {
  std::vector<Parameter> out = of_the_model();
  for (Parameter& p : of_the_budget()) out.push_back(std::move(p));
  for (Parameter& p : out) p.names = Parameter::Names::place;
  return out;
}

}  // namespace tessera::commands
