// Words of the kernel language's text, which is Python's: names, numbers, strings, operators, and
// the line ends and indentations that structure it. Comments and blank lines are no words; inside
// brackets neither are line ends.
#pragma once

#include <string>
#include <vector>

#include "diag/result.h"
#include "diag/source.h"

namespace tessera::syntax {

inline constexpr Code bad_syntax{"TS0801", "language.syntax"};
inline constexpr Code bad_indentation{"TS0802", "language.indentation"};
inline constexpr Code bad_literal{"TS0803", "language.literal"};
inline constexpr Code not_in_language{"TS0804", "language.not_in_language"};

enum class Word : uint8_t {
  name,
  keyword,  // a word that Python reserves
  integer,
  floating,
  string,
  symbol,  // an operator or a bracket
  newline,
  indent,
  dedent,
  end,
};

struct Token {
  Word word = Word::end;
  Span span;
  std::string text;  // as written; of a string, what it says
};

/// The words of a text, `end` last. The first word that is none is the error.
Result<std::vector<Token>> tokens(const Source& source);

/// For messages: "`x`", "the end of the line".
std::string to_string(const Token& t);

}  // namespace tessera::syntax
