#include "llm/conversation.h"

namespace tessera::llm {

void Conversation::stop(const std::string& why) {
  if (!stopped_.empty()) return;
  stopped_ = why;
  archive_.note("stopped", {{"why", why}});
}

Result<std::optional<Reply>> Conversation::ask(const std::string& prompt, const Request& request) {
  if (!stopped_.empty()) return std::optional<Reply>();
  const std::string about = request.hash();
  const auto at_its_end = [&] {
    stop(archive_.stopped_because().empty()
             ? "the archived run ends here"
             : "the archived run ended here: " + archive_.stopped_because());
    return std::optional<Reply>();
  };
  // What is archived was paid for: the budget is asked before what is new alone. A run may have
  // been ended between a request and its reply.
  const auto refused = [&] {
    if (archive_.repeats() || archive_.replays()) return false;
    const auto why = budget_.reached(request);
    if (why) stop("the budget is reached: " + *why);
    return why.has_value();
  };
  if (refused()) return std::optional<Reply>();
  TESSERA_TRY(sent, archive_.once("request", about, [&]() -> Result<Json> {
    return Json{
        {"prompt", prompt},
        {"system", request.system},
        {"view", request.view},
        {"estimated_tokens", estimated_tokens(request.system) + estimated_tokens(request.view)}};
  }));
  if (!sent) return at_its_end();
  if (refused()) return std::optional<Reply>();
  TESSERA_TRY(came, archive_.once("reply", about, [&]() -> Result<Json> {
    Request within = request;
    within.max_tokens = budget_.room_for(request);
    TESSERA_TRY(reply, ask_(within));
    return to_json(reply);
  }));
  if (!came) return at_its_end();
  Reply reply = reply_from_json(*came);
  budget_.take(reply);
  return std::optional<Reply>(std::move(reply));
}

}  // namespace tessera::llm
