// The command line: a rendering of the command table. No logic of its own beyond words, signals and
// exit codes.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <signal.h>
#include <system_error>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "commands/commands.h"

namespace {

using tessera::Diagnostic;
using tessera::Exit;
using tessera::Json;
namespace commands = tessera::commands;

std::atomic<bool> stop_requested{false};
std::atomic<bool> speaks{true};

// The first SIGINT, SIGTERM or SIGHUP asks for the best so far, which takes a while and is told at
// once; the second ends the program.
void on_stop_signal(int signal) {
  if (stop_requested.exchange(true)) {
    tessera::kill_all_children();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  static constexpr std::string_view told =
      "     stop  stopping with the best so far; Ctrl-C again to give up\n";
  if (!speaks) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, told.data(), told.size());
}

void catch_stop_signals() {
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(s, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // under nohup, or in the background of a script
    struct sigaction action = {};
    action.sa_handler = on_stop_signal;
    ::sigaction(s, &action, nullptr);
  }
}

// Prints what can be printed: a terminal that was closed, or a reader that is gone, ends no search.
template <class... T>
void put(std::FILE* to, fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), to);
}

// What the user typed for one parameter, in the type that CLI11 fills.
struct Slot {
  std::string text;
  std::vector<std::string> list;
  bool flag = false;
  CLI::Option* option = nullptr;
};

void add_parameter(CLI::App& app, const commands::Parameter& p, Slot& slot) {
  using Type = commands::Parameter::Type;
  const std::string word(p.option.empty() ? p.name : p.option);
  const std::string name = p.positional ? word : "--" + word;
  std::string doc(p.doc);
  if (!p.choices.empty()) {
    std::vector<std::string> words(p.choices.begin(), p.choices.end());
    doc += " {" + tessera::join(words, ",") + "}";
  }
  if (!p.preset.empty()) doc += fmt::format(" [{}]", p.preset);
  if (p.type == Type::flag) {
    slot.option = app.add_flag(name, slot.flag, doc);
  } else if (p.type == Type::list) {
    slot.option = app.add_option(name, slot.list, doc)->delimiter(',');
  } else if (p.words) {
    slot.option = app.add_option(name, slot.list, doc);
  } else {
    slot.option = app.add_option(p.name == "output" ? "-o," + name : name, slot.text, doc);
  }
  slot.option->type_name("");
  if (p.required) slot.option->required();
}

Json to_arguments(const commands::Command& command, const std::map<std::string_view, Slot>& slots) {
  using Type = commands::Parameter::Type;
  Json out = Json::object();
  for (const commands::Parameter& p : command.parameters) {
    const Slot& slot = slots.at(p.name);
    if (slot.option->count() == 0) continue;
    const std::string key(p.name);
    if (p.type == Type::flag) {
      out[key] = slot.flag;
    } else if (p.type == Type::list) {
      out[key] = slot.list;
    } else if (p.words) {
      out[key] = tessera::join(slot.list, " ");
    } else {
      out[key] = slot.text;  // complete() turns it into its type
    }
  }
  return out;
}

// The seconds are those since the first event.
void show_progress(const Json& event) {
  static const bool terminal = ::isatty(2) != 0;
  static const auto begin = std::chrono::steady_clock::now();
  const std::string message = event.value("message", "");
  if (message.empty()) return;
  std::string line = fmt::format("{:6.1f} s {:>9}  {}", tessera::seconds_since(begin),
                                 event.value("stage", ""), message);
  if (event.contains("done") && event.contains("total")) {
    line += fmt::format("  {}/{}", event.at("done").dump(), event.at("total").dump());
  }
  const bool transient = terminal && event.value("transient", false);
  put(stderr, "{}{}{}", terminal ? "\r\033[K" : "", line, transient ? "" : "\n");
  std::fflush(stderr);
}

/// What is told of a command: people's text, one JSON value, or --wire's lines for another program.
struct Manner {
  bool json = false;
  bool quiet = false;
  bool wire = false;
};

// One line of the wire, whatever bytes a text has.
void put_line(const Json& line) {
  put(stdout, "{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

int finish_wire(const commands::Outcome& outcome) {
  Json told = Json::array();
  for (const Diagnostic& d : outcome.diagnostics) told.push_back(to_json(d));
  put_line({{"outcome",
             {{"exit", static_cast<int>(outcome.exit)},
              {"data", outcome.data},
              {"text", outcome.text},
              {"diagnostics", told}}}});
  return static_cast<int>(outcome.exit);
}

// What was asked for is printed whole, or the exit code says that it was not: where a disk is full.
// A reader that is gone wants no more.
int told_whole(int exit) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit;
  if (errno == EPIPE) return exit;
  put(stderr, "error[TS0030]: the output cannot be written: {}\n", std::strerror(errno));
  return static_cast<int>(Exit::bad_input);
}

int finish(const commands::Outcome& outcome, const Manner& manner) {
  if (manner.wire) return told_whole(finish_wire(outcome));
  const bool json = manner.json;
  for (const Diagnostic& d : outcome.diagnostics) {
    put(stderr, "{}", json ? to_json(d).dump() + "\n" : to_text(d));
  }
  if (json) {
    put(stdout, "{}\n", outcome.data.dump(1));
  } else {
    put(stdout, "{}", outcome.text);
  }
  return told_whole(static_cast<int>(outcome.exit));
}

int fail_with(const Diagnostic& d, const Manner& manner) {
  if (manner.wire) {
    commands::Outcome none;
    none.data = to_json(d);
    none.text = fmt::format("{}  = more: tessera explain {}\n", to_text(d), d.code);
    none.exit = exit_code(d);
    return finish_wire(none);
  }
  if (manner.json) {
    put(stdout, "{}\n", to_json(d).dump());
  } else {
    put(stderr, "{}  = more: tessera explain {}\n", to_text(d), d.code);
  }
  return static_cast<int>(exit_code(d));
}

int run_command(const commands::Command& command, const std::map<std::string_view, Slot>& slots,
                const Manner& manner) {
  auto arguments = commands::complete(command, to_arguments(command, slots));
  if (!arguments) return fail_with(arguments.error(), manner);
  commands::Context context;
  context.stop = &stop_requested;
  speaks = !manner.quiet && !manner.wire;
  if (manner.wire) {
    context.progress = [](const Json& event) { put_line({{"progress", event}}); };
  } else if (!manner.quiet) {
    context.progress = show_progress;
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  catch_stop_signals();
  try {
    auto outcome = command.run(*arguments, context);
    if (!outcome) return fail_with(outcome.error(), manner);
    return finish(*outcome, manner);
  } catch (const std::system_error& e) {
    // The world's fault (disk, permissions, processes), told with the place that the error carries.
    return fail_with(tessera::fail(tessera::Code{"TS0030", "world.system_error"}, "{}", e.what())
                         .help("see `tessera doctor` for places and free space"),
                     manner);
  } catch (const std::exception& e) {
    return fail_with(
        tessera::fail(tessera::Code{"TS0900", "bug.exception"}, "fault in tessera: {}", e.what())
            .help("please report it with the command that you ran"),
        manner);
  }
}

// The error for the first option that the command does not have, in the words of every door; what
// is no option is left to CLI11.
std::optional<Diagnostic> unknown_option(const commands::Command& command,
                                         const std::vector<std::string>& extras) {
  for (const std::string& word : extras) {
    if (!word.starts_with("--") || word.size() < 3) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (auto checked = commands::complete(command, {{name, ""}}); !checked) return checked.error();
  }
  return std::nullopt;
}

// The command whose name is nearest to the first word, which is none; "" where none is near.
std::string nearest_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const commands::Command* command : commands::all()) {
    if (command->name == argv[1]) return "";
    if (!command->hidden) names.emplace_back(command->name);
  }
  return tessera::nearest(argv[1], names);
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string near = nearest_command(argc, argv); !near.empty()) {
    put(stderr, "error: there is no command `{}`\n  help: did you mean `{}`?\n", argv[1], near);
    return static_cast<int>(Exit::bad_input);
  }
  CLI::App app{"tessera: a PyTorch module in, a verified, faster module out", "tessera"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  Manner manner;
  std::map<const commands::Command*, std::map<std::string_view, Slot>> slots;
  std::map<CLI::App*, const commands::Command*> by_app;
  for (const commands::Command* command : commands::all()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->doc));
    if (!command->details.empty()) sub->footer(std::string(command->details));
    if (command->hidden) sub->group("");
    for (const commands::Parameter& p : command->parameters)
      add_parameter(*sub, p, slots[command][p.name]);
    sub->add_flag("--json", manner.json, "print JSON");
    sub->add_flag("-q,--quiet", manner.quiet, "no progress");
    sub->add_flag("--wire", manner.wire, "JSON lines for another program")->group("");
    by_app[sub] = command;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& e) {
    const auto given = app.get_subcommands();
    if (!given.empty()) {
      if (const auto d = unknown_option(*by_app.at(given.front()), given.front()->remaining()))
        return fail_with(*d, manner);
    }
    app.exit(e);
    return static_cast<int>(Exit::bad_input);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : static_cast<int>(Exit::bad_input);
  }
  const commands::Command* command = by_app.at(app.get_subcommands().front());
  return run_command(*command, slots[command], manner);
}
