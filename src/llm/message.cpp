#include "llm/message.h"

#include <array>
#include <stdexcept>

#include "base/hash.h"

namespace tessera::llm {
namespace {

constexpr std::array<std::string_view, 3> endings = {"whole", "length", "refusal"};

}  // namespace

std::string_view name_of(Ending ending) {
  return endings.at(static_cast<std::size_t>(ending));
}

std::string Request::hash() const {
  return content_hash(system + '\0' + view);
}

Json to_json(const Reply& r) {
  return {{"text", r.text},           {"ending", name_of(r.ending)}, {"input", r.usage.input},
          {"output", r.usage.output}, {"exact", r.usage.exact},      {"seconds", r.seconds},
          {"attempts", r.attempts}};
}

Reply reply_from_json(const Json& j) {
  Reply r{.text = j.at("text")};
  const std::string ending = j.at("ending");
  std::size_t at = 0;
  while (at < endings.size() && endings[at] != ending) ++at;
  if (at == endings.size()) throw std::invalid_argument("a reply cannot end by " + ending);
  r.ending = static_cast<Ending>(at);
  r.usage = {.input = j.at("input"), .output = j.at("output"), .exact = j.at("exact")};
  r.seconds = j.at("seconds");
  r.attempts = j.at("attempts");
  return r;
}

int64_t estimated_tokens(std::string_view text) {
  constexpr int64_t bytes_a_token = 3;
  return (static_cast<int64_t>(text.size()) + bytes_a_token - 1) / bytes_a_token;
}

}  // namespace tessera::llm
