// The gates of one kernel by hand, in their order.
#include "pipeline/by_hand.h"

#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "pipeline/by_hand_facts.h"
#include "pipeline/by_hand_measure.h"
#include "pipeline/by_hand_sanitize.h"
#include "pipeline/stages.h"
#include "toolchain/flags.h"
#include "toolchain/machine.h"

#include "attempt/symptoms.h"
#include "sandbox/sandbox.h"

namespace tessera::pipeline {
namespace {

using attempt::Failure;
using attempt::Gate;
using attempt::Passage;
using attempt::Verdict;
using Clock = std::chrono::steady_clock;

inline constexpr Code no_such_pattern{"TS0051", "input.no_such_pattern"};
inline constexpr Code other_device{"TS0052", "input.source_for_other_device"};

constexpr std::size_t hash_digits = 12;  // of a source, in its configuration

Json errors_of(const Json& reply) {
  Json out = Json::object();
  for (const char* key :
       {"rms_error", "max_error", "baseline_rms_error", "baseline_max_error", "budget"}) {
    if (reply.contains(key)) out[key] = reply.at(key);
  }
  return out;
}

class Try {
 public:
  Try(Session& s, const ByHand& given, Work& work)
      : s_(s), given_(given), work_(work), pattern_(s.pattern(work.patterns.front())) {}

  Result<Verdict> run();

 private:
  std::filesystem::path kept_at();
  [[nodiscard]] bool stands(const Verdict& v) const;
  std::optional<Verdict> known();
  void name();
  void note(Gate gate, Passage passage, const std::string& why, Clock::time_point begin);
  void stop(Gate gate, Failure failure, std::string cause, Clock::time_point begin);
  bool elaborated();
  bool built();
  Result<bool> verified();
  bool sanitized(bool ran);
  Status measured();
  Status pass();

  Session& s_;
  const ByHand& given_;
  Work& work_;
  const rules::Pattern& pattern_;
  Verdict v_;
  std::vector<kernel::Candidate> candidates_;  // one a choice of tunables, the default first
  std::optional<toolchain::Built> built_;      // of the default
};

void Try::note(Gate gate, Passage passage, const std::string& why, Clock::time_point begin) {
  v_.gates.push_back(
      {.gate = gate, .passage = passage, .note = why, .seconds = seconds_since(begin)});
}

void Try::stop(Gate gate, Failure failure, std::string cause, Clock::time_point begin) {
  note(gate, Passage::failed, "", begin);
  v_.failure = failure;
  v_.cause = std::move(cause);
}

void Try::name() {
  v_.source = given_.source.file;
  v_.hash = content_hash(given_.source.text);
  v_.language = attempt::name_of(given_.source.language);
  v_.pattern = given_.pattern;
  v_.rule = pattern_.rule;
  v_.summary = pattern_.summary;
  v_.arch = s_.found.arch->name;
  v_.device = s_.tools.device_name;
  v_.precision = std::string(name_of(pattern_.precision));
}

// Everything that a verdict depends on.
std::filesystem::path Try::kept_at() {
  toolchain::Source source{.text = given_.source.text, .arch = v_.arch};
  source.language = given_.source.language == attempt::Language::cxx ? toolchain::Language::cxx
                                                                     : toolchain::Language::cuda;
  const Json key = {
      {"schema", "tessera.verdict/1"},
      {"language", v_.language},
      {"kernel", given_.source.kernel},
      {"build", toolchain::cache_key(s_.tools.evaluation.tools, source)},
      {"signature", work_.key.hash()},
      {"toolchain", s_.tools.toolchain},
      {"libraries", s_.found.graph.meta.value("libraries", Json::object())},
      {"peers", given_.peers},
      {"registry", s_.tools.registry != nullptr},
      {"sanitizer",
       toolchain::beside_nvcc(s_.tools.evaluation.tools, "compute-sanitizer").has_value()},
      {"confined", s_.options.confined}};
  return s_.tools.evaluation.cache.parent_path() / "verdicts" /
         (content_hash(key.dump()) + ".json");
}

// What a verdict says of the registry has to be so still.
bool Try::stands(const Verdict& v) const {
  if (!s_.tools.registry || !v.measured) return true;
  if (!work_.own || !work_.own->accepted()) return false;
  const kernel::Candidate& first = work_.own->winners.front().candidate;
  const bool first_is_this = first.realizer == by_hand_realizer &&
                             first.config.value("hash", "") == v_.hash.substr(0, hash_digits);
  return v.won == first_is_this;
}

std::optional<Verdict> Try::known() {
  if (given_.again || !std::filesystem::exists(kept_at())) return std::nullopt;
  try {
    Verdict v = attempt::verdict_from_json(parse_json(read_file(kept_at())));
    if (!stands(v)) return std::nullopt;
    v.known = true;
    v.source = v_.source;
    v.pattern = v_.pattern;
    if (v.place.line > 0) v.place.file = v_.source;
    return v;
  } catch (const std::exception&) {
    return std::nullopt;  // of another version, or damaged: judged again and replaced
  }
}

kernel::Candidate candidate_of(const attempt::SourceFile& source, const arch::Arch& arch,
                               const Json& tunables) {
  kernel::Candidate c{.realizer = std::string(by_hand_realizer)};
  toolchain::Source text{.name = "by_hand", .text = source.text, .arch = std::string(arch.name)};
  text.language = source.language == attempt::Language::cxx ? toolchain::Language::cxx
                                                            : toolchain::Language::cuda;
  text.cutlass = source.text.find("cutlass/") != std::string::npos ||
                 source.text.find("cute/") != std::string::npos;
  if (source.language == attempt::Language::cxx) text.flags = {"-Wall", "-Wextra"};
  for (const auto& [name, value] : tunables.items())
    text.flags.push_back(fmt::format("-D{}={}", name, value.get<int64_t>()));
  c.source = std::move(text);
  c.launches = {kernel::Launch{}};
  return c;
}

bool Try::elaborated() {
  const auto begin = Clock::now();
  const bool language = given_.source.language == attempt::Language::tile;
  std::vector<FromLanguage> made;
  for (const Json& tunables : attempt::combinations(given_.source.tunables)) {
    if (language) {
      made.push_back(given_.elaborate(pattern_, s_.found.graph, *s_.found.arch, tunables));
    } else {
      made.push_back({.candidate = candidate_of(given_.source, *s_.found.arch, tunables)});
    }
    if (made.front().failure != Failure::none) break;  // the default decides
    if (!made.back().candidate) {
      v_.variants.push_back({.tunables = tunables,
                             .outcome = std::string(attempt::name_of(made.back().failure)),
                             .reason = made.back().diagnostics.empty()
                                           ? ""
                                           : made.back().diagnostics.front().message});
      continue;
    }
    kernel::Candidate& c = *made.back().candidate;
    c.config = {{"source", std::filesystem::path(given_.source.file).filename().string()},
                {"hash", v_.hash.substr(0, hash_digits)},
                {"tunables", tunables}};
    candidates_.push_back(std::move(c));
  }
  const FromLanguage& first = made.front();
  v_.diagnostics = first.diagnostics;
  v_.counterexample = first.findings;
  if (!first.diagnostics.empty()) v_.place = first.diagnostics.front().place;
  const std::string cause = first.diagnostics.empty() ? "" : first.diagnostics.front().message;
  if (!first.parsed) {
    stop(Gate::parse, first.failure, cause, begin);
    return false;
  }
  const std::size_t choices = attempt::combinations(given_.source.tunables).size();
  note(Gate::parse, Passage::passed,
       given_.source.tunables.empty()
           ? v_.language
           : fmt::format("{}, {} choices of tunables", v_.language, choices),
       begin);
  if (!language) {
    note(Gate::check, Passage::skipped, "only kernels of the tile language are proved", begin);
    return true;
  }
  if (first.failure != Failure::none) {
    stop(Gate::check, first.failure, cause, begin);
    return false;
  }
  // What is neither proved nor refuted is not held against it: other languages prove nothing.
  note(Gate::check, first.proved ? Passage::passed : Passage::skipped, first.note, begin);
  return true;
}

bool Try::built() {
  const auto begin = Clock::now();
  const auto limit = std::chrono::seconds(10 * given_.limit.count());
  s_.say("try", "building " + given_.source.file);
  auto done = toolchain::build(s_.tools.evaluation.tools, *candidates_.front().source,
                               s_.tools.evaluation.cache, limit);
  if (done) {
    built_ = std::move(*done);
    v_.resources = built_->resources;
    v_.warnings = warnings_of(*built_);
    note(Gate::build, Passage::passed, built_->cached ? "from the cache" : "", begin);
    return true;
  }
  const Diagnostic& d = done.error();
  Failure failure = Failure::unsupported;
  if (d.code == "TS0303") failure = Failure::does_not_compile;
  if (d.code == "TS0304") failure = Failure::compiler_hangs;
  if (d.code == "TS0327") failure = Failure::forbidden;
  stop(Gate::build, failure, d.notes.empty() ? d.message : d.notes.front(), begin);
  for (const std::string& n : d.notes) {
    if (v_.place.line == 0) v_.place = {.file = v_.source, .line = line_in(n)};
  }
  if (const std::size_t at = v_.cause.find("source.c"); at != std::string::npos)
    v_.cause = v_.cause.substr(at);
  v_.diagnostics.push_back(d);
  return false;
}

/// Whether kernels of the architecture run where the module lies; else they are built and no more.
bool runs_here(const Session& s) {
  return (s.found.arch->device == "cuda") == s.found.graph.device.starts_with("cuda");
}

Result<bool> Try::verified() {
  const auto begin = Clock::now();
  if (!runs_here(s_)) {
    stop(
        Gate::verify, Failure::unsupported,
        fmt::format("the module is on {}, where no kernel of {} runs: it is checked and built, and "
                    "no more",
                    s_.found.graph.device, v_.arch),
        begin);
    return false;
  }
  s_.say("try", "verifying " + given_.source.file);
  s_.tools.evaluator->limit(given_.limit);
  TESSERA_TRY(judged, s_.tools.evaluator->examine(pattern_, candidates_.front(), built_));
  const auto& [trial, reply] = judged;
  v_.errors = errors_of(reply);
  if (trial.outcome == tune::Outcome::measured) {
    note(Gate::verify, Passage::passed, "right on all inputs", begin);
    return true;
  }
  stop(Gate::verify, failure_of(trial), trial.reason, begin);
  // A name may be that of another pattern than was meant.
  const std::string other =
      for_other_tensors(given_.source.text, pattern_, s_.found.discovery.patterns, s_.found.graph);
  if (!other.empty() && v_.failure != Failure::unsupported) {
    v_.failure = Failure::not_the_pattern;
    v_.cause = other;
    return false;
  }
  if (reply.contains("wrong")) v_.wrong = attempt::wrong_from_json(reply.at("wrong"));
  return false;
}

bool Try::sanitized(bool ran) {
  const auto begin = Clock::now();
  const auto found = sanitizer_says(s_, given_, candidates_.front(),
                                    built_ ? built_->library : std::filesystem::path(),
                                    storages(pattern_, s_.found.graph));
  if (!found.forbidden.empty()) {
    if (ran) stop(Gate::sanitize, Failure::forbidden, found.forbidden, begin);
    return false;
  }
  if (!found.ran) {
    note(Gate::sanitize, Passage::skipped, found.why, begin);
    return true;
  }
  if (found.clean) {
    note(Gate::sanitize, Passage::passed,
         given_.source.language == attempt::Language::cxx ? "no invalid access, nothing undefined"
                                                          : "no invalid access, no race",
         begin);
    return true;
  }
  if (found.line > 0) v_.place = {.file = v_.source, .line = found.line};
  if (ran) {
    stop(Gate::sanitize, Failure::invalid_access, found.finding, begin);
  } else {
    note(Gate::sanitize, Passage::failed, found.finding, begin);
    v_.cause += "; the sanitizer says: " + found.finding;
  }
  return false;
}

Status Try::measured() {
  const auto begin = Clock::now();
  s_.say("try", "timing " + given_.source.file + " beside its peers");
  constexpr std::chrono::seconds for_peers{120};  // Inductor compiles within its own verification
  s_.tools.evaluator->limit(std::max(given_.limit, for_peers));
  TESSERA_CHECK(measure_by_hand(s_, work_, given_, candidates_, v_));
  note(Gate::measure, v_.measured ? Passage::passed : Passage::failed,
       v_.measured ? "" : "it was not timed", begin);
  return {};
}

Status Try::pass() {
  if (!elaborated() || !built()) return {};
  TESSERA_TRY(right, verified());
  if (!right) {
    // What ended the process may be seen with its line there.
    if (v_.failure == Failure::crash || v_.failure == Failure::out_of_bounds) sanitized(false);
    return {};
  }
  if (!sanitized(true)) return {};
  return measured();
}

Result<Verdict> Try::run() {
  name();
  if (auto before = known()) return *before;
  TESSERA_CHECK(pass());
  v_.advice = attempt::advice_for(v_);
  for (const Failure f :
       {Failure::hang, Failure::compiler_hangs, Failure::out_of_memory, Failure::unsupported})
    v_.reliable = v_.reliable && v_.failure != f;
  if (v_.measured && v_.measured->unreliable) v_.reliable = false;
  if (s_.stopped()) v_.reliable = false;
  if (v_.reliable) {
    std::filesystem::create_directories(kept_at().parent_path());
    write_file_atomically(kept_at(), attempt::to_json(v_).dump());
  }
  return v_;
}

/// A source is for one kind of device.
Status check_source(const attempt::SourceFile& source, const arch::Arch& arch) {
  const bool cuda = arch.device == "cuda";
  if ((source.language == attempt::Language::cxx) != cuda) return {};
  return error(
      fail(other_device, "`{}` is no source for the architecture {}", source.file, arch.name)
          .expect("{}", cuda ? ".cu (CUDA C++) or .py (tile language)" : ".cpp (C++)")
          .but_found("{}", attempt::name_of(source.language))
          .help("`--device` and `--arch` say where the module runs"));
}

}  // namespace

Result<const rules::Pattern*> pattern_named(const Discovered& found, const std::string& id) {
  std::vector<std::string> names;
  for (const rules::Pattern& p : found.discovery.patterns) {
    if (p.id == id) return &p;
    names.push_back(fmt::format("{} ({})", p.id, p.rule));
  }
  return error(fail(no_such_pattern, "the module has no pattern `{}`", id)
                   .expect("{}", names.empty() ? "a module with patterns" : join(names, ", "))
                   .help("`tessera discover MODEL.py` names them"));
}

Result<Verdict> try_by_hand(const Json& traced, const Options& options, const ByHand& given,
                            const Context& context) {
  if (options.confined) TESSERA_CHECK(sandbox::ready());
  Session s{.options = options, .context = context};
  TESSERA_TRY(found, discover(traced, options));
  TESSERA_TRY(pattern, pattern_named(found, given.pattern));
  const std::ptrdiff_t place = pattern - found.discovery.patterns.data();
  TESSERA_CHECK(check_source(given.source, *found.arch));
  // Kernels for a GPU can be checked and built without one.
  if (found.arch->device != "cuda") TESSERA_CHECK(check_device(found.graph, *found.arch));
  s.found = std::move(found);
  TESSERA_TRY(tools, open_tools(s, true));  // a sweep takes all, and those it has to beat
  s.tools = std::move(tools);
  s.work = group_by_signature(s);
  TESSERA_CHECK(look_up(s));
  for (Work& w : s.work) {
    if (std::find(w.patterns.begin(), w.patterns.end(), static_cast<int>(place)) ==
        w.patterns.end())
      continue;
    return Try(s, given, w).run();
  }
  return error(fail(no_such_pattern, "the pattern `{}` is in no group", given.pattern));
}

}  // namespace tessera::pipeline
