// An elected lane and the others of its warp are threads of their own until they meet.
#include <gtest/gtest.h>

#include "check/runs.h"
#include "core/builder.h"

namespace tessera::check {
namespace {

using core::Builder;
using core::Integers;
using core::SharedAt;
using core::Slice;

/// The kind that is refuted first; "": proved.
std::string refuted(const std::function<void(Builder&, core::SharedId, core::RegistersId)>& body) {
  Builder b("lanes", 32);
  b.kernel().grid = b.number(1);
  const core::SharedId s = b.shared("s", DType::float32, Layout(64, 1));
  const core::RegistersId v = b.registers("v", DType::float32, {32}, Layout(32, 1));
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_operand(0)};
  b.compute({dag, {b.at().lane}, {core::Run{v, b.number(0), Layout(1, 1)}}, 1, {}});
  body(b, s, v);
  const Result<core::Kernel> k = b.finish();
  if (!k) throw std::logic_error(to_text(k.error()));
  const Runs r = run(*k);
  return !r.violations.empty() ? std::string(r.violations.front().kind) : r.proved ? "" : r.why_not;
}
void store(Builder& b, core::SharedId s, core::RegistersId v, Term at) {
  b.issue("store.shared.4", {SharedAt{s, {at}}, Slice{v, b.number(0)}});
}
void load(Builder& b, core::SharedId s, core::RegistersId v, Term at) {
  b.issue("load.shared.4", {Slice{v, b.number(0)}, SharedAt{s, {at}}});
}
void meet(Builder& b) {
  b.issue("barrier.sync", {Integers{{b.number(0)}}, Integers{{b.number(32)}}});
}

TEST(CheckLanes, WhatAnElectedLaneWroteIsReadAfterTheLanesMeet) {
  const auto kernel = [](bool meets) {
    return [meets](Builder& b, core::SharedId s, core::RegistersId v) {
      b.elected([&] { store(b, s, v, b.number(0)); });
      if (meets) meet(b);
      load(b, s, v, b.number(0));
    };
  };
  EXPECT_EQ(refuted(kernel(true)), "");
  EXPECT_EQ(refuted(kernel(false)), "race_shared");
}

TEST(CheckLanes, AnElectedPartBeginsWhereAllLanesMeet) {
  EXPECT_EQ(refuted([](Builder& b, core::SharedId s, core::RegistersId v) {
              store(b, s, v, b.at().lane);
              b.elected([&] { load(b, s, v, b.number(5)); });
            }),
            "");
}

TEST(CheckLanes, EachLanesOwnBytesAreInItsOrder) {
  const auto kernel = [](int64_t first) {
    return [first](Builder& b, core::SharedId s, core::RegistersId v) {
      b.elected([&] { store(b, s, v, b.number(63)); });
      // The elected lane may come later than the others, or before them.
      store(b, s, v, b.at().lane);
      load(b, s, v, floor_mod(b.at().lane + first, 32));
    };
  };
  EXPECT_EQ(refuted(kernel(0)), "");
  EXPECT_EQ(refuted(kernel(1)), "race_shared");
}

}  // namespace
}  // namespace tessera::check
