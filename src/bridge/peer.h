// The part of a peer that does not know how lines travel: ids, nesting, time limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bridge/bridge.h"

namespace tessera::bridge {

/// A peer over some line transport. Symmetric: while a call waits, requests of the other side are
/// answered.
class LinePeer : public Peer {
 public:
  Result<Json> call(const std::string& method, const Json& params,
                    std::chrono::seconds limit) override;
  void notify(const std::string& method, const Json& params) override;
  void serve() override;
  [[nodiscard]] bool alive() const override { return alive_; }

 protected:
  virtual bool write_line(const std::string& line) = 0;
  /// Empty at the end of the stream, or when `limit` passes (then timed_out() is true).
  virtual std::optional<std::string> read_line(std::chrono::milliseconds limit) = 0;
  [[nodiscard]] virtual bool timed_out() const = 0;
  /// Ends the peer after it hung or broke the protocol, and notes how it ended.
  virtual void end() = 0;

 private:
  Diagnostic died(const std::string& method);
  void answer(const Json& request);
  // Handles a request or notification; false when the message is a reply.
  bool dispatch(const Json& message);

  bool alive_ = true;
  int64_t next_id_ = 1;
};

}  // namespace tessera::bridge
