#include "commands/common/mind.h"

#include "base/hash.h"
#include "commands/common/by_hand_kernel.h"
#include "commands/common/mind_module.h"
#include "commands/common/mind_person.h"
#include "commands/common/mind_provider.h"
#include "commands/common/optimizing.h"
#include "rules/common/examples.h"

#include "agent/loop.h"
#include "agent/prompt.h"

namespace tessera::commands {
namespace fs = std::filesystem;
namespace {

/// A source that cannot be read is a verdict too: the model is told, as a person would be.
attempt::Verdict unreadable(const std::string& pattern, const fs::path& file,
                            const Diagnostic& why) {
  attempt::Verdict v{.source = file.string(), .pattern = pattern};
  v.gates = {{.gate = attempt::Gate::parse, .passage = attempt::Passage::failed}};
  v.failure = attempt::Failure::bad_source;
  v.cause = why.message + (why.expected.empty() ? "" : "; expected: " + why.expected);
  v.place = why.place;
  v.diagnostics = {why};
  return v;
}

/// `again`: whatever is known of it, so that what wins is stored in this registry.
Result<attempt::Verdict> judge(const Json& arguments, const Json& traced,
                               const std::string& pattern, const fs::path& file, bool again,
                               Context& context) {
  auto source = attempt::read_source(file.string());
  if (!source) return unreadable(pattern, file, source.error());
  pipeline::Options options = pipeline::options_from(arguments);
  options.compose = false;
  options.confined = !arguments.value("unsandboxed", false);
  pipeline::ByHand given{.pattern = pattern, .source = std::move(*source)};
  given.peers = {"eager", "library"};
  given.again = again;
  given.elaborate = [file](const rules::Pattern& p, const graph::Graph& g, const arch::Arch& arch,
                           const Json& tunables) {
    return kernel_by_hand(file.string(), p, g, arch, tunables);
  };
  auto verdict = pipeline::try_by_hand(traced, options, given, pipeline_context(context));
  if (context.stop != nullptr && context.stop->load())
    return error(fail(agent::user_stopped, "stopped while {} was judged", file.string()));
  // A source for another kind of device than the pattern's is the model's mistake.
  if (!verdict && verdict.error().code == "TS0052")
    return unreadable(pattern, file, verdict.error());
  return verdict;
}

/// What decides what the model is told: a run that differs in any of it is another.
Json run_of(const Json& a, const Json& traced, const agent::Module& module,
            const agent::Prompts& prompts) {
  return {{"model", a.at("llm")},
          {"provider", a.at("provider")},
          {"module", content_hash(traced.at("nodes").dump() + traced.at("values").dump())},
          {"arch", module.arch},
          {"precision", module.precision},
          {"prompts", prompts.hash()},
          {"approve", a.at("approve")},
          {"mind-proposals", a.at("mind-proposals")},
          {"mind-patterns", a.at("mind-patterns")},
          {"mind-attempts", a.at("mind-attempts")},
          {"view-tokens", a.at("view-tokens")}};
}

agent::Options options_of(const Json& a) {
  using agent::Approve;
  const std::string approve = a.at("approve");
  return {.proposals = a.at("mind-proposals"),
          .patterns = a.at("mind-patterns"),
          .attempts = a.at("mind-attempts"),
          .view_tokens = a.at("view-tokens"),
          .reply_tokens = a.at("reply-tokens"),
          .approve = approve == "each"   ? Approve::each
                     : approve == "plan" ? Approve::plan
                                         : Approve::none};
}

fs::path folder_of(const Mind& mind, const fs::path& output) {
  return mind.archive.empty() ? output / "mind" : mind.archive;
}

}  // namespace

Result<agent::Report> think(const Json& given, const Mind& mind, Model& model,
                            const fs::path& output, Context& context) {
  Json arguments = given;
  const bool replay = mind.provider == nullptr;
  const fs::path folder = folder_of(mind, output);
  const pipeline::Options options = pipeline::options_from(arguments);
  TESSERA_TRY(module, mind_module(model.traced, options));
  TESSERA_TRY(prompts, agent::Prompts::read(rules::knowledge_folder("prompts")));
  if (replay) {
    // As it was run: what is given beside it would only make it another run.
    TESSERA_TRY(of, llm::Archive::run_of(folder));
    for (const char* key :
         {"approve", "mind-proposals", "mind-patterns", "mind-attempts", "view-tokens", "provider"})
      arguments[key] = of.at(key);
    arguments["llm"] = of.at("model");
  }
  const Json of = run_of(arguments, model.traced, module, prompts);
  using Use = llm::Archive::Use;
  TESSERA_TRY(archive, llm::Archive::open(folder, of, replay ? Use::replay : Use::record));
  TESSERA_TRY(budget, llm::Budget::make(replay ? llm::Limits{} : limits_of(arguments), mind.price,
                                        arguments.at("llm")));
  budget.add_seconds(archive.seconds_before());
  llm::Conversation conversation(
      archive, budget, [&](const llm::Request& request) { return mind.provider->ask(request); });
  agent::Tools tools;
  tools.judge = [&](const std::string& pattern, const fs::path& file) {
    return judge(arguments, model.traced, pattern, file, replay, context);
  };
  if (options.use_registry)
    tools.propose = [&](const std::vector<agent::Proposal>& proposals) {
      return judge_proposals(proposals, model.traced, options);
    };
  tools.person = ask_person;
  tools.say = [&](const std::string& text) {
    if (context.progress) context.progress({{"stage", "mind"}, {"message", text}});
  };
  TESSERA_TRY(report, agent::run(module, options_of(arguments), prompts, tools, conversation));
  report.model = arguments.at("llm");
  return report;
}

void close_archive(const Mind& mind, const fs::path& output, const agent::Report& report) {
  const bool whole = report.stopped.empty() && mind.provider != nullptr;
  if (whole) llm::Archive::finish(folder_of(mind, output), to_json(report).at("metrics"));
}

}  // namespace tessera::commands
