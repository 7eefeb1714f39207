#include "base/processors.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

#include "base/files.h"

namespace tessera {
namespace {
namespace fs = std::filesystem;

/// A tree of control groups: files by their places.
class Groups : public ::testing::Test {
 protected:
  void write(const fs::path& place, const std::string& text) {
    fs::create_directories((mount_.path() / place).parent_path());
    std::ofstream(mount_.path() / place) << text;
  }

  [[nodiscard]] double quota(const std::string& membership) const {
    return quota_of_groups(membership, mount_.path());
  }

 private:
  TemporaryFolder mount_;
};

TEST_F(Groups, TheLeastQuotaOnTheWayUpCounts) {
  write("cpu.max", "max 100000\n");
  write("jobs/cpu.max", "450000 100000\n");
  write("jobs/mine/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota("0::/jobs/mine\n"), 4.5);
  EXPECT_EQ(quota("0::/jobs/other/deep\n"), 4.5);
  EXPECT_EQ(quota("0::/elsewhere\n"), 0);
}

TEST_F(Groups, AContainerSeesItsOwnAsTheRoot) {
  write("cpu.max", "200000 100000\n");
  EXPECT_EQ(quota("0::/system.slice/docker-0123.scope\n"), 2);
  EXPECT_EQ(quota("0::/\n"), 2);
}

TEST_F(Groups, OfTheFirstVersionTheControllerOfProcessorsIsAsked) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("cpuset/job/cpu.cfs_quota_us", "10000\n");
  write("cpuset/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:cpuset:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/job\n"), 1.5);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/job\n"), 0);
}

TEST_F(Groups, WhatIsNoMembershipHasNoQuota) {
  for (const char* text : {"", "\n", "0", "0:", "cpu:/job", "::"})
    EXPECT_EQ(quota(text), 0) << text;
}

TEST(Processors, AreThoseOfTheAffinityMask) {
  const std::vector<int> all = allowed_processors();
  ASSERT_FALSE(all.empty());
  EXPECT_LE(processors(), static_cast<int>(all.size()));
  // A mask is a thread's own: that of the other tests stays.
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.back()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_processors(), std::vector<int>{all.back()});
    EXPECT_EQ(processors(), 1);
  }).join();
}

}  // namespace
}  // namespace tessera
