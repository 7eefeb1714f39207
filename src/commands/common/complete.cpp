// Arguments as they come from the command line (texts), MCP and Python (typed JSON), brought to one
// form.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "base/text.h"
#include "commands/commands.h"

namespace tessera::commands {
namespace {

inline constexpr Code unknown_argument{"TS0041", "input.unknown_argument"};
inline constexpr Code missing_argument{"TS0042", "input.missing_argument"};
inline constexpr Code bad_argument{"TS0043", "input.bad_argument"};
inline constexpr Code negative_option{"TS0046", "input.negative_option"};
inline constexpr Code bad_checkpoints{"TS0047", "input.bad_checkpoints"};

using Type = Parameter::Type;

std::string as_option(const Parameter& p) {
  const std::string word(p.option.empty() ? p.name : p.option);
  return p.positional ? word : "--" + word;
}

std::string_view wanted(Type type) {
  switch (type) {
    case Type::text:
      return "a text";
    case Type::integer:
      return "an integer";
    case Type::real:
      return "a number";
    case Type::flag:
      return "true or false";
    case Type::list:
      return "a list of texts";
    case Type::numbers:
      return "a list of numbers";
  }
  return "a text";
}

template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc() || done.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Json> from_text(Type type, const std::string& text) {
  switch (type) {
    case Type::text:
      return Json(text);
    case Type::integer:
      if (const auto v = parse<int64_t>(text)) return Json(*v);
      return std::nullopt;
    case Type::real:
      if (const auto v = parse<double>(text)) return Json(*v);
      return std::nullopt;
    case Type::flag:
      if (text == "true" || text == "1") return Json(true);
      if (text == "false" || text == "0") return Json(false);
      return std::nullopt;
    case Type::list: {
      Json out = Json::array();
      if (text.empty()) return out;
      for (const std::string& item : split(text, ',')) out.push_back(trim(item));
      return out;
    }
    case Type::numbers: {
      Json out = Json::array();
      if (text.empty()) return out;
      for (const std::string& item : split(text, ',')) {
        const auto v = parse<double>(trim(item));
        if (!v) return std::nullopt;
        out.push_back(*v);
      }
      return out;
    }
  }
  return std::nullopt;
}

// The value in the parameter's type; nothing when it has no such form.
std::optional<Json> convert(Type type, const Json& value) {
  if (value.is_string()) return from_text(type, value.get<std::string>());
  switch (type) {
    case Type::text:
      return std::nullopt;
    case Type::integer:
      if (value.is_number_integer()) return value;
      if (value.is_number_float() &&
          value.get<double>() == static_cast<double>(value.get<int64_t>())) {
        return Json(value.get<int64_t>());
      }
      return std::nullopt;
    case Type::real:
      return value.is_number() ? std::optional<Json>(value.get<double>()) : std::nullopt;
    case Type::flag:
      return value.is_boolean() ? std::optional<Json>(value) : std::nullopt;
    case Type::list:
      if (!value.is_array()) return std::nullopt;
      for (const Json& item : value) {
        if (!item.is_string()) return std::nullopt;
      }
      return value;
    case Type::numbers:
      if (!value.is_array()) return std::nullopt;
      for (const Json& item : value) {
        if (!item.is_number()) return std::nullopt;
      }
      return value;
  }
  return std::nullopt;
}

Status check_choice(const Parameter& p, const std::string& word) {
  if (p.choices.empty()) return {};
  std::vector<std::string> words;
  for (const std::string_view choice : p.choices) {
    if (choice == word) return {};
    words.emplace_back(choice);
  }
  Diagnostic d = fail(bad_argument, "{} cannot be `{}`", as_option(p), word)
                     .expect("one of {}", join(words, ", "))
                     .but_found("{}", word);
  if (const std::string near = nearest(word, words); !near.empty())
    d.helps.push_back(fmt::format("did you mean `{}`?", near));
  return error(std::move(d));
}

Status check_figures(const Parameter& p, const Json& value) {
  if (p.not_negative && !(value.get<double>() >= 0)) {
    return error(fail(negative_option, "{} cannot be negative", as_option(p))
                     .expect("0 (no limit of its own) or more")
                     .but_found("{}", value.dump()));
  }
  if (!p.rising) return {};
  double before = 0;
  for (const Json& number : value) {
    if (!(number.get<double>() > before)) {
      return error(fail(bad_checkpoints, "{} must be positive and rise", as_option(p))
                       .expect("positive numbers, ascending")
                       .but_found("{}", value.dump()));
    }
    before = number.get<double>();
  }
  return {};
}

Result<Json> checked(const Parameter& p, const Json& value) {
  std::optional<Json> typed = convert(p.type, value);
  if (!typed) {
    return error(fail(bad_argument, "{} wants {}", as_option(p), wanted(p.type))
                     .expect("{}", wanted(p.type))
                     .but_found("{}", value.dump()));
  }
  if (p.type == Type::list) {
    for (const Json& item : *typed) TESSERA_CHECK(check_choice(p, item.get<std::string>()));
  } else if (p.type == Type::text) {
    TESSERA_CHECK(check_choice(p, typed->get<std::string>()));
  }
  TESSERA_CHECK(check_figures(p, *typed));
  return std::move(*typed);
}

Status check_names(const Command& command, const Json& arguments,
                   const std::vector<std::string>& own) {
  std::vector<std::string> names = own;
  for (const Parameter& p : command.parameters) names.emplace_back(p.name);
  for (const auto& [name, unused] : arguments.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    Diagnostic d = fail(unknown_argument, "`{}` has no argument `{}`", command.name, name);
    if (const std::string near = nearest(name, names); !near.empty()) {
      d.helps.push_back(fmt::format("did you mean `{}`?", near));
    }
    d.helps.push_back(fmt::format("it takes {}", names.empty() ? "none" : join(names, ", ")));
    return error(std::move(d));
  }
  return {};
}

}  // namespace

Result<Json> complete(const Command& command, const Json& arguments,
                      const std::vector<std::string>& own) {
  if (!arguments.is_object() && !arguments.is_null()) {
    return error(fail(bad_argument, "the arguments of `{}` must be a JSON object", command.name)
                     .but_found("{}", arguments.type_name()));
  }
  TESSERA_CHECK(check_names(command, arguments, own));
  Json out = Json::object();
  for (const Parameter& p : command.parameters) {
    const std::string name(p.name);
    if (arguments.contains(name) && !arguments.at(name).is_null()) {
      TESSERA_TRY(value, checked(p, arguments.at(name)));
      out[name] = std::move(value);
    } else if (p.required) {
      return error(fail(missing_argument, "`{}` needs {}", command.name, as_option(p))
                       .expect("{}: {}", name, p.doc)
                       .help("see `tessera {} --help`", command.name));
    } else if (!p.preset.empty()) {
      TESSERA_TRY(value, checked(p, Json(std::string(p.preset))));
      out[name] = std::move(value);
    } else if (p.type == Type::text) {
      out[name] = "";
    } else if (p.type == Type::flag) {
      out[name] = false;
    } else if (p.type == Type::list || p.type == Type::numbers) {
      out[name] = Json::array();
    }  // a number without a preset stays absent
  }
  return out;
}

}  // namespace tessera::commands
