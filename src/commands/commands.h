// The command table: CLI flags, MCP tool schemas and Python functions are renderings of it. One
// file a command.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "diag/result.h"

namespace tessera::commands {

struct Parameter {
  enum class Type : uint8_t { text, integer, real, flag, list, numbers } type = Type::text;
  std::string_view name;  // "effort": --effort on the command line
  std::string_view doc;
  std::string_view preset = "";  // the default, as text
  bool positional = false;
  bool required = false;
  std::vector<std::string_view> choices = {};
  bool words = false;         // a text of several words, which the command line takes one by one
  bool not_negative = false;  // of an integer or a real; nor undefined
  bool rising = false;        // of numbers: positive, each above the one before
  /// What a text names: doors that share no folder with their caller pass the content instead.
  enum class Names : uint8_t {
    nothing,      // the text itself
    model,        // FILE.py or FILE.py:Class, whose code is run
    source,       // a file whose text is compiled and run
    kernel_file,  // FILE.py or FILE.py:KERNEL of the tile language, of which no Python is run
    input,        // a file or a folder that is read
    output,       // a file or a folder that is written
    place,        // what is the user's own: a registry, a cache, a key and the money behind it
  } names = Names::nothing;
  std::string_view only_when = "";  // the choice of the first parameter with which it names that
  std::string_view option = "";     // what the command line calls it, where that is not its name
};

/// How a command speaks while it works and how it is stopped.
struct Context {
  std::function<void(const Json& event)> progress;  // {"stage","message","done","total",...}
  const std::atomic<bool>* stop = nullptr;          // set by a signal; the best so far is kept
};

struct Outcome {
  Json data = Json::object();           // what --json prints; has "schema"
  std::string text;                     // what people read
  std::vector<Diagnostic> diagnostics;  // warnings and errors met on the way
  Exit exit = Exit::ok;
};

struct Command {
  std::string_view name;          // "optimize"
  std::string_view doc;           // one line
  std::string_view details = "";  // paragraphs for --help
  std::vector<Parameter> parameters;
  /// Arguments by parameter name, presets filled in.
  Result<Outcome> (*run)(const Json& arguments, Context& context);
  bool hidden = false;
  std::vector<std::string_view> schemas = {};  // of what --json prints when nothing fails
  bool door = false;                           // it speaks a protocol of its own
  bool keeps = false;                          // when it is stopped, the best so far
};

std::span<const Command* const> all();
/// Arguments with presets filled in, types and choices checked; the error names the nearest right
/// word. `own`: words that the caller takes itself, which may be the nearest.
Result<Json> complete(const Command& command, const Json& arguments,
                      const std::vector<std::string>& own = {});

}  // namespace tessera::commands
