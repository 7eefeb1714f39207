#include "pipeline/judge.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "base/hash.h"
#include "pipeline/judge_processes.h"
#include "pipeline/judge_reference.h"
#include "pipeline/judge_times.h"

#include "sandbox/sandbox.h"

namespace tessera::pipeline {
namespace {

using attempt::Failure;
using attempt::Gate;
using attempt::Passage;

constexpr std::chrono::seconds start_limit{120};  // torch is imported
// The clock outside may be this much ahead of the one inside: of what a round takes, and in all.
constexpr double clock_slack = 0.25, clock_slack_ms = 3;
constexpr double floor_slack = 0.9;
constexpr double most_noise = 0.1;

/// One file through its gates.
class Case {
 public:
  Case(const Judging& given, const std::string& file, const Reference& reference,
       const Context& context)
      : given_(given), reference_(reference), judge_(*reference.judge), context_(context) {
    out_.file = file;
  }

  Result<Judged> run() {
    name();
    if (auto ended = pass(); !ended) TESSERA_CHECK(blame(ended.error()));
    v().reliable = v().failure != Failure::hang && v().failure != Failure::out_of_memory &&
                   !(v().measured && v().measured->unreliable);
    return std::move(out_);
  }

 private:
  attempt::Verdict& v() { return out_.verdict; }
  void say(const std::string& stage, const std::string& text) const {
    if (context_.progress) context_.progress({{"stage", stage}, {"message", text}});
  }
  void note(Gate gate, Passage passage, const std::string& text = "") {
    v().gates.push_back({.gate = gate,
                         .passage = passage,
                         .note = text,
                         .seconds = seconds_of_machine() - gate_begin_});
    gate_begin_ = seconds_of_machine();
  }
  void fail_with(Failure failure, std::string cause) {
    fail_with(name_of(failure), std::move(cause));
    v().failure = failure;
  }
  // By a word of the judge's.
  void fail_with(std::string_view word, std::string cause) {
    v().failure = Failure::wrong_result;
    for (const Failure f : {Failure::non_finite, Failure::incomplete, Failure::input_modified})
      if (name_of(f) == word) v().failure = f;
    out_.failure = word;
    v().cause = std::move(cause);
  }

  void name() {
    text_ = read_file(out_.file);
    v().source = out_.file;
    v().hash = content_hash(text_);
    v().language = "python";
    v().pattern = given_.reference_cls.empty() ? "Model" : given_.reference_cls;
    v().rule = "module";
    v().summary = reference_.summary;
    v().arch = reference_.arch;
    v().device = given_.device;
    v().precision = reference_.precision;
    gate_begin_ = seconds_of_machine();
  }

  [[nodiscard]] std::chrono::seconds build_limit() const { return 10 * given_.limit; }
  [[nodiscard]] std::string shelf() const { return (judged_->own() / "shelf.bin").string(); }

  // Whether it went on without trying what is forbidden; since the file was imported.
  bool allowed() {
    if (const std::string tried = judged_->forbidden(since_); !tried.empty())
      fail_with(Failure::forbidden, tried);
    return v().passed();
  }

  Status build(int number) {
    return judged_
        ->call("build",
               {{"seed", reference_.seeds[number]},
                {"init", reference_.made.at("init")},
                {"form", reference_.made.at("form")},
                {"training", reference_.made.at("training")},
                {"precision", v().precision},
                {"device", given_.device},
                {"outputs", reference_.opened.at("outputs")},
                {"shelf", shelf()}},
               build_limit())
        .map([](const Json&) {});
  }

  // Errors: the judged process ended, raised, or hung. What is wrong otherwise is in the verdict.
  Status pass() {
    gate_ = Gate::build;
    say("build", "importing " + out_.file);
    const std::filesystem::path file =
        copied(out_.file, judge_.own() / "judged" / fmt::format("{}", v().hash));
    TESSERA_TRY(judged, Occupant::start("tessera.judged_process",
                                        room_for(given_, "judged.log",
                                                 {file.parent_path().string(),
                                                  (judge_.own() / "inputs").string()})));
    judged_ = std::move(judged);
    TESSERA_CHECK(judged_->call("replaced", Json::object(), start_limit));
    since_ = seconds_of_machine();
    TESSERA_TRY(
        opened,
        judged_->call(
            "open", {{"path", file.string()}, {"class", given_.cls}, {"precision", v().precision}},
            build_limit()));
    TESSERA_CHECK(build(0));
    if (!untouched(opened) || !allowed()) {
      note(Gate::build, Passage::failed);
      return {};
    }
    note(Gate::build, Passage::passed);
    gate_ = Gate::verify;
    TESSERA_CHECK(verify());
    if (!v().passed()) return {};
    gate_ = Gate::measure;
    return measure();
  }

  bool untouched(const Json& reply) {
    const auto names = reply.value("replaced", std::vector<std::string>());
    if (!names.empty())
      fail_with("tampered", "the file replaced " + fmt::format("{}", fmt::join(names, ", ")));
    return names.empty();
  }

  // Takes a reply that says no.
  bool right(const Json& reply) {
    const Json& r = reply.contains("refused") ? reply.at("refused") : reply;
    if (!reply.contains("refused") && r.value("ok", true)) return true;
    fail_with(r.value("kind", ""), r.value("reason", ""));
    if (r.contains("wrong")) v().wrong = attempt::wrong_from_json(r.at("wrong"));
    return false;
  }

  Status verify() {
    int built = 0;
    bool first = true;
    for (const Json& trial : reference_.opened.at("trials")) {
      const int number = trial.at("build");
      if (number != built) {
        TESSERA_CHECK(build(number));
        built = number;
        first = true;
      }
      say("verify", fmt::format("{} inputs", trial.at("kind").get<std::string>()));
      TESSERA_TRY(ok, tried(trial, first));
      first = false;
      if (!ok || !allowed()) {
        note(Gate::verify, Passage::failed);
        return {};
      }
    }
    TESSERA_TRY(after, judged_->call("replaced", Json::object(), given_.limit));
    note(Gate::verify, untouched(after) ? Passage::passed : Passage::failed);
    return {};
  }

  Result<bool> tried(const Json& trial, bool first) {
    TESSERA_TRY(drawn, judge_.call("trial", trial, judge_limit));
    TESSERA_CHECK(judged_->call("load", drawn, given_.limit));
    TESSERA_TRY(called, judged_->call("call", {{"which", 0}}, given_.limit));
    if (!right(called)) return false;
    TESSERA_TRY(checked, judge_.call("check", {{"shelf", shelf()}}, judge_limit));
    Json row = {
        {"inputs", trial.at("kind")}, {"build", trial.at("build")}, {"ok", checked.at("ok")}};
    if (checked.contains("errors")) row["errors"] = checked.at("errors");
    if (v().errors.empty() && row.contains("errors")) v().errors = row["errors"];
    out_.trials.push_back(std::move(row));
    if (!right(checked)) return false;
    const std::string file = (judged_->own() / "inputs.bin").string();
    TESSERA_CHECK(judged_->call("inputs", {{"which", 0}, {"file", file}}, given_.limit));
    TESSERA_TRY(kept, judge_.call("check_inputs", {{"file", file}}, judge_limit));
    if (!right(kept)) return false;
    if (first || reference_.opened.at("aliases").get<bool>()) return true;
    TESSERA_CHECK(judged_->call("again", Json::object(), given_.limit));
    TESSERA_TRY(same, judge_.call("check_again", {{"shelf", shelf()}}, judge_limit));
    return right(same);
  }

  Status measure() {
    say("measure", "timing it beside its peers");
    TESSERA_TRY(timed,
                take_times({judge_, *judged_}, given_, reference_.opened.at("calls").get<int>()));
    if (!timed.breach.is_null()) {
      Json breach = timed.breach;
      breach["ok"] = false;
      right(breach);
    } else {
      take(timed);
    }
    if (v().passed()) {
      TESSERA_TRY(after, judged_->call("replaced", Json::object(), given_.limit));
      untouched(after);
    }
    if (v().passed()) TESSERA_CHECK(label());
    note(Gate::measure, v().passed() ? Passage::passed : Passage::failed);
    return {};
  }

  // Times, and whether they can be.
  void take(const Timed& timed) {
    const Runner& ours = timed.runners.front();
    const Median outside = median_of(ours.outside_ms), inside = median_of(ours.inside_ms);
    const Median device = median_of(ours.device_ms);
    double ahead = 1e300;  // of the clock outside, in the round where it is least
    for (std::size_t i = 0; i < ours.outside_ms.size(); ++i)
      ahead = std::min(ahead, (ours.outside_ms[i] - ours.inside_ms[i]) * timed.calls);
    out_.clock = {{"outside_ms", outside.ms},
                  {"inside_ms", inside.ms},
                  {"device_ms", device.ms},
                  {"calls", timed.calls},
                  {"rounds", ours.outside_ms.size()}};
    attempt::Measured m{.ms = outside.ms, .ci95 = outside.ci95, .floor_ms = reference_.least_ms};
    m.bound = "the machine";
    m.unreliable = outside.ci95 > most_noise * outside.ms;
    for (const Runner& r : timed.runners) {
      if (r.name.empty()) continue;
      const Median peer = median_of(r.outside_ms);
      m.peers.push_back({.name = r.name, .ms = peer.ms, .ci95 = peer.ci95, .reason = r.reason});
    }
    v().measured = std::move(m);
    if (outside.ms < reference_.least_ms * floor_slack ||
        inside.ms < reference_.least_ms * floor_slack) {
      fail_with(
          "impossible_time",
          fmt::format(
              "{:.4g} ms a call ({:.4g} ms by its own clock) are less than the machine's least, "
              "{:.4g} ms",
              outside.ms, inside.ms, reference_.least_ms));
    } else if (ahead > clock_slack_ms + clock_slack * outside.ms * timed.calls) {
      fail_with("clock_disagrees",
                fmt::format("its own clock says {:.4g} ms a call, the clock outside {:.4g} ms",
                            inside.ms, outside.ms));
    }
  }

  // Whose work it is, seen in one call after all others, on inputs that it has not seen.
  Status label() {
    TESSERA_TRY(fresh, judge_.call("round", {{"calls", 1}, {"build", 1}}, judge_limit));
    TESSERA_CHECK(judged_->call("load", fresh, build_limit()));
    TESSERA_TRY(seen, judged_->call("profile", {{"which", 0}}, build_limit()));
    if (!right(seen)) return {};
    TESSERA_TRY(
        work,
        judge_.call("work",
                    {{"ops", seen.at("ops")}, {"kernels", seen.at("kernels")}, {"source", text_}},
                    judge_limit));
    out_.work = std::move(work);
    if (given_.synthesized && out_.work.at("label") != "own") {
      auto by = out_.work.at("by_library").get<std::vector<std::string>>();
      for (const auto& name : out_.work.at("names")) by.push_back(name);
      fail_with("not_its_own_work",
                fmt::format("it claims a kernel of its own, and {} compute", fmt::join(by, ", ")));
    }
    return {};
  }

  // How the judged process ended. Errors that are not its own are ours to report.
  Status blame(const Diagnostic& d) {
    if (judged_ == nullptr) return error(d);
    const std::string tried = judged_->forbidden(since_);
    v().place = d.place;
    if (!v().place.file.empty()) v().place.file = out_.file;
    std::string cause = d.message;
    if (!d.notes.empty()) cause += ": " + d.notes.back();
    if (!tried.empty()) {
      fail_with(Failure::forbidden, tried);
    } else if (d.code == bridge::peer_timed_out.id) {
      fail_with(Failure::hang, cause);
    } else if (d.message.find("OutOfMemoryError") != std::string::npos) {
      fail_with(Failure::out_of_memory, cause);
    } else if (d.code.starts_with("TS00")) {
      fail_with(Failure::bad_source, cause);
    } else {
      fail_with(Failure::crash, cause);
    }
    note(gate_, Passage::failed);
    return {};
  }

  const Judging& given_;
  const Reference& reference_;
  Occupant& judge_;
  const Context& context_;
  Judged out_;
  std::unique_ptr<Occupant> judged_;
  std::string text_;
  Gate gate_ = Gate::build;
  double since_ = 0, gate_begin_ = 0;
};

}  // namespace

Result<std::vector<Judged>> judge(const Judging& given, const Options& options,
                                  const Context& context) {
  if (given.confined) TESSERA_CHECK(sandbox::ready());
  if (context.progress) context.progress({{"stage", "trace"}, {"message", "making the reference"}});
  TESSERA_TRY(reference, make_reference(given, options));
  std::vector<Judged> out;
  for (const std::string& file : given.files) {
    if (context.stop != nullptr && *context.stop) break;
    TESSERA_TRY(judged, Case(given, file, reference, context).run());
    out.push_back(std::move(judged));
  }
  return out;
}

}  // namespace tessera::pipeline
