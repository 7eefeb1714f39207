// Texts with a piece changed at random: each is refused with a diagnostic at a place, or is a
// kernel whose text comes back, and whose verification ends.
#include <cctype>
#include <gtest/gtest.h>
#include <random>

#include "base/thorough.h"

#include "core/parse.h"
#include "core/print.h"
#include "core/testing/gemm.h"
#include "core/testing/same.h"
#include "core/verify.h"

namespace tessera::core {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// Runs of letters and digits, and single other characters; white space stays where it is.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (in_word(text[i]))
      while (end < text.size() && in_word(text[end])) ++end;
    out.push_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

std::string changed(std::vector<std::string> all, std::mt19937& random) {
  static const std::vector<std::string> other = {
      "0",    "1",    "-1", "3",    "1048576", "9223372036854775807",
      "lane", "warp", "k",  "None", "True",    "x0",
      "(",    ")",    "[",  ",",    "=",       "*",
      "//",   "%",    "<",  "\"",   ":",       "",
      "\n"};
  const auto any = [&] {
    std::size_t i = random() % all.size();
    while (all[i] == " ") i = random() % all.size();
    return i;
  };
  const std::size_t at = any();
  if (random() % 2 == 0)
    all[at] = all[any()];
  else
    all[at] = other[random() % other.size()];
  std::string out;
  for (const std::string& w : all) out += w;
  return out;
}

TEST(CoreMutation, EveryTextIsRefusedOrAKernel) {
  std::mt19937 random(7);
  const Result<Kernel> gemm = testing::gemm({.bm = 64, .bn = 64, .stages = 2});
  ASSERT_TRUE(gemm) << to_text(gemm.error());
  const std::vector<std::string> all = words(to_string(*gemm));
  const int count = thorough() ? 3000 : 100;
  int refused = 0, wrong = 0, right = 0;
  for (int i = 0; i < count; ++i) {
    const std::string text = changed(all, random);
    const Result<Kernel> k = parse("k.py", text);
    if (!k) {
      ++refused;
      ASSERT_FALSE(k.error().message.empty()) << text;
      ASSERT_FALSE(k.error().labels.empty()) << to_text(k.error()) << text;
      continue;
    }
    const Result<Kernel> again = parse("k.py", to_string(*k));
    ASSERT_TRUE(again) << to_text(again.error()) << text;
    ASSERT_TRUE(testing::same(*k, *again)) << text;
    const auto found = verify(*k, **arch::find("sm_90a"));
    ++(found.empty() ? right : wrong);
    for (const Diagnostic& d : found) ASSERT_FALSE(d.message.empty() || d.labels.empty()) << text;
  }
  EXPECT_GT(refused, count / 5);
  EXPECT_GT(wrong, count / 60);
  EXPECT_GT(right, count / 60);
}

}  // namespace
}  // namespace tessera::core
