// The examples of docs/core.md are what they say: right, or refused by the code beside them.
#include <algorithm>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/text.h"

#include "core/parse.h"
#include "core/print.h"
#include "core/verify.h"

namespace tessera::core {
namespace {

std::vector<Diagnostic> findings(const std::string& text) {
  const Result<Kernel> k = parse("core.md", text);
  if (!k) return {k.error()};
  return verify(*k, **arch::find("sm_90a"));
}

std::string all(const std::vector<Diagnostic>& found) {
  std::string out;
  for (const Diagnostic& d : found) out += to_text(d) + "\n";
  return out;
}

/// The fenced blocks of the page.
std::vector<std::string> blocks() {
  std::vector<std::string> out;
  bool code = false;
  for (const std::string& line : split(read_file(source_folder() + "/docs/core.md"), '\n')) {
    if (line.starts_with("```")) {
      code = !code;
      if (code) out.emplace_back();
    } else if (code) {
      out.back() += line + "\n";
    }
  }
  return out;
}

/// Examples within a block are parted by empty lines.
std::vector<std::string> examples(const std::string& block) {
  std::vector<std::string> out(1);
  for (const std::string& line : split(block, '\n')) {
    if (line.empty() && !out.back().empty()) out.emplace_back();
    if (!line.empty()) out.back() += line + "\n";
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

/// The lines at the end of the kernel, as deep as they belong.
std::string inserted(const std::string& kernel, const std::string& lines) {
  const auto holds = [&](std::string_view word) { return lines.find(word) != std::string::npos; };
  const bool storage = holds(" = shared(") || holds(" = barriers(") || holds(" = tensor_map(") ||
                       holds("tag(x[") || holds("tag(y[");
  std::string out = kernel;
  for (const std::string& line : split(trim(lines), '\n'))
    out += std::string(storage ? 4 : 8, ' ') + line + "\n";
  return out;
}

TEST(CoreDocs, ExamplesAreWhatTheySay) {
  const std::vector<std::string> page = blocks();
  ASSERT_FALSE(page.empty());
  const std::string kernel = page.front();
  const Result<Kernel> k = parse("core.md", kernel);
  ASSERT_TRUE(k) << to_text(k.error());
  EXPECT_EQ(to_string(*k), kernel) << "the page shows the printed form";
  EXPECT_TRUE(findings(kernel).empty()) << all(findings(kernel));
  int right = 0, refused = 0;
  for (std::size_t b = 1; b < page.size(); ++b)
    for (const std::string& example : examples(page[b])) {
      const auto found = findings(inserted(kernel, example));
      const std::size_t comment = example.find("  # TS");
      if (comment == std::string::npos) {
        ++right;
        EXPECT_TRUE(found.empty()) << example << all(found);
        continue;
      }
      ++refused;
      const std::string code = example.substr(comment + 4, 6);
      EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                              [&](const Diagnostic& d) { return d.code == code; }))
          << example << all(found);
    }
  EXPECT_GE(right, 7);
  EXPECT_GE(refused, 20);
}

}  // namespace
}  // namespace tessera::core
