// A session with a Python process over JSON lines (docs/protocol.md): requests out, replies and
// progress in.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/process.h"
#include "diag/result.h"

namespace tessera::bridge {

inline constexpr Code peer_did_not_start{"TS0701", "peer.did_not_start"};
inline constexpr Code peer_died{"TS0702", "peer.died"};
inline constexpr Code peer_timed_out{"TS0703", "peer.timed_out"};
inline constexpr Code peer_broke_protocol{"TS0704", "peer.broke_protocol"};
inline constexpr Code unknown_method{"TS0705", "peer.unknown_method"};

/// One peer that answers requests. A peer that dies or hangs answers with an error (TS07xx) that
/// says how it ended and where its log is; it then stays dead: make a new one.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual Result<Json> call(const std::string& method, const Json& params,
                            std::chrono::seconds limit) = 0;
  /// When all that is asked has to be over: until it is unset, every call's params say as `limit`
  /// how many seconds are left, and the peer gives up what takes longer, with an error of its own.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  virtual bool alive() const = 0;
  /// A message without a reply; lost silently when the peer is gone.
  virtual void notify(const std::string& method, const Json& params) = 0;
  /// Answers the peer's requests by `on_request` until its stream ends (for a process that was
  /// spawned to serve).
  virtual void serve() = 0;
  /// How the peer ended and the last lines of its log, for a dead peer; "" for a live one.
  [[nodiscard]] virtual std::string epitaph() const = 0;

  /// Called for every notification that arrives while a call waits or serve() runs.
  std::function<void(const std::string& method, const Json& params)> on_notification;
  /// Answers a request of the peer, also one that arrives while a call of ours waits for its reply.
  std::function<Result<Json>(const std::string& method, const Json& params)> on_request;
};

/// The Python interpreter to use: $TESSERA_PYTHON, else a virtual environment beside the binary or
/// source tree, else `python3` of PATH; it must be able to import torch (checked by `doctor` and by
/// the first call).
std::filesystem::path find_python();

/// What a command is started as: confined, say.
using Wrap = std::function<Result<Command>(const Command&)>;

/// Spawns `python -m <module>` with the package's folder on its path, through `wrap` where it is
/// given.
Result<std::unique_ptr<Peer>> spawn(const std::filesystem::path& python, const std::string& module,
                                    const std::filesystem::path& log, const Wrap& wrap = {});

/// The folder to put on PYTHONPATH so that `import tessera` finds the Python edge of this binary
/// (source tree or wheel): $TESSERA_PYTHONPATH, else beside the binary or above it, else the folder
/// of $PYTHONPATH that has it. Empty: the interpreter has it installed, or nobody has.
std::filesystem::path python_path();

/// The process that spawned us, over our own stdin and stdout (`tessera serve`). From then on our
/// stdout belongs to the protocol: what else is printed there goes to stderr.
std::unique_ptr<Peer> parent_process();

/// Answers the peer's requests with `handle` until it closes the stream; `handle` may itself call
/// the peer. A failed Result goes back as an error reply.
Status serve(
    Peer& peer,
    const std::function<Result<Json>(const std::string& method, const Json& params)>& handle);
/// A notification to the peer: no reply comes.
void notify(Peer& peer, const std::string& method, const Json& params);

}  // namespace tessera::bridge
