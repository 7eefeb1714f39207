#include "bridge/peer.h"

#include "base/text.h"

namespace tessera::bridge {
namespace {

using Clock = std::chrono::steady_clock;

Result<Json> outcome_of(const Json& reply) {
  if (reply.contains("error")) return error(diagnostic_from_json(reply.at("error")));
  return reply.value("result", Json::object());
}

std::optional<Json> parse(const std::string& line) {
  Json j = try_parse_json(line);
  if (j.is_discarded() || !j.is_object()) return std::nullopt;
  return j;
}

}  // namespace

Diagnostic LinePeer::died(const std::string& method) {
  alive_ = false;
  end();
  Diagnostic d = fail(peer_died, "the process that ran `{}` died", method).with("method", method);
  const std::vector<std::string> lines = split(epitaph(), '\n');
  if (!lines.empty()) {
    d.found = lines.front();
    d.data["ended"] = lines.front();
  }
  for (std::size_t i = 1; i < lines.size(); ++i) d.notes.push_back(lines[i]);
  d.helps.emplace_back(
      "`tessera doctor` checks Python and its packages; please report what it cannot explain");
  return d;
}

void LinePeer::answer(const Json& request) {
  const std::string method = request.at("method");
  Result<Json> result = error(fail(unknown_method, "this process answers no `{}`", method));
  if (on_request) result = on_request(method, request.value("params", Json::object()));
  Json reply = {{"id", request.at("id")}};
  if (result) {
    reply["result"] = *result;
  } else {
    reply["error"] = to_json(result.error());
  }
  write_line(reply.dump());
}

bool LinePeer::dispatch(const Json& message) {
  if (!message.contains("method")) return false;
  if (message.contains("id")) {
    answer(message);
  } else if (on_notification) {
    on_notification(message.at("method"), message.value("params", Json::object()));
  }
  return true;
}

Result<Json> LinePeer::call(const std::string& method, const Json& params,
                            std::chrono::seconds limit) {
  if (!alive_) return error(died(method));
  const int64_t id = next_id_++;
  Json request = {{"id", id}, {"method", method}, {"params", params}};
  if (deadline)
    request["params"]["limit"] =
        std::max(0.0, std::chrono::duration<double>(*deadline - Clock::now()).count());
  if (!write_line(request.dump())) return error(died(method));
  auto until = Clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const auto line = read_line(std::max(left, std::chrono::milliseconds(0)));
    if (!line && timed_out()) {
      alive_ = false;
      end();
      return error(fail(peer_timed_out, "`{}` took more than {} s; its process was ended", method,
                        limit.count())
                       .with("method", method));
    }
    if (!line) return error(died(method));
    const std::optional<Json> message = parse(*line);
    if (!message) {
      alive_ = false;
      end();
      return error(fail(peer_broke_protocol,
                        "the process that ran `{}` wrote something else than a JSON line", method)
                       .but_found("{}", line->substr(0, 200)));
    }
    const auto begin = Clock::now();
    if (dispatch(*message)) {
      until += Clock::now() - begin;  // our own work on its request is not its time
      continue;
    }
    if (message->value("id", int64_t{-1}) == id) return outcome_of(*message);
    // A late reply to a call that was given up: nobody waits for it.
  }
}

void LinePeer::notify(const std::string& method, const Json& params) {
  if (alive_) write_line(Json{{"method", method}, {"params", params}}.dump());
}

void LinePeer::serve() {
  while (alive_) {
    const auto line = read_line(std::chrono::hours(24));
    if (!line && timed_out()) continue;
    if (!line) {
      alive_ = false;
      return;
    }
    const std::optional<Json> message = parse(*line);
    if (message) {
      dispatch(*message);
    } else {
      notify("protocol_error", {{"line", line->substr(0, 200)}});
    }
  }
}

Status serve(Peer& peer,
             const std::function<Result<Json>(const std::string&, const Json&)>& handle) {
  peer.on_request = handle;
  peer.serve();
  return {};
}

void notify(Peer& peer, const std::string& method, const Json& params) {
  peer.notify(method, params);
}

}  // namespace tessera::bridge
