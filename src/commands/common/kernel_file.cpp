#include "commands/common/kernel_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"

#include "core/parse.h"
#include "language/language.h"
#include "syntax/parse.h"

namespace tessera::commands {
namespace {

constexpr Code no_kernel_file{"TS0036", "input.no_kernel_file"};
constexpr Code which_kernel{"TS0037", "input.which_kernel"};
constexpr Code bad_assignment{"TS0038", "input.bad_assignment"};

/// A function with the decorator `kernel`.
struct Found {
  std::string name;
  bool is_core = false;  // `@kernel(..., grid=...)`: the core's own text
};

std::vector<Found> kernels_of(const syntax::Module& module) {
  std::vector<Found> out;
  for (const syntax::Statement& s : module.body) {
    const auto* f = s.as<syntax::Function>();
    if (f == nullptr) continue;
    for (const syntax::Expr& d : f->decorators) {
      const auto* call = d.as<syntax::Call>();
      const auto* name = (call != nullptr ? *call->function : d).as<syntax::Name>();
      if (name == nullptr || name->id != "kernel") continue;
      const bool core =
          call != nullptr && std::any_of(call->arguments.begin(), call->arguments.end(),
                                         [](const auto& a) { return a.keyword == "grid"; });
      out.push_back({f->name, core});
    }
  }
  return out;
}

/// FILE or FILE:KERNEL; a file may have a colon in its name.
std::pair<std::filesystem::path, std::string> taken_apart(const std::string& text) {
  if (std::filesystem::is_regular_file(text)) return {text, ""};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Result<Found> chosen(const std::vector<Found>& found, const std::string& file,
                     const std::string& name) {
  std::vector<std::string> names;
  for (const Found& f : found) {
    if (f.name == name || (name.empty() && found.size() == 1)) return f;
    names.push_back(f.name);
  }
  if (found.empty())
    return error(fail(which_kernel, "`{}` has no kernel", file)
                     .expect("a function with the decorator @kernel"));
  if (name.empty())
    return error(fail(which_kernel, "`{}` has several kernels", file)
                     .expect("{}:KERNEL, one of {}", file, join(names, ", ")));
  return error(fail(which_kernel, "`{}` has no kernel `{}`", file, name)
                   .expect("one of {}", join(names, ", ")));
}

language::Constant constant_of(const std::string& text) {
  int64_t n = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (status == std::errc() && end == text.data() + text.size()) return n;
  return text;
}

}  // namespace

std::vector<Parameter> kernel_parameters(std::vector<Parameter> more) {
  using Type = Parameter::Type;
  std::vector<Parameter> out = {
      {.type = Type::text,
       .name = "kernel",
       .doc = "FILE.py, or FILE.py:KERNEL where it has several",
       .positional = true,
       .required = true,
       .names = Parameter::Names::kernel_file},
      {.type = Type::list, .name = "set", .doc = "NAME=VALUE: a constant of the kernel, as BM=128"},
      {.type = Type::text,
       .name = "means",
       .doc = "what it computes with these constants, in place of what "
              "the file says"}};
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return out;
}

Result<std::map<std::string, std::string>> assignments(const Json& arguments,
                                                       std::string_view parameter) {
  std::map<std::string, std::string> out;
  const auto given = arguments.find(std::string(parameter));
  if (given == arguments.end()) return out;
  for (const Json& one : *given) {
    const auto text = one.get<std::string>();
    const std::size_t at = text.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == text.size())
      return error(fail(bad_assignment, "`{}` is not an assignment", text)
                       .expect("--{} NAME=VALUE", parameter));
    out[text.substr(0, at)] = text.substr(at + 1);
  }
  return out;
}

Result<core::Kernel> load_kernel(const Json& arguments) {
  const auto [file, name] = taken_apart(arguments.at("kernel").get<std::string>());
  if (!std::filesystem::is_regular_file(file))
    return error(fail(no_kernel_file, "there is no file `{}`", file.string())
                     .expect("FILE.py or FILE.py:KERNEL"));
  const auto source = std::make_shared<const Source>(file.string(), read_file(file));
  const syntax::Parsed parsed = syntax::parse(*source);
  if (!parsed.errors.empty()) return error(parsed.errors.front());
  TESSERA_TRY(found, chosen(kernels_of(parsed.module), file.string(), name));
  TESSERA_TRY(constants, assignments(arguments, "set"));
  language::Options options;
  options.means = arguments.value("means", "");
  if (found.is_core) {
    if (!constants.empty() || !options.means.empty())
      return error(
          fail(bad_assignment, "`{}` is the core's own text: nothing of it can be set", found.name)
              .help("edit the file"));
    return core::parse(source);
  }
  for (const auto& [key, value] : constants) options.constants[key] = constant_of(value);
  return language::elaborate(*source, found.name, options);
}

}  // namespace tessera::commands
