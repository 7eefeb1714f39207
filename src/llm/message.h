// What is sent to a language model and what comes back: one request a turn, which says all that the
// model is told, and its reply with what it cost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace tessera::llm {

struct Request {
  std::string system;      // the prompt: what is asked for, and in which form
  std::string view;        // the state, of this turn
  int64_t max_tokens = 0;  // of the reply
  /// Of what the model reads; the same request has the same name in every run.
  [[nodiscard]] std::string hash() const;
};

struct Usage {
  int64_t input = 0;   // tokens
  int64_t output = 0;  // tokens
  bool exact = true;   // false where some of it was not told and is estimated
};

enum class Ending : uint8_t { whole, length, refusal };
std::string_view name_of(Ending ending);

struct Reply {
  std::string text;
  Ending ending = Ending::whole;
  Usage usage;         // attempts that broke off included
  double seconds = 0;  // waits between attempts included
  int attempts = 1;
};

Json to_json(const Reply& reply);
/// The inverse. Throws Json::exception where a field is missing or of another type,
/// std::invalid_argument for an ending that is none of ours.
Reply reply_from_json(const Json& j);

/// Tokens of a text, estimated from above: a token for every three bytes. Vocabularies differ, and
/// text with code has 3.2 to 4.2 bytes a token in those that are public.
int64_t estimated_tokens(std::string_view text);

}  // namespace tessera::llm
