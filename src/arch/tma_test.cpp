#include "arch/tma.h"

#include <gmock/gmock.h>

#include "arch/instruction.h"

namespace tessera::arch {
namespace {

using ::testing::HasSubstr;

TensorMap good() {
  return {.element = DType::bfloat16,
          .extents = {4096, 1000, 3},
          .strides = {8192, 8192000},
          .box = {64, 128, 1},
          .swizzle = SwizzleMode::bytes_128};
}

void expect_refused(const TensorMap& map, const std::string& message) {
  const Status s = check(map, 16);
  ASSERT_FALSE(s) << message;
  EXPECT_EQ(s.error().code, "TS0452");
  EXPECT_THAT(s.error().message, HasSubstr(message));
}

// The box counts whole, also where it leaves the tensor.
TEST(Tma, CountsTheBytesOfABox) {
  EXPECT_TRUE(check(good(), 16));
  EXPECT_EQ(good().box_bytes(), 64 * 128 * 2);
  EXPECT_EQ(good().shared_alignment(), 1024);
  EXPECT_EQ(good().box_layout().at({3, 2, 0}), 3 + 2 * 64);
}

TEST(Tma, RefusesWhatBreaksALimit) {
  TensorMap m = good();
  m.box[1] = 257;
  expect_refused(m, "dimension 1 of a box has 257");
  m = good();
  m.box[0] = 128;
  expect_refused(m, "256 bytes in swizzle 128B");
  m = good();
  m.box[0] = 4;
  expect_refused(m, "row of a box has 8 bytes");
  m = good();
  m.strides[0] = 8200;
  expect_refused(m, "dimension 1 has a stride of 8200");
  m = good();
  m.strides[1] = int64_t{1} << 40;
  expect_refused(m, "dimension 2 has a stride");
  m = good();
  m.extents[2] = 0;
  expect_refused(m, "dimension 2 has 0");
  m = good();
  m.strides.pop_back();
  expect_refused(m, "3 extents, 1 strides");
  m = good();
  m.element = DType::int32;
  m.box[0] = 32;
  m.fill = OutOfBounds::nan;
  expect_refused(m, "no NaN");
  EXPECT_FALSE(check(good(), 8));
}

// What a load signals and what it writes are the same bytes, at the same blocks.
TEST(Tma, SignalsTheBytesThatItWrites) {
  for (const char* name :
       {"tma.load", "tma.load_multicast", "tma.load.hint", "tma.load_multicast.hint", "bulk.load",
        "bulk.load_multicast", "bulk.to_block"}) {
    const Effects& e = find_form(name)->effects;
    ASSERT_EQ(e.events.size(), 1u) << name;
    EXPECT_EQ(e.events[0].kind, EventKind::bytes);
    EXPECT_EQ(e.events[0].when, When::with_accesses);
    bool writes = false;
    for (const Access& a : e.accesses)
      if (a.action == Action::write) {
        writes = true;
        EXPECT_EQ(a.bytes, e.events[0].amount) << name;
        EXPECT_EQ(a.blocks, e.events[0].blocks) << name;
        EXPECT_EQ(a.until, Completion::barrier_bytes) << name;
        EXPECT_EQ(a.proxy, Proxy::async) << name;
      }
    EXPECT_TRUE(writes) << name;
  }
}

// A store has two ends: shared memory may be written again before global memory has the bytes.
TEST(Tma, StoresEndTwice) {
  for (const Family* family : instructions::all())
    for (const Form& form : family->forms()) {
      if (!form.name.starts_with("tma.store") && !form.name.starts_with("tma.reduce") &&
          !form.name.starts_with("bulk.store") && !form.name.starts_with("bulk.reduce"))
        continue;
      std::set<Completion> ends;
      for (const Access& a : form.effects.accesses)
        if (a.until != Completion::at_once) ends.insert(a.until);
      EXPECT_EQ(ends, (std::set{Completion::bulk_group_read, Completion::bulk_group})) << form.name;
    }
}

TEST(Tma, RendersAMulticastLoad) {
  const auto r = render(*find_form("tma.load_multicast"), {{"rank", "3"}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->text,
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;");
  EXPECT_FALSE(render(*find_form("tma.load"), {{"rank", "6"}}));
}

}  // namespace
}  // namespace tessera::arch
