#include "evaluate/session.h"

namespace tessera::evaluate {
namespace {

constexpr std::chrono::seconds start_limit{120};  // torch is imported
constexpr std::chrono::seconds open_limit{600};   // fp64 references on a slow host

// The end of a process, as an outcome; empty for an error that the process survived.
std::optional<tune::Outcome> death_of(const Diagnostic& d) {
  if (d.code == bridge::peer_timed_out.id) return tune::Outcome::timed_out;
  if (d.code == bridge::peer_died.id || d.code == bridge::peer_broke_protocol.id)
    return tune::Outcome::crashed;
  return std::nullopt;
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
  handle_.reset();
}

Status Session::start() {
  if (peer_ && peer_->alive()) return {};
  drop();
  TESSERA_TRY(peer, bridge::spawn(options_.python, "tessera.evaluator_process",
                                  options_.log_folder / "evaluator.log"));
  peer_ = std::move(peer);
  return {};
}

Result<Json> Session::hello() {
  TESSERA_CHECK(start());
  return peer_->call("hello", Json::object(), start_limit);
}

Status Session::open(const rules::Pattern& pattern) {
  if (handle_ && peer_ && peer_->alive())
    peer_->call("close", {{"handle", *handle_}}, std::chrono::seconds(30));
  handle_.reset();
  pattern_json_ = rules::to_json(graph_, pattern);
  // The evaluator needs the nodes by name whatever else the pattern's JSON holds.
  Json nodes = Json::array();
  for (const graph::NodeId n : pattern.nodes) nodes.push_back(graph_.node(n).name);
  pattern_json_["nodes"] = std::move(nodes);
  if (graph_json_.is_null()) graph_json_ = graph::to_json(graph_);
  return reopen();
}

Status Session::reopen() {
  TESSERA_CHECK(start());
  if (handle_) return {};
  const std::string device = graph_.device.empty() ? std::string(arch_.device) : graph_.device;
  const auto reply = peer_->call("open",
                                 {{"graph", graph_json_},
                                  {"pattern", pattern_json_},
                                  {"device", device},
                                  {"precision", name_of(graph_.precision)}},
                                 start_limit + open_limit);
  if (!reply) {
    drop();
    return error(reply.error());
  }
  handle_ = reply->at("handle").get<int64_t>();
  return {};
}

Answer Session::ask(const std::string& method, Json params, std::chrono::seconds limit) {
  if (const Status ready = reopen(); !ready) {
    return {.reply = {}, .outcome = tune::Outcome::crashed, .reason = text_of(ready.error())};
  }
  params["handle"] = *handle_;
  Result<Json> reply = peer_->call(method, params, limit);
  if (reply) return {.reply = std::move(*reply), .outcome = tune::Outcome::measured, .reason = ""};
  const auto death = death_of(reply.error());
  // An error that the process answered may have left it on a broken device: a fresh one takes over
  // in any case.
  drop();
  return {.reply = {},
          .outcome = death.value_or(tune::Outcome::crashed),
          .reason = text_of(reply.error())};
}

}  // namespace tessera::evaluate
