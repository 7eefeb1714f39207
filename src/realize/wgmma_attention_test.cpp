// Attention on Hopper in plain CUDA C++: its configurations and their limits, the integers of its
// launches, what it refuses, and instances that compile.
#include <bit>
#include <functional>
#include <gmock/gmock.h>
#include <map>
#include <set>

#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/attention.h"

namespace tessera::realize {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using Ints = std::vector<int64_t>;

Result<Space> space_of(const rules::Pattern& pattern, std::string_view arch = "sm_90a") {
  for (const Realizer* r : all()) {
    if (r->name == "wgmma_attention")
      return r->realize(pattern, graph::Graph{}, **arch::find(arch));
  }
  return error(fail(Code{"TS0900", "test"}, "no realizer wgmma_attention"));
}

constexpr const char* llama = R"({"rule":"attention","heads":32,"kv_heads":8,"queries":2048,
                                  "head_dim":128,"causal":true})";

/// The problem, with these keys instead of its own.
rules::Pattern attention(const char* problem, const Json& instead = Json::object()) {
  Json j = parse_json(problem);
  j.update(instead);
  return testing::pattern_of(j);
}

/// Llama's attention with a changed body.
rules::Pattern changed(const std::function<void(rules::AttentionBody&)>& change) {
  rules::Pattern p = attention(llama);
  auto body =
      std::make_shared<rules::AttentionBody>(dynamic_cast<const rules::AttentionBody&>(*p.body));
  change(*body);
  p.body = body;
  return p;
}

/// What says why there is no candidate; empty when there are some.
std::string refusal(const rules::Pattern& pattern, std::string_view arch = "sm_90a") {
  const auto s = space_of(pattern, arch);
  return s ? "" : to_text(s.error());
}

/// The integers of a launch by the names that its source describes.
std::map<std::string, int64_t> named(const Candidate& c, const Launch& launch) {
  const std::string& text = c.source->text;
  const std::size_t begin = text.find("R\"J(") + 4;
  const Json names = parse_json(text.substr(begin, text.find(")J\"", begin) - begin)).at("ints");
  EXPECT_EQ(names.size(), launch.ints.size());
  std::map<std::string, int64_t> out;
  for (std::size_t i = 0; i < std::min(names.size(), launch.ints.size()); ++i)
    out.emplace(names[i], launch.ints[i]);
  return out;
}

/// tensor, offset, batch, head and row stride of the view at this place of the launch.
Ints view_of(const Launch& launch, int place) {
  const auto first = launch.ints.begin() + std::ptrdiff_t{5} * place;
  return {first, first + 5};
}

constexpr int scores_and_powers(int keys) {
  return keys / 2 + keys / 4;  // 64 rows over 128 threads, in 32 and in 16 bits
}

/// What a configuration has at least in shared memory.
int64_t shared_bytes(const Candidate& c, int64_t head_dim, int64_t value_dim, bool result) {
  const int64_t queries = c.config["block_queries"], keys = c.config["block_keys"];
  const int64_t key_stages = c.config["stages"][0], value_stages = c.config["stages"][1];
  return 2 * (queries * (head_dim + (result ? value_dim : 0)) +
              keys * (key_stages * head_dim + value_stages * value_dim));
}

const Candidate& with(const Space& s, int queries, int keys, bool lazy = false) {
  for (const Candidate& c : s.candidates)
    if (c.config["block_queries"] == queries && c.config["block_keys"] == keys &&
        c.config["lazy"] == lazy)
      return c;
  ADD_FAILURE() << "no tile of " << queries << " x " << keys;
  return s.candidates.front();
}

TEST(WgmmaAttention, BandsComeWithTheLaunch) {
  const auto s = space_of(attention(llama, {{"causal", false}, {"band", {-255, 0}}}));
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& best = s->candidates.front();
  EXPECT_THAT(best.source->text, HasSubstr("causal = false, band = true"));
  const auto ints = named(best, best.launches.front());
  EXPECT_EQ(std::pair(ints.at("lower"), ints.at("upper")), std::pair(int64_t{-255}, int64_t{0}));
  EXPECT_EQ(best.unread, std::vector<int>{4}) << "the mask";
  // Another band is the same kernel, and a wider one takes longer.
  const auto other = space_of(attention(llama, {{"causal", false}, {"band", {-1023, 0}}}));
  ASSERT_TRUE(other);
  const int queries = best.config["block_queries"], keys = best.config["block_keys"];
  const Candidate& wider = with(*other, queries, keys);
  EXPECT_EQ(wider.source->text, with(*s, queries, keys).source->text);
  EXPECT_GT(wider.predicted_ms, 2 * best.predicted_ms);
  // A bound that cuts nothing.
  const auto open = changed([](rules::AttentionBody& b) {
    b.causal = false;
    b.mask = b.q;
    b.band = rules::Band{std::nullopt, 5};
  });
  const auto without = space_of(open);
  ASSERT_TRUE(without);
  const auto far = named(without->candidates.front(), without->candidates.front().launches.front());
  EXPECT_LT(far.at("lower"), -int64_t{2048});
  EXPECT_EQ(far.at("upper"), 5);
}

TEST(WgmmaAttention, BuildsWithoutCutlass) {
  const auto s = space_of(attention(llama));
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    EXPECT_FALSE(c.source->cutlass);
    EXPECT_THAT(c.source->text, HasSubstr("#define TESSERA_SIDES_APART 1"));
    EXPECT_THAT(c.source->text, Not(HasSubstr("cutlass")));
    EXPECT_EQ(c.workspace_bytes, 0);
  }
}

TEST(WgmmaAttention, CandidatesOfLlamaKeepTheLimits) {
  const auto s = space_of(attention(llama));
  ASSERT_TRUE(s) << to_text(s.error());
  ASSERT_GE(s->candidates.size(), 2U);
  EXPECT_LE(s->candidates.size(), 16U);
  std::set<std::string> configs, texts;
  for (const Candidate& c : s->candidates) {
    SCOPED_TRACE(c.config.dump());
    configs.insert(c.config.dump());
    texts.insert(c.source->text);
    const int queries = c.config["block_queries"], keys = c.config["block_keys"];
    EXPECT_TRUE(c.config["turns"].is_boolean());
    EXPECT_EQ(c.config["stages"], Json({2, 2}));
    EXPECT_TRUE(queries == 128 || queries == 192);
    EXPECT_EQ(keys % 16, 0);
    // What setmaxnreg leaves a thread of two or of three multiplying warpgroups.
    EXPECT_LT(scores_and_powers(keys) + 128 / 2, queries == 128 ? 240 : 160);
    EXPECT_LE(shared_bytes(c, 128, 128, false), 227 * 1024);
    EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
    EXPECT_GT(c.predicted_ms, 0);
  }
  EXPECT_EQ(configs.size(), s->candidates.size());
  EXPECT_EQ(texts.size(), s->candidates.size());
  EXPECT_TRUE(std::is_sorted(
      s->candidates.begin(), s->candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.predicted_ms < b.predicted_ms; }));
}

TEST(WgmmaAttention, TheSourceNamesTheInstanceOfItsConfiguration) {
  const auto s = space_of(attention(
      llama, {{"head_dim", 72}, {"value_dim", 40}, {"causal", false}, {"dtype", "float16"}}));
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    const auto& g = c.config;
    const int keys = g["block_keys"];
    EXPECT_THAT(c.source->text,
                HasSubstr(fmt::format("depth = 80, width = 48, queries = {}, keys = {};",
                                      int(g["block_queries"]), keys)));
    EXPECT_THAT(c.source->text, HasSubstr("key_stages = 2, value_stages = 2;"));
    EXPECT_THAT(c.source->text,
                HasSubstr(fmt::format("causal = false, band = false, capped = false, turns = {}, "
                                      "lazy = {}, bfloat16 = false;",
                                      bool(g["turns"]), bool(g["lazy"]))));
    // Scores of all keys of a block, sums of all columns of the values.
    EXPECT_THAT(c.source->text, HasSubstr(fmt::format("m64n{}k16.f32.f16.f16", keys)));
    EXPECT_THAT(c.source->text, HasSubstr("m64n48k16.f32.f16.f16"));
  }
}

TEST(WgmmaAttention, WideHeadsArePrunedByBothLimits) {
  const auto s = space_of(attention(llama, {{"head_dim", 256}}));
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_THAT(s->pruned, Contains(Key("registers")));
  EXPECT_THAT(s->pruned, Contains(Key("shared memory")));
  ASSERT_FALSE(s->candidates.empty());
  for (const Candidate& c : s->candidates) {
    SCOPED_TRACE(c.config.dump());
    const int queries = c.config["block_queries"], keys = c.config["block_keys"];
    EXPECT_LT(scores_and_powers(keys) + 256 / 2, queries == 128 ? 240 : 160);
    EXPECT_LE(shared_bytes(c, 256, 256, false), 227 * 1024);
    // One stage of values only where two have no room.
    EXPECT_EQ(c.config["stages"], Json({2, keys <= 80 ? 2 : 1}));
  }
  with(*s, 128, 80);
  with(*s, 128, 96);
}

// In the room of the queries, where there is no other, a warpgroup's result would reach into what
// another warpgroup reads, were its rows shorter or longer.
TEST(WgmmaAttention, ResultsOfAnotherWidthThanTheQueriesHaveRoomOfTheirOwn) {
  for (const auto& [head_dim, value_dim] : {std::pair{256, 128}, {64, 256}}) {
    const auto s = space_of(attention(llama, {{"head_dim", head_dim}, {"value_dim", value_dim}}));
    ASSERT_TRUE(s) << to_text(s.error());
    ASSERT_FALSE(s->candidates.empty());
    for (const Candidate& c : s->candidates) {
      SCOPED_TRACE(c.config.dump());
      EXPECT_LE(shared_bytes(c, head_dim, value_dim, true), 227 * 1024) << head_dim;
    }
  }
}

TEST(WgmmaAttention, LaunchesDifferInHowManyHeadsAreWorkedOnAtOnce) {
  const auto s = space_of(attention(llama, {{"batch", 4}}));
  ASSERT_TRUE(s) << to_text(s.error());
  const auto& launches = s->candidates.front().launches;
  ASSERT_GE(launches.size(), 2U);
  std::set<int64_t> sections;
  for (const Launch& l : launches) {
    const int64_t section = l.knobs["section"];
    sections.insert(section);
    EXPECT_GE(section, 1);
    EXPECT_LE(section, 4 * 32);
    // Query heads that share keys stay together.
    EXPECT_EQ(section % (32 / 8), 0);
    ASSERT_FALSE(l.ints.empty());
    EXPECT_EQ(l.ints.back(), section);
    EXPECT_EQ(Ints(l.ints.begin(), l.ints.end() - 1),
              Ints(launches[0].ints.begin(), launches[0].ints.end() - 1));
  }
  EXPECT_EQ(sections.size(), launches.size());
  EXPECT_THAT(sections, Contains(4 * 32));
}

// Keys and values that fit no cache: the heads that share them are the least that is worked on.
TEST(WgmmaAttention, TheSmallestSectionIsTheHeadsThatShareKeys) {
  const auto s = space_of(attention(llama, {{"batch", 2}, {"queries", 1 << 18}}));
  ASSERT_TRUE(s) << to_text(s.error());
  int64_t smallest = int64_t{2} * 32;
  for (const Launch& l : s->candidates.front().launches)
    smallest = std::min(smallest, l.ints.back());
  EXPECT_EQ(smallest, 32 / 8);
}

TEST(WgmmaAttention, IntsSayTheExtentsAndTheScale) {
  const auto s = space_of(attention(llama, {{"batch", 3}, {"keys", 512}, {"value_dim", 64}}));
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  auto ints = named(c, c.launches.front());
  EXPECT_EQ(ints["batch"], 3);
  EXPECT_EQ(ints["heads"], 32);
  EXPECT_EQ(ints["kv_heads"], 8);
  EXPECT_EQ(ints["queries"], 2048);
  EXPECT_EQ(ints["keys"], 512);
  EXPECT_EQ(ints["head_dim"], 128);
  EXPECT_EQ(ints["value_dim"], 64);
  EXPECT_FLOAT_EQ(std::bit_cast<float>(static_cast<int32_t>(ints["scale"])), 0.08838834764F);
  EXPECT_EQ(ints["q_tensor"], 0);
  EXPECT_EQ(ints["o_tensor"], 3);
  EXPECT_EQ(ints["v_row_stride"], 64);
  EXPECT_EQ(ints["o_batch_stride"], 32 * 2048 * 64);
}

TEST(WgmmaAttention, IntsCarryTheStridesOfHeadsInsideRows) {
  const auto s = space_of(attention(llama, {{"batch", 3}, {"keys", 512}, {"layout", "blhd"}}));
  ASSERT_TRUE(s) << to_text(s.error());
  const Launch& l = s->candidates.front().launches.front();
  EXPECT_THAT(view_of(l, 0), ElementsAre(0, 0, 2048 * 4096, 128, 4096));
  EXPECT_THAT(view_of(l, 1), ElementsAre(1, 0, 512 * 1024, 128, 1024));
  EXPECT_THAT(view_of(l, 2), ElementsAre(2, 0, 512 * 1024, 128, 1024));
  EXPECT_THAT(view_of(l, 3), ElementsAre(3, 0, 2048 * 4096, 128, 4096));
}

// One projection of all heads leaves queries, keys and values in the same rows.
TEST(WgmmaAttention, IntsCarryTheOffsetsInsideOneTensor) {
  const auto s = space_of(changed([](rules::AttentionBody& b) {
    constexpr int64_t dim = 128, row = (32 + 2 * 8) * dim;
    b.q.tensor = b.k.tensor = b.v.tensor = 0;
    b.output.tensor = 1;
    b.q.strides = b.k.strides = b.v.strides = {2048 * row, dim, row, 1};
    b.k.offset = 32 * dim;
    b.v.offset = (32 + 8) * dim;
  }));
  ASSERT_TRUE(s) << to_text(s.error());
  const Launch& l = s->candidates.front().launches.front();
  // The batch has one entry.
  EXPECT_THAT(view_of(l, 0), ElementsAre(0, 0, 8, 128, 6144));
  EXPECT_THAT(view_of(l, 1), ElementsAre(0, 4096, 8, 128, 6144));
  EXPECT_THAT(view_of(l, 2), ElementsAre(0, 5120, 8, 128, 6144));
  EXPECT_EQ(view_of(l, 3).front(), 1);
}

// TMA refuses a stride that is 0 or no multiple of 16 bytes, though nothing is a stride away.
TEST(WgmmaAttention, AnExtentOfOneHasAStrideThatTmaHolds) {
  const auto one = R"({"rule":"attention","heads":1,"queries":1,"head_dim":64})";
  rules::Pattern p = attention(one);
  auto body =
      std::make_shared<rules::AttentionBody>(dynamic_cast<const rules::AttentionBody&>(*p.body));
  for (rules::TensorView* v : {&body->q, &body->k, &body->v, &body->output})
    v->strides = {0, 3, 0, 1};
  p.body = body;
  const auto s = space_of(p);
  ASSERT_TRUE(s) << to_text(s.error());
  for (int place = 0; place < 4; ++place) {
    const Ints view = view_of(s->candidates.front().launches.front(), place);
    for (int d = 2; d < 5; ++d) {
      EXPECT_GT(view[d], 0) << place;
      EXPECT_EQ(view[d] % 8, 0) << place;
    }
  }
}

TEST(WgmmaAttention, SaysWhichTypesItTakes) {
  EXPECT_EQ(refusal(attention(llama)), "");
  EXPECT_EQ(refusal(attention(llama, {{"dtype", "float16"}})), "");
  const std::string text = refusal(attention(llama, {{"dtype", "float32"}}));
  EXPECT_THAT(text, HasSubstr("float32 among the tensors"));
  EXPECT_THAT(text, HasSubstr("bfloat16 or float16"));
  EXPECT_THAT(refusal(changed([](rules::AttentionBody& b) { b.output.dtype = DType::float16; })),
              HasSubstr("float16 among the tensors"));
}

TEST(WgmmaAttention, SaysThatItTakesNoMask) {
  const std::string text = refusal(changed([](rules::AttentionBody& b) {
    b.mask = b.q;
    b.mask->shape = {1, 32, 2048, 2048};
    b.mask->strides = {0, 0, 2048, 1};
  }));
  EXPECT_THAT(text, HasSubstr("[TS0447]: a mask tensor"));
  EXPECT_THAT(text, HasSubstr("causal or full attention"));
}

TEST(WgmmaAttention, SaysHowWideHeadsMayBe) {
  for (const char* dim : {"head_dim", "value_dim"}) {
    const std::string text = refusal(attention(llama, {{dim, 320}}));
    EXPECT_THAT(text, HasSubstr("320")) << dim;
    EXPECT_THAT(text, HasSubstr("at most 256")) << dim;
  }
}

TEST(WgmmaAttention, SaysWhatTmaCannotFollow) {
  const auto expect_refused = [](const char* what,
                                 const std::function<void(rules::AttentionBody&)>& change) {
    const std::string text = refusal(changed(change));
    EXPECT_THAT(text, HasSubstr("TMA cannot follow")) << what;
    EXPECT_THAT(text, HasSubstr("multiples of 16 bytes")) << what;
  };
  expect_refused("rows that are no multiple of 16 bytes apart",
                 [](rules::AttentionBody& b) { b.k.strides[2] = 132; });
  expect_refused("heads that are no multiple of 16 bytes apart",
                 [](rules::AttentionBody& b) { b.output.strides[1] = 2048 * 128 + 4; });
  expect_refused("an offset of 8 bytes", [](rules::AttentionBody& b) { b.v.offset = 4; });
  expect_refused("columns apart", [](rules::AttentionBody& b) { b.q.strides[3] = 8; });
  expect_refused("one head of keys for all", [](rules::AttentionBody& b) { b.k.strides[1] = 0; });
  expect_refused("rows backwards", [](rules::AttentionBody& b) { b.v.strides[2] = -128; });
  // The view that is meant.
  EXPECT_THAT(refusal(changed([](rules::AttentionBody& b) { b.k.strides[2] = 132; })),
              HasSubstr("132"));
}

TEST(WgmmaAttention, TakesPositiveScalesOnly) {
  for (const double scale : {0.0, -0.5}) {
    EXPECT_THAT(refusal(changed([&](rules::AttentionBody& b) { b.scale = scale; })),
                HasSubstr(fmt::format("scores scaled by {}", scale)));
  }
}

TEST(WgmmaAttention, NeedsHopper) {
  EXPECT_THAT(refusal(attention(llama), "sm_80"), HasSubstr("sm_80 has no wgmma and TMA"));
}

TEST(WgmmaAttention, HostSideCompilesApart) {
  const auto s = space_of(attention(llama, {{"head_dim", 64}}));
  ASSERT_TRUE(s) << to_text(s.error());
  testing::expect_host_side_compiles(*s->candidates.front().source);
}

// The widest tiles in registers of either number of warpgroups, each kind of swizzle, one stage of
// values.
TEST(WgmmaAttention, CompilesForHopperWithoutSpills) {
  const auto compiles = [](const Json& instead, int queries, int keys, bool lazy = false) {
    const auto s = space_of(attention(llama, instead));
    ASSERT_TRUE(s) << to_text(s.error());
    testing::expect_compiles(*with(*s, queries, keys, lazy).source);
  };
  compiles({{"head_dim", 128}}, 128, 192);
  compiles({{"head_dim", 128}, {"causal", false}}, 192, 80, true);
  compiles({{"head_dim", 256}}, 128, 80);
  compiles({{"head_dim", 256}}, 128, 96, true);
  compiles({{"head_dim", 96}}, 128, 128, true);
  compiles({{"causal", false}, {"band", {-255, 0}}}, 128, 128);
  compiles({{"softcap", 50.0}}, 128, 128, true);
  compiles({{"head_dim", 72}, {"value_dim", 40}, {"dtype", "float16"}}, 128, 160);
}

}  // namespace
}  // namespace tessera::realize
