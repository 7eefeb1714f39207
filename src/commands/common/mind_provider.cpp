#include "commands/common/mind_provider.h"

#include "base/files.h"
#include "toolchain/ready.h"

#include "agent/loop.h"

namespace tessera::commands {
namespace {

constexpr std::chrono::seconds open_limit{60};
/// Above what all attempts of a call may take: the process itself bounds each.
constexpr std::chrono::hours ask_limit{2};

}  // namespace

Result<std::unique_ptr<Provider>> Provider::open(const Json& arguments, Context& context) {
  const std::filesystem::path log = cache_home() / "logs" / "mind.log";
  TESSERA_CHECK(toolchain::ready_cache(log.parent_path()));
  TESSERA_TRY(peer, bridge::spawn(bridge::find_python(), "tessera.mind_process", log));
  std::unique_ptr<Provider> out(new Provider(std::move(peer)));
  out->peer_->on_notification = [&context](const std::string& method, const Json& params) {
    if (method == "progress" && context.progress) context.progress(params);
  };
  // Asked while a reply comes in and between attempts: a run that is stopped waits for neither.
  out->peer_->on_request = [&context](const std::string& method, const Json&) -> Result<Json> {
    if (method != "wanted")
      return error(fail(bridge::unknown_method, "this process answers no `{}`", method));
    return Json{{"wanted", context.stop == nullptr || !context.stop->load()}};
  };
  TESSERA_CHECK(out->peer_->call("open",
                                 {{"provider", arguments.at("provider")},
                                  {"model", arguments.at("llm")},
                                  {"endpoint", arguments.value("endpoint", "")},
                                  {"retries", arguments.at("mind-retries")}},
                                 open_limit));
  return out;
}

Result<llm::Reply> Provider::ask(const llm::Request& request) {
  TESSERA_TRY(told, peer_->call("ask",
                                {{"system", request.system},
                                 {"view", request.view},
                                 {"max_tokens", request.max_tokens}},
                                ask_limit));
  return llm::reply_from_json(told);
}

}  // namespace tessera::commands
