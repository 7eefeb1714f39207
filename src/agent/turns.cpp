#include "agent/turns.h"

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"

namespace tessera::agent {
namespace {

using attempt::Verdict;

constexpr const char* replay_ended = "the archived run ends here";

/// Text as JSON can carry it: bytes that are no UTF-8, as compilers and cut lines have them, are
/// replaced.
std::string clean(const std::string& text) {
  return parse_json(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json json_of(const Decision& d) {
  const char* words[] = {"approved", "edited", "refused"};
  return {{"decision", words[static_cast<int>(d.kind)]}, {"text", d.text}};
}

Decision decision_of(const Json& j) {
  const std::string word = j.at("decision");
  using Kind = Decision::Kind;
  return {.kind = word == "approved" ? Kind::approved
                  : word == "edited" ? Kind::edited
                                     : Kind::refused,
          .text = j.at("text")};
}

void add_times(std::vector<Best>& times, const Verdict& v, int number) {
  if (!v.measured) return;
  for (const attempt::Peer& p : v.measured->peers) {
    const auto known =
        std::find_if(times.begin(), times.end(), [&](const Best& b) { return b.what == p.name; });
    if (p.ms > 0 && known == times.end()) times.push_back({.what = p.name, .ms = p.ms});
  }
  times.push_back({.what = fmt::format("your source {}", number), .ms = v.measured->ms});
  std::stable_sort(times.begin(), times.end(),
                   [](const Best& a, const Best& b) { return a.ms < b.ms; });
}

Json fastest_tunables(const Verdict& v) {
  const attempt::Variant* best = nullptr;
  for (const attempt::Variant& t : v.variants) {
    if (t.ms > 0 && (best == nullptr || t.ms < best->ms)) best = &t;
  }
  return best == nullptr ? Json::object() : best->tunables;
}

}  // namespace

Result<std::optional<llm::Reply>> Turns::ask(const std::string& prompt, const View& view) {
  const Prompt& p = prompts_.at(prompt);
  llm::Request request{.system = p.text, .max_tokens = options_.reply_tokens};
  const int64_t left = options_.view_tokens - llm::estimated_tokens(p.text);
  request.view = clean(prompt == "propose" ? render_proposals(view, left)
                       : prompt == "plan"  ? render_plan(view, left)
                                           : render(view, left));
  tools_.say(fmt::format("asking to {}{}", prompt,
                         prompt == "plan" ? "" : " " + view.patterns.front().id));
  return conversation_.ask(p.id(), request);
}

Result<std::optional<Decision>> Turns::decide(const Checkpoint& checkpoint) {
  TESSERA_TRY(made, conversation_.archive().once(
                        "decision", content_hash(checkpoint.about + '\0' + checkpoint.text),
                        [&]() -> Result<Json> {
                          TESSERA_TRY(decision, tools_.person(checkpoint));
                          return json_of(decision);
                        }));
  if (!made) {
    conversation_.stop(replay_ended);
    return std::optional<Decision>();
  }
  return std::optional<Decision>(decision_of(*made));
}

Result<std::optional<Verdict>> Turns::verdict_on(State& at, int number, const Written& written) {
  const std::string ending = written.ending.empty() ? at.subject.ending : written.ending;
  const std::filesystem::path file =
      std::filesystem::absolute(conversation_.archive().folder() / "sources" /
                                fmt::format("{}-{}{}", at.subject.id, number, ending));
  std::filesystem::create_directories(file.parent_path());
  if (!std::filesystem::exists(file) || read_file(file) != written.text)
    write_file_atomically(file, written.text);
  tools_.say(fmt::format("judging {}", file.filename().string()));
  const std::string about = content_hash(at.subject.id + '\0' + ending + '\0' + written.text);
  TESSERA_TRY(made, conversation_.archive().once("verdict", about, [&]() -> Result<Json> {
    TESSERA_TRY(verdict, tools_.judge(at.subject.id, file));
    // The folder is not part of what happened.
    verdict.source = file.filename().string();
    if (verdict.place.line > 0) verdict.place.file = verdict.source;
    return attempt::to_json(verdict);
  }));
  if (!made) {
    conversation_.stop(replay_ended);
    return std::optional<Verdict>();
  }
  Verdict verdict = attempt::verdict_from_json(*made);
  at.worked.judged += 1;
  const attempt::GateResult* gate = verdict.find(attempt::Gate::verify);
  at.worked.verified += gate != nullptr && gate->passage == attempt::Passage::passed ? 1 : 0;
  if (verdict.passed() && verdict.measured &&
      (at.worked.best_ms == 0 || verdict.measured->ms < at.worked.best_ms)) {
    at.worked.best = file.string();
    at.worked.best_ms = verdict.measured->ms;
    at.worked.tunables = fastest_tunables(verdict);
  }
  return std::optional<Verdict>(std::move(verdict));
}

void Turns::take(State& at, int number, const Written& written, Verdict verdict) {
  Worked& w = at.worked;
  Tried tried{.number = number, .outcome = "passed", .note = written.note};
  if (!verdict.passed()) {
    tried.outcome = attempt::name_of(verdict.failure);
    tried.cause = verdict.cause;
  }
  if (verdict.measured) {
    tried.ms = verdict.measured->ms;
    for (const attempt::Peer& p : verdict.measured->peers) {
      if (p.name == "eager") w.eager_ms = p.ms;
    }
  }
  w.tried.push_back(std::move(tried));
  add_times(at.view.times, verdict, number);
  at.view.said.clear();
  w.won = w.won || verdict.won;
  if (verdict.passed()) {
    if (w.first_passed == 0) w.first_passed = number;
    const bool faster = !at.best_verdict || !at.best_verdict->measured ||
                        (verdict.measured && verdict.measured->ms <= at.best_verdict->measured->ms);
    if (faster) {
      at.best_source = written.text;
      at.best_verdict = std::move(verdict);
    }
    at.view.source = at.best_source;
    at.view.verdict = at.best_verdict;
  } else if (w.first_passed == 0) {
    at.view.source = written.text;
    at.view.verdict = std::move(verdict);
  }
}

Result<bool> Turns::judge(State& at, int number, Written written) {
  const auto same = std::find(at.sources.begin(), at.sources.end(), written.text);
  if (same != at.sources.end()) {
    at.worked.tried.push_back({.number = number, .outcome = "the same source once more"});
    at.view.said = "your last reply was a source that was judged before: change something\n";
    return true;
  }
  if (options_.approve == Approve::each) {
    TESSERA_TRY(decision,
                decide({.about = "source",
                        .title = fmt::format("source {} for {}", number, at.subject.id),
                        .text = written.text,
                        .ending = written.ending.empty() ? at.subject.ending : written.ending}));
    if (!decision) return false;
    if (decision->kind == Decision::Kind::refused) {
      at.worked.tried.push_back(
          {.number = number, .outcome = "refused", .note = written.note, .cause = decision->text});
      at.view.said = "a person refused your last source: " + decision->text + "\n";
      return true;
    }
    if (decision->kind == Decision::Kind::edited) written.text = decision->text;
  }
  at.sources.push_back(written.text);
  TESSERA_TRY(verdict, verdict_on(at, number, written));
  if (!verdict) return false;
  take(at, number, written, std::move(*verdict));
  return true;
}

Result<bool> Turns::turn(State& at, int number) {
  const bool passed = at.worked.first_passed > 0;
  at.view.tried = at.worked.tried;
  at.view.attempts_left = options_.attempts - number + 1;
  TESSERA_TRY(reply, ask(passed ? "tune" : at.view.source.empty() ? "write" : "fix", at.view));
  if (!reply) return false;
  auto read = read_source_reply(reply->text);
  if (const auto* done = std::get_if<Done>(&read)) {
    at.worked.ended = "the model has nothing more: " + done->why;
    return false;
  }
  if (const auto* wrong = std::get_if<Unreadable>(&read)) {
    at.worked.tried.push_back({.number = number, .outcome = "unreadable", .cause = wrong->why});
    at.view.said = "your last reply could not be used: " + wrong->why + "\n";
    return true;
  }
  return judge(at, number, std::move(std::get<Written>(read)));
}

Status Turns::work_on(const Subject& subject, const Module& module, std::vector<Worked>& worked) {
  worked.push_back({.id = subject.id, .rule = subject.rule, .summary = subject.summary});
  State at{.subject = subject, .worked = worked.back()};
  at.view.arch = module.arch;
  at.view.device = module.device;
  at.view.precision = module.precision;
  at.view.patterns = {subject};
  for (int number = 1; number <= options_.attempts; ++number) {
    TESSERA_TRY(goes_on, turn(at, number));
    if (!goes_on) break;
  }
  return {};
}

}  // namespace tessera::agent
