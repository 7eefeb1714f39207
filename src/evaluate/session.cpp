#include "evaluate/session.h"

#include <algorithm>

#include "sandbox/sandbox.h"

namespace tessera::evaluate {
namespace {

constexpr std::chrono::seconds start_limit{120};  // torch is imported
constexpr std::chrono::seconds open_limit{600};   // fp64 references on a slow host
/// Their datasets share one bounded store in the process; this bounds what else it keeps of each.
constexpr std::size_t most_open = 32;

// The end of a process, as an outcome; empty for an error that the process survived.
std::optional<tune::Outcome> death_of(const Diagnostic& d) {
  if (d.code == bridge::peer_timed_out.id) return tune::Outcome::timed_out;
  if (d.code == bridge::peer_died.id || d.code == bridge::peer_broke_protocol.id)
    return tune::Outcome::crashed;
  return std::nullopt;
}

/// Of the clock by which the sandbox tells when something was tried.
double seconds_of_machine() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string text_of(const Diagnostic& d) {
  std::string text = d.message;
  if (!d.found.empty()) text += ": " + d.found;
  if (!d.notes.empty()) text += " (" + d.notes.back() + ")";
  return text;
}

}  // namespace

Session::Session(const Options& options, const graph::Graph& g, const arch::Arch& arch)
    : options_(options), graph_(g), arch_(arch) {}

Session::~Session() = default;

void Session::drop() {
  peer_.reset();
  open_.clear();
}

Status Session::start() {
  if (peer_ && peer_->alive()) return {};
  drop();
  bridge::Wrap wrap;
  if (options_.confined) wrap = [this](const Command& command) { return confined(command); };
  TESSERA_TRY(peer, bridge::spawn(options_.python, "tessera.evaluator_process",
                                  options_.log_folder / "evaluator.log", wrap));
  peer_ = std::move(peer);
  graph_sent_ = false;
  return {};
}

Result<Json> Session::hello() {
  TESSERA_CHECK(start());
  return peer_->call("hello", Json::object(), start_limit);
}

void Session::close(const rules::Pattern& pattern) {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&](const Open& o) { return o.pattern == &pattern; });
  if (at == open_.end()) return;
  if (peer_ && peer_->alive())
    (void)peer_->call("close", {{"handle", at->handle}}, std::chrono::seconds(30));
  open_.erase(at);
}

void Session::make_room() {
  while (open_.size() >= most_open) close(*open_.front().pattern);
}

Status Session::open(const rules::Pattern& pattern) {
  const auto handle = handle_of(pattern);
  return handle ? Status{} : Status(error(handle.error()));
}

// The one that it is known by in the process that runs now.
Result<int64_t> Session::handle_of(const rules::Pattern& pattern) {
  TESSERA_CHECK(start());
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&](const Open& o) { return o.pattern == &pattern; });
  if (at != open_.end()) {
    std::rotate(at, at + 1, open_.end());
    return open_.back().handle;
  }
  make_room();
  Json pattern_json = rules::to_json(graph_, pattern);
  // The evaluator needs the nodes by name whatever else the pattern's JSON holds.
  Json nodes = Json::array();
  for (const graph::NodeId n : pattern.nodes) nodes.push_back(graph_.node(n).name);
  pattern_json["nodes"] = std::move(nodes);
  if (graph_json_.is_null()) graph_json_ = graph::to_json(graph_);
  const std::string device = graph_.device.empty() ? std::string(arch_.device) : graph_.device;
  Json params = {{"pattern", std::move(pattern_json)},
                 {"device", device},
                 {"precision", name_of(graph_.precision)}};
  if (!graph_sent_) params["graph"] = graph_json_;  // the process keeps it for the next
  const auto reply = peer_->call("open", params, start_limit + open_limit);
  if (!reply) {
    // A reference that cannot be made leaves the process as it was.
    if (!reply.error().code.starts_with("TS05")) drop();
    return error(reply.error());
  }
  graph_sent_ = true;
  open_.push_back({.pattern = &pattern, .handle = reply->at("handle").get<int64_t>()});
  return open_.back().handle;
}

Answer Session::ask(const rules::Pattern& pattern, const std::string& method, Json params,
                    std::chrono::seconds limit) {
  const auto handle = handle_of(pattern);
  if (!handle) {
    return {.reply = {}, .outcome = tune::Outcome::crashed, .reason = text_of(handle.error())};
  }
  params["handle"] = *handle;
  const double begin = seconds_of_machine();
  Result<Json> reply = peer_->call(method, params, limit);
  std::string tried = forbidden(begin);
  if (reply)
    return {.reply = std::move(*reply),
            .outcome = tune::Outcome::measured,
            .reason = "",
            .forbidden = std::move(tried)};
  const auto death = death_of(reply.error());
  // An error that the process answered may have left it on a broken device: a fresh one takes over
  // in any case.
  drop();
  return {.reply = {},
          .outcome = death.value_or(tune::Outcome::crashed),
          .reason = text_of(reply.error()),
          .forbidden = std::move(tried)};
}

// It reads the system, its interpreter, this package and the built kernels.
Result<Command> Session::confined(const Command& command) {
  room_ = std::make_unique<TemporaryFolder>("tessera-evaluator");
  std::filesystem::create_directories(room_->path() / "own");
  sandbox::Policy policy = sandbox::usual();
  for (const std::string& f : sandbox::folders_of_python(options_.python))
    policy.readable.push_back(f);
  for (const std::filesystem::path& f : {bridge::python_path(), options_.cache})
    if (!f.empty())
      policy.readable.push_back(std::filesystem::absolute(f).lexically_normal().string());
  if (arch_.device == "cuda" || graph_.device.starts_with("cuda")) sandbox::add_gpu(policy);
  policy.writable = {(room_->path() / "own").string()};
  policy.report = (room_->path() / "report.json").string();
  Command inside = command;
  inside.folder = room_->path() / "own";
  return sandbox::confine(inside, policy);
}

std::string Session::forbidden(double since) const {
  if (!room_) return "";
  const auto report = sandbox::read_report(room_->path() / "report.json");
  return report ? sandbox::told(*report, since) : "";
}

}  // namespace tessera::evaluate
