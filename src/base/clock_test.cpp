#include "base/clock.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Clock, TextsOrderAsTimesDo) {
  EXPECT_EQ(now_utc().size(), std::string("2026-01-01T00:00:00Z").size());
  EXPECT_LT(utc_before(1), utc_before(0.5));
  EXPECT_LT(utc_before(0.5), now_utc());
  EXPECT_LT("2026-01-01T00:00:00Z", now_utc());
  EXPECT_EQ(utc_before(1e12), "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace tessera
