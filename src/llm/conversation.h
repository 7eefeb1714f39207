// Turns with a language model: within the budget, and archived before and after.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "diag/result.h"

#include "llm/archive.h"
#include "llm/budget.h"
#include "llm/message.h"

namespace tessera::llm {

/// Sends one request to the model. Errors are of the provider: TS073x.
using Ask = std::function<Result<Reply>(const Request&)>;

class Conversation {
 public:
  Conversation(Archive& archive, Budget& budget, Ask ask)
      : archive_(archive), budget_(budget), ask_(std::move(ask)) {}

  /// The reply; nothing where the run ends here, and stopped() says why. `prompt` names the prompt
  /// with its version, and is archived beside the request.
  Result<std::optional<Reply>> ask(const std::string& prompt, const Request& request);
  /// "" while it goes on; "the budget is reached: ...".
  [[nodiscard]] const std::string& stopped() const { return stopped_; }
  void stop(const std::string& why);

  [[nodiscard]] Archive& archive() { return archive_; }
  [[nodiscard]] Spent spent() const { return budget_.spent(); }

 private:
  Archive& archive_;
  Budget& budget_;
  Ask ask_;
  std::string stopped_;
};

}  // namespace tessera::llm
