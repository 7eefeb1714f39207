// The examples of docs/layouts.md are what the code answers.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/text.h"
#include "layout/layout.h"

namespace tessera {
namespace {

std::string answer(const std::string& op, const std::string& first, const std::string& second) {
  const Layout a = parse_layout(first).value();
  if (op == "coalesce") return to_string(coalesce(a));
  if (op == "is_injective") return is_injective(a) ? "yes" : "no";
  if (op != "compose") return "no such operation";
  const Result<Layout> r = compose(a, parse_layout(second).value());
  return r ? to_string(*r) : "refused";
}

TEST(Docs, ExamplesAreWhatTheCodeAnswers) {
  bool code = false;
  int examples = 0;
  for (const std::string& line : split(read_file(source_folder() + "/docs/layouts.md"), '\n')) {
    if (line.starts_with("```")) {
      code = !code;
      continue;
    }
    if (!code) continue;
    const std::size_t open = line.find('(');
    const std::size_t close = line.find(") = ");
    ASSERT_NE(close, std::string::npos) << line;
    const std::string arguments = line.substr(open + 1, close - open - 1);
    // A comma and a space part arguments; within a layout there are no spaces.
    const std::size_t comma = arguments.find(", ");
    const std::string second = comma == std::string::npos ? "" : arguments.substr(comma + 2);
    EXPECT_EQ(answer(line.substr(0, open), arguments.substr(0, comma), second),
              line.substr(close + 4))
        << line;
    ++examples;
  }
  EXPECT_GE(examples, 6);
}

}  // namespace
}  // namespace tessera
