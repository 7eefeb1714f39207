#include "commands/common/mind_person.h"

#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "base/text.h"

namespace tessera::commands {
namespace {

inline constexpr Code no_answer{"TS0744", "mind.no_answer"};

using agent::Decision;

std::string editor() {
  for (const char* name : {"VISUAL", "EDITOR"}) {
    if (const char* own = std::getenv(name); own != nullptr && *own != 0) return own;
  }
  return "vi";
}

/// The text as the person left it; nothing where the editor failed.
std::optional<std::string> edited(const agent::Checkpoint& c) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / (c.about + c.ending);
  write_file_atomically(file, c.text);
  // The editor is a command line of the user's own, with words of its own.
  const std::string command = editor() + " '" + file.string() + "'";
  if (std::system(command.c_str()) != 0) return std::nullopt;  // NOLINT: the user's own editor
  return read_file(file);
}

Result<std::string> line_of(const agent::Checkpoint& c) {
  std::string line;
  if (std::getline(std::cin, line)) return trim(line);
  return error(fail(no_answer, "nobody answers at the checkpoint `{}`", c.about)
                   .expect("a line on stdin: a, e, r or s")
                   .help("run it in a terminal, or give --approve none; what was archived is not "
                         "asked for again"));
}

}  // namespace

Result<Decision> ask_person(const agent::Checkpoint& c) {
  std::cerr << "\n" << c.title << ":\n" << c.text << (c.text.ends_with('\n') ? "" : "\n");
  const bool editable = !c.ending.empty();
  while (true) {
    std::cerr << "[a]pprove, " << (editable ? "[e]dit, " : "") << "[r]efuse [why], [s]top? "
              << std::flush;
    TESSERA_TRY(line, line_of(c));
    const char word = line.empty() ? ' ' : line.front();
    if (word == 'a') return Decision{};
    if (word == 's')
      return error(fail(agent::user_stopped, "stopped at the checkpoint {}", c.about));
    if (word == 'r') {
      const std::size_t blank = line.find(' ');
      return Decision{.kind = Decision::Kind::refused,
                      .text = blank == std::string::npos ? "" : trim(line.substr(blank))};
    }
    if (word == 'e' && editable) {
      if (auto text = edited(c)) return Decision{.kind = Decision::Kind::edited, .text = *text};
      std::cerr << "the editor failed (VISUAL or EDITOR names another)\n";
    }
  }
}

}  // namespace tessera::commands
