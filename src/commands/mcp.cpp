// `tessera mcp`: the command table for agents. The server is Python's, because the protocol's own
// package is; it reads `tessera commands` and starts this program for every call.
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include "base/files.h"
#include "bridge/bridge.h"
#include "commands/commands.h"

namespace tessera::commands {
namespace {

inline constexpr Code no_root{"TS0056", "input.no_root"};

Result<Outcome> run(const Json& arguments, Context&) {
  const std::string root = arguments.at("root");
  if (!std::filesystem::is_directory(root)) {
    return error(fail(no_root, "there is no folder `{}`", root)
                     .expect("--root DIR: the folder whose files the tools may read"));
  }
  const std::string python = bridge::find_python().string();
  std::string given = arguments.dump();
  ::setenv("PYTHONPATH", bridge::python_path().c_str(), 1);
  ::setenv("TESSERA_PYTHON", python.c_str(), 1);
  ::setenv("TESSERA_BINARY", (executable_folder() / "tessera").c_str(), 1);
  std::string program = python;
  std::string minus_m = "-m";
  std::string module = "tessera.mcp_server";
  char* const words[] = {program.data(), minus_m.data(), module.data(), given.data(), nullptr};
  ::execvp(python.c_str(), words);
  throw std::system_error(errno, std::generic_category(), python);
}

}  // namespace

extern const Command mcp = {
    .name = "mcp",
    .doc = "serve the commands as tools to an agent, by the Model Context Protocol",
    .details =
        "On stdin and stdout, or with --http on 127.0.0.1 with a bearer token: $TESSERA_MCP_TOKEN, "
        "or one that is made and told on stderr. Tools read files under --root alone. Every file "
        "argument also takes its text. Kernels run in a sandbox (docs/sandbox.md). A model that is "
        "given as text would run with your rights and is refused unless --unsandboxed. "
        "docs/skill.md is for the agent.",
    .parameters =
        {{.type = Parameter::Type::text,
          .name = "root",
          .doc = "the folder whose files the tools may read",
          .preset = "."},
         {.type = Parameter::Type::flag,
          .name = "unsandboxed",
          .doc = "run kernels, and models given as text, with all that you may do yourself"},
         {.type = Parameter::Type::flag, .name = "http", .doc = "streamable HTTP on 127.0.0.1"},
         {.type = Parameter::Type::integer,
          .name = "port",
          .doc = "of --http (0: a free one, told on stderr)",
          .preset = "0",
          .not_negative = true},
         {.type = Parameter::Type::text,
          .name = "registry",
          .doc = "registry file (default: the user's)",
          .names = Parameter::Names::place},
         {.type = Parameter::Type::text,
          .name = "cache",
          .doc = "folder of built kernels (default: the user's cache)",
          .names = Parameter::Names::place}},
    .run = run,
    .door = true,
};

}  // namespace tessera::commands
