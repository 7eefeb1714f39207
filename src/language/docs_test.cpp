// The examples of docs/language.md are kernels.
#include <gtest/gtest.h>
#include <regex>

#include "base/files.h"
#include "base/source_folder.h"

#include "language/language.h"

namespace tessera::language {
namespace {

TEST(LanguageDocs, ExamplesAreElaborated) {
  const std::string page = read_file(source_folder() + "/docs/language.md");
  const std::regex name("@kernel[^\n]*\ndef (\\w+)");
  const std::string begin = "```py\n";
  int examples = 0;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t from = at + begin.size();
    const std::string text = page.substr(from, page.find("```", from) - from);
    std::smatch kernel;
    ASSERT_TRUE(std::regex_search(text, kernel, name)) << text;
    const Result<core::Kernel> k = elaborate({"docs/language.md", text}, kernel[1].str());
    EXPECT_TRUE(k) << to_text(k.error());
    ++examples;
  }
  EXPECT_GE(examples, 5);
}

}  // namespace
}  // namespace tessera::language
