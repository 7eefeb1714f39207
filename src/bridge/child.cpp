#include <cstdlib>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "bridge/peer.h"

namespace tessera::bridge {
namespace fs = std::filesystem;
namespace {

// The last lines of a log from byte `begin` on: this process's own part of a shared file.
std::string log_tail(const fs::path& log, std::uintmax_t begin) {
  std::ifstream in(log, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const auto size = static_cast<std::uintmax_t>(in.tellg());
  if (size <= begin) return "";
  in.seekg(static_cast<std::streamoff>(std::max(begin, size > 4000 ? size - 4000 : 0)));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::vector<std::string> lines = split(trim(text), '\n');
  std::vector<std::string> last(
      lines.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(lines.size(), 6)),
      lines.end());
  return join(last, "\n");
}

class ChildPeer final : public LinePeer {
 public:
  ChildPeer(const Command& command, fs::path log) : log_(std::move(log)) {
    std::error_code ignored;
    log_begin_ = fs::exists(log_, ignored) ? fs::file_size(log_, ignored) : 0;
    child_ = std::make_unique<LineChild>(command, log_);
  }
  [[nodiscard]] std::string epitaph() const override { return epitaph_; }

 protected:
  bool write_line(const std::string& line) override { return child_ && child_->write_line(line); }
  std::optional<std::string> read_line(std::chrono::milliseconds limit) override {
    return child_ ? child_->read_line(limit) : std::nullopt;
  }
  [[nodiscard]] bool timed_out() const override { return child_ && child_->timed_out(); }
  void end() override {
    if (!child_) return;
    epitaph_ = timed_out() ? "killed after its time limit" : child_->how_it_ended();
    child_.reset();
    if (const std::string tail = log_tail(log_, log_begin_); !tail.empty()) epitaph_ += "\n" + tail;
  }

 private:
  fs::path log_;
  std::uintmax_t log_begin_ = 0;
  std::unique_ptr<LineChild> child_;
  std::string epitaph_;
};

fs::path above_executable(const std::vector<fs::path>& choices) {
  for (fs::path at = executable_folder(); at.has_relative_path(); at = at.parent_path()) {
    for (const fs::path& choice : choices) {
      if (fs::exists(at / choice)) return at / choice;
    }
  }
  return {};
}

}  // namespace

fs::path find_python() {
  if (const char* own = std::getenv("TESSERA_PYTHON"); own != nullptr && *own != 0) return own;
  if (const fs::path beside = above_executable({".venv/bin/python"}); !beside.empty())
    return beside;
  for (const char* name : {"python3", "python"}) {
    if (const auto found = find_program(name)) return *found;
  }
  return {};
}

fs::path python_path() {
  if (const char* own = std::getenv("TESSERA_PYTHONPATH"); own != nullptr && *own != 0) return own;
  const fs::path found = above_executable({"python/tessera/__init__.py", "tessera/__init__.py"});
  if (!found.empty()) return found.parent_path().parent_path();
  const char* path = std::getenv("PYTHONPATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (!folder.empty() && fs::exists(fs::path(folder) / "tessera/__init__.py")) return folder;
  }
  return {};
}

Result<std::unique_ptr<Peer>> spawn(const fs::path& python, const std::string& module,
                                    const fs::path& log, const Wrap& wrap) {
  if (python.empty()) {
    return error(fail(peer_did_not_start, "there is no Python to run `{}`", module)
                     .help("install Python 3.10 or later with torch, or set TESSERA_PYTHON to an "
                           "interpreter"));
  }
  Command command{.argv = {python.string(), "-u", "-m", module}, .folder = {}, .env = {}};
  if (const fs::path package = python_path(); !package.empty()) {
    const char* path = std::getenv("PYTHONPATH");
    command.env["PYTHONPATH"] =
        path != nullptr && *path != 0 ? package.string() + ":" + path : package.string();
  }
  if (wrap) {
    TESSERA_TRY(wrapped, wrap(command));
    command = std::move(wrapped);
  }
  try {
    if (log.has_parent_path()) fs::create_directories(log.parent_path());
    return std::make_unique<ChildPeer>(command, log);
  } catch (const std::system_error& e) {  // also a filesystem_error
    return error(
        fail(peer_did_not_start, "`{} -m {}` did not start: {}", python.string(), module, e.what())
            .help(
                "set TESSERA_PYTHON to an interpreter that has torch; `tessera doctor` checks it"));
  }
}

}  // namespace tessera::bridge
