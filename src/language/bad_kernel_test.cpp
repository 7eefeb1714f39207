// Kernel files that are wrong: testdata/bad/<name>.py has kernel `k`, <name>.txt what is told of
// it.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "language/language.h"

namespace tessera::language {
namespace {

namespace fs = std::filesystem;

TEST(LanguageBadKernels, AreToldWordForWord) {
  const fs::path folder = fs::path(source_folder()) / "src/language/testdata/bad";
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".py") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    const Result<core::Kernel> k = elaborate({name, read_file(entry.path())}, "k");
    ASSERT_FALSE(k) << name;
    fs::path told = entry.path();
    EXPECT_EQ(to_text(k.error()), read_file(told.replace_extension(".txt"))) << name;
    EXPECT_FALSE(k.error().labels.empty()) << name;
    EXPECT_FALSE(k.error().expected.empty() || k.error().found.empty()) << name;
    EXPECT_FALSE(k.error().helps.empty()) << name;
  }
  EXPECT_GE(files, 20);
}

TEST(LanguageBadKernels, WhatIsNoPythonIsToldByTheParser) {
  const Source file("f.py", "@kernel\ndef k():\n    a = shared(bf16, , [64])\n");
  const Result<core::Kernel> k = elaborate(file, "k");
  ASSERT_FALSE(k);
  EXPECT_EQ(k.error().code, "TS0801");
}

TEST(LanguageBadKernels, ConstantsThatDoNotExistAreTold) {
  const Source file("f.py",
                    "from tessera.language import *\n@kernel(threads=128)\ndef k(BM: const = 64):\n"
                    "    sync()\n");
  const Result<core::Kernel> none = elaborate(file, "k", {{{"BN", int64_t{64}}}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "kernel `k` has no constant `BN`");
  EXPECT_EQ(none.error().helps.front(), "did you mean `BM`?");
  const Result<core::Kernel> wrong = elaborate(file, "k", {{{"BM", std::string("rely")}}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, bad_constant.id);
  const Result<core::Kernel> missing = elaborate(file, "kk");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "`f.py` has no kernel `kk`");
  EXPECT_TRUE(elaborate(file, "k", {{{"BM", int64_t{32}}}}));
}

}  // namespace
}  // namespace tessera::language
