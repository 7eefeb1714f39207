#include "agent/prompt.h"

#include <sstream>

#include "base/files.h"
#include "base/hash.h"

namespace tessera::agent {
namespace {

inline constexpr Code bad_prompt{"TS0740", "mind.bad_prompt"};

/// The turns that the loop takes.
constexpr const char* names[] = {"propose", "plan", "write", "fix", "tune"};

Result<Prompt> read_prompt(const std::filesystem::path& file, const std::string& name) {
  const auto refuse = [&](const std::string& found) {
    return error(fail(bad_prompt, "the prompt {} cannot be used", file.string())
                     .expect("a first line `<!-- tessera.prompt/1 {} VERSION -->`", name)
                     .but_found("{}", found)
                     .help("take the files of knowledge/prompts as they came, or mend the line; "
                           "TESSERA_KNOWLEDGE names the folder above"));
  };
  if (!std::filesystem::is_regular_file(file)) return refuse("no such file");
  const std::string text = read_file(file);
  const std::string head = text.substr(0, text.find('\n'));
  std::istringstream words(head);
  std::string open, schema, named, close;
  Prompt p{.name = name};
  words >> open >> schema >> named >> p.version >> close;
  if (open != "<!--" || schema != "tessera.prompt/1" || named != name || p.version < 1 ||
      close != "-->")
    return refuse(head);
  p.text = text.substr(std::min(text.size(), head.size() + 1));
  return p;
}

}  // namespace

std::string Prompt::id() const {
  return fmt::format("{}/{}", name, version);
}

Result<Prompts> Prompts::read(const std::filesystem::path& folder) {
  Prompts out;
  for (const char* name : names) {
    TESSERA_TRY(prompt, read_prompt(folder / (std::string(name) + ".md"), name));
    out.prompts_.emplace(name, std::move(prompt));
  }
  return out;
}

std::string Prompts::hash() const {
  std::string all;
  for (const auto& [name, p] : prompts_) all += p.id() + '\0' + p.text + '\0';
  return content_hash(all);
}

}  // namespace tessera::agent
