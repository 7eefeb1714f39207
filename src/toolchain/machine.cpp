#include "toolchain/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/text.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

std::string read_cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, model, flags;
  while (std::getline(in, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) {
      if (!model.empty() && !flags.empty()) break;
      continue;
    }
    const std::string key = trim(line.substr(0, colon));
    if (key == "model name" || key == "CPU part") model = trim(line.substr(colon + 1));
    if (key == "flags" || key == "Features") flags = trim(line.substr(colon + 1));
  }
  return model + " " + content_hash(flags).substr(0, 8);
}

bool is_header(const fs::path& p) {
  const std::string e = p.extension().string();
  return e == ".h" || e == ".hpp" || e == ".cuh" || e == ".inl";
}

// The names in `#include "..."` and `#include <...>` lines.
std::vector<std::string> included_names(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string& line : split(text, '\n')) {
    const std::string t = trim(line);
    if (!t.starts_with("#")) continue;
    const std::string rest = trim(std::string_view(t).substr(1));
    if (!rest.starts_with("include")) continue;
    const std::size_t begin = rest.find_first_of("\"<");
    const std::size_t end =
        begin == std::string::npos ? begin : rest.find_first_of("\">", begin + 1);
    if (end != std::string::npos) out.push_back(rest.substr(begin + 1, end - begin - 1));
  }
  return out;
}

}  // namespace

std::string cpu_model() {
  static const std::string model = read_cpu_model();
  return model;
}

std::string own_headers_hash(const fs::path& folder) {
  if (folder.empty() || !fs::is_directory(folder)) return "none";
  std::vector<fs::path> headers;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_header(entry.path())) headers.push_back(entry.path());
  }
  std::sort(headers.begin(), headers.end());
  std::string text;
  for (const fs::path& h : headers)
    text += fs::relative(h, folder).string() + "\n" + read_file(h) + "\n";
  return content_hash(text);
}

namespace {

struct Included {
  std::vector<std::pair<fs::path, fs::file_time_type>> files;
  std::string hash;  // of their names and texts
  [[nodiscard]] bool as_they_are() const {
    std::error_code gone;
    return std::all_of(files.begin(), files.end(), [&](const auto& f) {
      return fs::last_write_time(f.first, gone) == f.second && !gone;
    });
  }
};

/// All that `text` includes from `folder`, directly or not.
Included read_included(const fs::path& folder, const std::string& text) {
  Included out;
  std::map<std::string, std::string> seen;  // by place below `folder`: its text
  std::vector<std::pair<fs::path, std::string>> open = {
      {folder, text}};  // where the text lies, the text
  while (!open.empty()) {
    const auto [place, content] = std::move(open.back());
    open.pop_back();
    for (const std::string& name : included_names(content)) {
      for (const fs::path& base : {place, folder}) {
        const fs::path file = (base / name).lexically_normal();
        const std::string key = file.lexically_relative(folder).string();
        if (key.starts_with("..") || !fs::is_regular_file(file)) continue;
        if (!seen.contains(key)) {
          out.files.emplace_back(file, fs::last_write_time(file));
          seen[key] = read_file(file);
          open.emplace_back(file.parent_path(), seen[key]);
        }
        break;
      }
    }
  }
  std::string all;
  for (const auto& [key, content] : seen) all += key + "\n" + content + "\n";
  out.hash = content_hash(all);
  return out;
}

}  // namespace

// A search asks for a thousand sources that include the same few headers.
std::string included_headers_hash(const fs::path& folder, const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, Included> known;
  const std::string key = folder.string() + "\n" + join(included_names(text), "\n");
  const std::scoped_lock lock(mutex);
  auto [at, fresh] = known.try_emplace(key);
  if (fresh || !at->second.as_they_are()) at->second = read_included(folder, text);
  return at->second.hash;
}

std::optional<fs::path> beside_nvcc(const Toolchain& tools, const std::string& name) {
  std::error_code ignored;
  fs::path beside = tools.nvcc.parent_path() / name;
  if (!tools.nvcc.empty() && fs::is_regular_file(beside, ignored)) return beside;
  return find_program(name);
}

}  // namespace tessera::toolchain
