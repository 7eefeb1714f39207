#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/process.h"
#include "bridge/peer.h"

namespace tessera::bridge {
namespace {

class ParentPeer final : public LinePeer {
 public:
  ParentPeer() {
    die_with_parent();  // without it, a search would go on to its end for nobody
    ::signal(SIGPIPE, SIG_IGN);
    out_ = ::dup(STDOUT_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~ParentPeer() override { ::close(out_); }
  [[nodiscard]] std::string epitaph() const override {
    return alive() ? "" : "the process that spawned us is gone";
  }

 protected:
  bool write_line(const std::string& line) override {
    const std::string text = line + "\n";
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(out_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }

  std::optional<std::string> read_line(std::chrono::milliseconds limit) override {
    timed_out_ = false;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            deadline - std::chrono::steady_clock::now())
                            .count();
      pollfd p{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&p, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        timed_out_ = true;
        return std::nullopt;
      }
      char chunk[65536];
      const ssize_t n = ::read(STDIN_FILENO, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      buffer_.append(chunk, static_cast<std::size_t>(n));
    }
  }
  [[nodiscard]] bool timed_out() const override { return timed_out_; }
  void end() override {}  // not ours to end

 private:
  int out_ = -1;
  bool timed_out_ = false;
  std::string buffer_;
};

}  // namespace

std::unique_ptr<Peer> parent_process() {
  return std::make_unique<ParentPeer>();
}

}  // namespace tessera::bridge
