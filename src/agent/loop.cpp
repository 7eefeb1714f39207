#include "agent/loop.h"

#include <algorithm>

#include "agent/turns.h"

namespace tessera::agent {
namespace {

class Loop {
 public:
  Loop(Module module, Turns& turns) : module_(std::move(module)), turns_(turns) {}

  Status run();
  Report report;

 private:
  Status propose();
  Result<bool> take(std::vector<Proposal> proposals, View& view);
  Result<std::vector<std::string>> plan();
  Result<std::vector<std::string>> approved(std::vector<std::string> order);
  Status compose();
  Status judge_again();
  [[nodiscard]] const Subject* find(const std::string& id) const;

  Module module_;
  Turns& turns_;
};

const Subject* Loop::find(const std::string& id) const {
  for (const Subject& s : module_.patterns) {
    if (s.id == id) return &s;
  }
  return nullptr;
}

/// Subgraphs beyond the rules, where ops are left that no rule takes. What the graph refuses is
/// said to the model, which may mend it once.
Status Loop::propose() {
  constexpr int most_turns = 2;
  if (!turns_.tools().propose || turns_.options().proposals == 0 || module_.without_pattern == 0)
    return {};
  View view{.arch = module_.arch, .device = module_.device, .precision = module_.precision};
  view.nodes = module_.nodes;
  view.patterns = module_.ruled;
  for (int turn = 0; turn < most_turns; ++turn) {
    TESSERA_TRY(reply, turns_.ask("propose", view));
    if (!reply) return {};
    auto read = read_proposals_reply(reply->text);
    if (const auto* wrong = std::get_if<Unreadable>(&read)) {
      view.said = wrong->why + "\n";
      continue;
    }
    TESSERA_TRY(whole, take(std::get<std::vector<Proposal>>(std::move(read)), view));
    if (whole) return {};
  }
  return {};
}

/// True where none was refused.
Result<bool> Loop::take(std::vector<Proposal> proposals, View& view) {
  const auto most = static_cast<std::size_t>(turns_.options().proposals);
  if (proposals.size() > most) proposals.resize(most);
  if (proposals.empty()) return true;
  TESSERA_TRY(judged, turns_.tools().propose(proposals));
  report.named += static_cast<int>(proposals.size());
  report.found += judged.legal;
  report.proposals.insert(report.proposals.end(), judged.told.begin(), judged.told.end());
  module_.patterns = std::move(judged.patterns);
  view.said = join(judged.told, "\n") + "\n";
  return judged.legal == static_cast<int>(proposals.size());
}

/// The ids of the patterns to work on. A model whose plan cannot be read three times gets
/// discovery's own order, and the report says so.
Result<std::vector<std::string>> Loop::plan() {
  constexpr int most_turns = 3;
  View view{.arch = module_.arch, .device = module_.device, .precision = module_.precision};
  view.patterns = module_.patterns;
  std::vector<std::string> order;
  for (int turn = 0; turn < most_turns; ++turn) {
    TESSERA_TRY(reply, turns_.ask("plan", view));
    if (!reply) return order;
    const auto read = read_plan_reply(reply->text);
    if (const auto* wrong = std::get_if<Unreadable>(&read)) {
      view.said = wrong->why + "\n";
      continue;
    }
    const Plan& plan = std::get<Plan>(read);
    for (const std::string& id : plan.order) {
      ++report.named;
      if (find(id) == nullptr) continue;
      ++report.found;
      if (std::find(order.begin(), order.end(), id) == order.end()) order.push_back(id);
    }
    for (const auto& reason : plan.reasons) report.plan.push_back(reason);
    return approved(std::move(order));
  }
  for (const Subject& s : module_.patterns) order.push_back(s.id);
  report.plan.emplace_back("", "the model's plan could not be read: the order is discovery's own");
  return approved(std::move(order));
}

Result<std::vector<std::string>> Loop::approved(std::vector<std::string> order) {
  const auto most = static_cast<std::size_t>(turns_.options().patterns);
  if (order.size() > most) order.resize(most);
  if (turns_.options().approve == Approve::none || order.empty()) return order;
  std::string text;
  for (const std::string& id : order)
    text += fmt::format("{}  {}: {}\n", id, find(id)->rule, find(id)->summary);
  TESSERA_TRY(decision, turns_.decide({.about = "plan",
                                       .title = "patterns to write kernels for, in this order",
                                       .text = text,
                                       .ending = ".txt"}));
  if (!decision) return std::vector<std::string>();
  if (decision->kind == Decision::Kind::refused) {
    turns_.conversation().stop("the plan was refused: " + decision->text);
    return std::vector<std::string>();
  }
  if (decision->kind == Decision::Kind::approved) return order;
  std::vector<std::string> edited;
  for (const std::string& line : split(decision->text, '\n')) {
    const std::string id = line.substr(0, line.find_first_of(" \t:"));
    if (find(id) != nullptr) edited.push_back(id);
  }
  return edited;
}

Status Loop::compose() {
  if (turns_.options().approve == Approve::none || !turns_.conversation().stopped().empty())
    return {};
  std::string text;
  for (const Worked& w : report.patterns) {
    if (w.won)
      text +=
          fmt::format("{}: {} ({:.4g} ms, eager {:.4g} ms)\n", w.id, w.best, w.best_ms, w.eager_ms);
  }
  if (text.empty()) return {};
  TESSERA_TRY(decision, turns_.decide({.about = "composition",
                                       .title = "kernels that may be put into the module",
                                       .text = text}));
  report.compose = !decision || decision->kind != Decision::Kind::refused;
  if (!report.compose) report.stopped = "the composition was refused: " + decision->text;
  return {};
}

/// A replay takes verdicts from the archive. What won is judged here once more: the registry of
/// this machine takes nothing on another's word.
Status Loop::judge_again() {
  if (!turns_.conversation().archive().replays()) return {};
  for (Worked& w : report.patterns) {
    if (w.best.empty()) continue;
    TESSERA_TRY(verdict, turns_.tools().judge(w.id, w.best));
    w.won = verdict.won;
    if (!verdict.passed()) w.ended = "here it does not pass: " + verdict.cause;
  }
  return {};
}

Status Loop::run() {
  TESSERA_CHECK(propose());
  TESSERA_TRY(order, plan());
  for (const std::string& id : order) {
    if (!turns_.conversation().stopped().empty()) break;
    TESSERA_CHECK(turns_.work_on(*find(id), module_, report.patterns));
  }
  TESSERA_CHECK(judge_again());
  return compose();
}

/// Of the model's provider or the process that asks it: another moment may mend it.
bool is_provider_s(const Diagnostic& d) {
  constexpr std::string_view names[] = {"mind.unknown_model", "mind.refused", "mind.provider_down",
                                        "mind.bad_script"};
  return d.name.starts_with("peer.") ||
         std::find(std::begin(names), std::end(names), d.name) != std::end(names);
}

}  // namespace

Result<Report> run(const Module& module, const Options& options, const Prompts& prompts,
                   const Tools& tools, llm::Conversation& conversation) {
  Turns turns(options, prompts, tools, conversation);
  Loop loop(module, turns);
  const Status done = loop.run();
  if (!done && done.error().code == user_stopped.id) {
    conversation.stop("you stopped it");
  } else if (!done) {
    if (!is_provider_s(done.error()) || loop.report.patterns.empty()) return error(done.error());
    conversation.stop(done.error().message);
    loop.report.failure = done.error();
  }
  loop.report.spent = conversation.spent();
  if (loop.report.stopped.empty()) loop.report.stopped = conversation.stopped();
  return std::move(loop.report);
}

}  // namespace tessera::agent
