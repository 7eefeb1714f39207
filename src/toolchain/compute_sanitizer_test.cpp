#include "toolchain/compute_sanitizer.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "toolchain/machine.h"

namespace tessera::toolchain {
namespace {

// As compute-sanitizer 2025.3 writes, with what the program prints between.
constexpr const char* read_beyond = R"(========= COMPUTE-SANITIZER
tensor 0 at 0x7f568e800000
tensor 1 at 0x7f568e802000
========= Invalid __global__ read of size 4 bytes
=========     at beyond(const float *, float *, int)+0xc0 in source.cu:3
=========     by thread (231,0,0) in block (3,0,0)
=========     Access to 0x7f568e800fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f568e800000 of size 4,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: tessera_run [0x8d2a] in kernel.so
=========
refused: unspecified launch failure
========= Target application returned an error
========= ERROR SUMMARY: 1 error
)";

constexpr const char* race = R"(========= COMPUTE-SANITIZER
tensor 0 at 0x7faf70c00000
========= Error: Race reported between Write access at racing(const float *, float *, int)+0xe0 in source.cu:4
=========     and Read access at racing(const float *, float *, int)+0xf0 in source.cu:4 [1024 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
)";

TEST(ComputeSanitizer, AnAccessBesideATensorIsSaidWithTheTensorAndTheLine) {
  const auto found = finding_in(read_beyond);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, "Invalid __global__ read of size 4 bytes, 1 bytes after tensor 0");
  EXPECT_EQ(found->file, "source.cu");
  EXPECT_EQ(found->line, 3);
}

TEST(ComputeSanitizer, ARaceIsSaidWithTheLineOfItsFirstAccess) {
  const auto found = finding_in(race);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text,
            "Race reported between Write access at racing(const float *, float *, int)+0xe0 in "
            "source.cu:4");
  EXPECT_EQ(found->line, 4);
}

TEST(ComputeSanitizer, WhatIsNoFindingIsNone) {
  EXPECT_FALSE(
      finding_in("========= COMPUTE-SANITIZER\nrefused: out of memory\n"
                 "========= Target application returned an error\n"
                 "========= ERROR SUMMARY: 0 errors\n"));
}

/// The tool, replaced by a script that knows only race conditions.
constexpr const char* stand_in = R"(#!/bin/sh
test -x "${11}" || exit 1
echo "$2" >>tools
case "$2" in racecheck) printf '%s\n' "$REPORT"; exit 86;; esac
)";

TEST(ComputeSanitizer, EachToolIsAskedUntilOneFinds) {
  Toolchain tools = locate("");
  if (tools.nvcc.empty()) GTEST_SKIP() << "there is no nvcc to build the program with";
  if (beside_nvcc(tools, "compute-sanitizer")) GTEST_SKIP() << "the tool itself is there";
  tools.own_include = std::filesystem::path(source_folder()) / "include";
  const TemporaryFolder folder("tessera-stand-in");
  const std::filesystem::path script = folder.path() / "compute-sanitizer";
  write_file_atomically(script, stand_in);
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  ::setenv("REPORT", race, 1);
  const Sanitized out =
      compute_sanitize(tools, "kernel.so", {{.bytes = 16, .element = std::string("\1\2", 2)}}, {3},
                       std::chrono::seconds(100));
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(out.ran) << out.why;
  EXPECT_FALSE(out.clean);
  EXPECT_EQ(out.finding.substr(0, 24), "racecheck: Race reported");
  EXPECT_EQ(out.file, "source.cu");
  EXPECT_EQ(out.line, 4);
}

TEST(ComputeSanitizer, WithoutTheToolItSaysWhy) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const Sanitized out = compute_sanitize({}, "kernel.so", {}, {}, std::chrono::seconds(1));
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(out.ran);
  EXPECT_NE(out.why.find("no compute-sanitizer"), std::string::npos);
}

}  // namespace
}  // namespace tessera::toolchain
