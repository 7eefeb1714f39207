#include "arch/arch.h"

#include <gtest/gtest.h>
#include <set>

namespace tessera::arch {
namespace {

TEST(Arch, FindsByName) {
  auto hopper = find("sm_90a");
  ASSERT_TRUE(hopper);
  EXPECT_EQ((*hopper)->device, "cuda");
  EXPECT_TRUE((*hopper)->has("wgmma"));
  EXPECT_FALSE((*hopper)->has("simd"));
  EXPECT_EQ((*hopper)->shared_memory_per_block, 227 * 1024);
  auto ampere = find("sm_80");
  ASSERT_TRUE(ampere);
  EXPECT_FALSE((*ampere)->has("tma"));
  EXPECT_TRUE((*hopper)->has("programmatic_launch"));
  EXPECT_FALSE((*ampere)->has("programmatic_launch"));
}

TEST(Arch, UnknownNameListsWhatThereIs) {
  auto none = find("sm_90");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, "TS0020");
  EXPECT_NE(none.error().expected.find("sm_90a"), std::string::npos);
  EXPECT_NE(none.error().expected.find("host"), std::string::npos);
  EXPECT_EQ(exit_code(none.error()), Exit::bad_input);
}

TEST(Arch, DataThatTheCacheKeepsComeFaster) {
  auto host = find("host");
  auto hopper = find("sm_90a");
  ASSERT_TRUE(host && hopper);
  const auto rate = [](const Arch* a, double bytes) {
    return a->bandwidth_of(bytes, a->achievable_bandwidth_gbs);
  };
  const auto cache = static_cast<double>((*host)->l2_bytes);
  EXPECT_GT(rate(*host, cache), (*host)->achievable_bandwidth_gbs);
  EXPECT_EQ(rate(*host, cache + 1), (*host)->achievable_bandwidth_gbs);
  // Timed calls on a GPU find its cache empty.
  EXPECT_EQ(rate(*hopper, 1024), (*hopper)->achievable_bandwidth_gbs);
}

TEST(Arch, ResourcesAreSaidInWords) {
  static constexpr int64_t caches[] = {48 * 1024, 2 * 1024 * 1024};
  static constexpr std::string_view abilities[] = {"host", "fma", "avx2", "simd"};
  Arch small = **find("host");
  small.multiprocessors = 8;
  small.vector_bytes = 32;
  small.core_caches = caches;
  small.l2_bytes = 30 << 20;
  small.capabilities = abilities;
  EXPECT_EQ(resources_of(small),
            "8 threads, vectors of 32 bytes (fma, avx2), caches of 48 KiB and 2 MiB a core, 30 MiB "
            "in all");
  EXPECT_EQ(resources_of(**find("sm_90a")),
            "132 multiprocessors, each with 227 KiB of shared memory for a block and 65536 "
            "registers (255 for a thread), an L2 cache of 60 MiB");
}

TEST(Arch, RatesArePositiveAndNamesUnique) {
  std::set<std::string_view> names;
  for (const Arch* a : all()) {
    EXPECT_TRUE(names.insert(a->name).second);
    for (Precision p :
         {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8})
      EXPECT_GT(a->peak_tflops(p), 0) << a->name;
    EXPECT_GT(a->achievable_bandwidth_gbs, 0);
    EXPECT_LE(a->achievable_bandwidth_gbs, a->bandwidth_gbs);
    EXPECT_GE(a->multiprocessors, 1);
    EXPECT_GT(a->vector_bytes, 0);
  }
  EXPECT_TRUE(names.contains("host"));
}

}  // namespace
}  // namespace tessera::arch
