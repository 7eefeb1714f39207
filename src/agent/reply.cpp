#include "agent/reply.h"

#include <fmt/format.h>
#include <optional>

#include "base/text.h"

namespace tessera::agent {
namespace {

struct Fences {
  std::string longest;
  std::string language;
  std::string outside;  // first line that is in none
  bool open = false;    // the last one has no end
};

Fences fences_of(const std::string& text) {
  Fences out;
  std::string block, language;
  bool inside = false;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("```")) {
      if (inside && block.size() > out.longest.size()) {
        out.longest = block;
        out.language = language;
      }
      inside = !inside;
      block.clear();
      language = trim(line.substr(3));
    } else if (inside) {
      block += line + "\n";
    } else if (out.outside.empty()) {
      out.outside = trim(line);
    }
  }
  out.open = inside;
  return out;
}

std::string ending_of(const std::string& language) {
  if (language == "cpp" || language == "c++" || language == "cxx") return ".cpp";
  if (language == "cuda" || language == "cu") return ".cu";
  return language == "python" || language == "py" ? ".py" : "";
}

std::optional<std::string> done_of(const std::string& text) {
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).starts_with("DONE:")) return trim(trim(line).substr(5));
  }
  return std::nullopt;
}

/// What `fields` makes of the JSON object in a reply.
template <typename T, typename F>
std::variant<T, Unreadable> read_object(const std::string& text, const F& fields) {
  const std::size_t first = text.find('{'), last = text.rfind('}');
  if (first == std::string::npos || last == std::string::npos || last < first)
    return Unreadable{"there was no JSON object"};
  const Json j = try_parse_json(text.substr(first, last - first + 1));
  if (j.is_discarded()) return Unreadable{"the JSON object could not be parsed"};
  try {
    return fields(j);
  } catch (const Json::exception& e) {
    return Unreadable{
        fmt::format("the JSON object has not the fields that are asked for: {}", e.what())};
  }
}

}  // namespace

std::variant<Written, Done, Unreadable> read_source_reply(const std::string& text) {
  constexpr std::size_t most_note = 200;
  const Fences f = fences_of(text);
  if (f.longest.empty()) {
    if (const auto why = done_of(text)) return Done{*why};
    return Unreadable{f.open
                          ? "the block of code was not ended: the reply was cut off, or its last "
                            "line is not ```"
                          : "there was no block of code between lines of ```"};
  }
  return Written{
      .text = f.longest, .ending = ending_of(f.language), .note = f.outside.substr(0, most_note)};
}

std::variant<Plan, Unreadable> read_plan_reply(const std::string& text) {
  return read_object<Plan>(text, [](const Json& j) {
    Plan plan{.order = j.at("order").get<std::vector<std::string>>()};
    const Json reasons = j.value("reasons", Json::object());
    for (const auto& [id, why] : reasons.items())
      plan.reasons.emplace_back(id, why.get<std::string>());
    return plan;
  });
}

std::variant<std::vector<Proposal>, Unreadable> read_proposals_reply(const std::string& text) {
  return read_object<std::vector<Proposal>>(text, [](const Json& j) {
    std::vector<Proposal> all;
    for (const Json& p : j.at("proposals"))
      all.push_back({.name = p.at("name").get<std::string>(),
                     .nodes = p.at("nodes").get<std::vector<std::string>>(),
                     .rationale = p.value("rationale", "")});
    return all;
  });
}

}  // namespace tessera::agent
