// The process that talks to a language model's provider: `python -m tessera.mind_process`.
#pragma once

#include <memory>
#include <string>

#include "bridge/bridge.h"
#include "commands/commands.h"

#include "llm/conversation.h"

namespace tessera::commands {

/// A provider that was found, with its key. The key stays in that process.
class Provider {
 public:
  /// Errors TS0730 to TS0732 and TS0741: no key, no such provider, its package is missing, a script
  /// that cannot be read.
  static Result<std::unique_ptr<Provider>> open(const Json& arguments, Context& context);

  /// Errors TS0733 to TS0735: no such model, refused, or not reachable after all attempts; TS0743
  /// when the user stopped it.
  Result<llm::Reply> ask(const llm::Request& request);

 private:
  explicit Provider(std::unique_ptr<bridge::Peer> peer) : peer_(std::move(peer)) {}
  std::unique_ptr<bridge::Peer> peer_;
};

}  // namespace tessera::commands
