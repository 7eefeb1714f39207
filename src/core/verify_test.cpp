// What the verifier refuses of a kernel, word for word; and that it refuses nothing of a right one.
#include "core/verify.h"

#include <gtest/gtest.h>

#include "core/builder.h"
#include "core/parse.h"
#include "core/print.h"
#include "core/testing/gemm.h"

namespace tessera::core {
namespace {

std::vector<Diagnostic> verified(const Kernel& k) {
  return verify(k, **arch::find("sm_90a"));
}

std::string told(const Diagnostic& d) {
  std::string out = d.code + ": " + d.message;
  if (!d.expected.empty()) out += " | expected " + d.expected;
  if (!d.found.empty()) out += " | found " + d.found;
  for (const std::string& n : d.notes) out += " | " + n;
  for (const std::string& h : d.helps) out += " | help: " + h;
  return out;
}

std::string all(const std::vector<Diagnostic>& found) {
  std::string out;
  for (const Diagnostic& d : found) out += to_text(d) + "\n";
  return out;
}

TEST(CoreVerify, ProductsAreRight) {
  for (const testing::GemmShape& s :
       {testing::GemmShape{},
        {.bm = 64, .bn = 64, .stages = 2},
        {.bm = 128, .bn = 128, .stages = 3, .band = 1},
        {.bm = 192, .bn = 192, .stages = 2, .element = DType::float16}}) {
    const Result<Kernel> k = testing::gemm(s);
    ASSERT_TRUE(k) << to_text(k.error());
    const auto found = verified(*k);
    EXPECT_TRUE(found.empty()) << all(found);
  }
}

}  // namespace
}  // namespace tessera::core
