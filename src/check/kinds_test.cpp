// Each kind with a good example, which is the correct product, and a bad one that it refutes; and
// the table of docs/checker.md.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

#include "base/source_folder.h"

#include "check/check.h"
#include "check/kind.h"
#include "core/builder.h"
#include "core/parse.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"
#include "core/testing/mutate_cluster.h"

namespace tessera::check {
namespace {

core::Kernel good() {
  return *core::testing::gemm({.bn = 128, .stages = 2, .early = true, .tagged = true});
}

Means product() {
  return **means_of(good());
}

core::Kernel mutant(const std::string& name, int site) {
  static const std::vector<core::testing::Mutant> all = core::testing::mutants(good());
  for (const core::testing::Mutant& m : all)
    if (m.name == name && m.site == site) return m.kernel;
  ADD_FAILURE() << "no mutant " << name << " " << site;
  return good();
}

/// Every loop over `counter` ends one turn early, in all roles.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void shorten(core::Body& body, const std::string& counter) {
  for (core::Op& op : body) {
    if (auto* loop = std::get_if<core::For>(&op.node)) {
      if (loop->counter->symbol->name == counter) loop->upper = loop->upper - 1;
      shorten(loop->body, counter);
    }
    if (auto* branch = std::get_if<core::If>(&op.node)) shorten(branch->body, counter);
    if (auto* elected = std::get_if<core::Elected>(&op.node)) shorten(elected->body, counter);
    if (auto* role = std::get_if<core::Role>(&op.node)) shorten(role->body, counter);
  }
}

/// Attention of one tile a block, as the core's text, with one edit.
core::Kernel attention(const std::string& from = "", const std::string& to = "") {
  std::ifstream file(source_folder() + "/src/check/testdata/attention.txt");
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  if (!from.empty()) {
    const std::size_t at = all.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    all.replace(at, from.size(), to);
  }
  Result<core::Kernel> k = core::parse("attention", all);
  EXPECT_TRUE(k) << to_text(k.error());
  return k ? std::move(*k) : good();
}

core::Kernel without_cluster_arrive() {
  for (core::testing::Mutant& m :
       core::testing::cluster_mutants(*core::testing::gemm({.bn = 128, .stages = 2, .cluster = 2})))
    if (m.name == "drop_cluster_arrive") return std::move(m.kernel);
  ADD_FAILURE() << "no cluster.arrive";
  return good();
}

core::Kernel bad(std::string_view kind) {
  static const std::map<std::string_view, std::pair<std::string, int>> edits = {
      {"arrivals", {"duplicate_arrive", 1}},   {"async_registers", {"drop_fence", 1}},
      {"barrier_init", {"drop_fence", 0}},     {"deadlock", {"drop_arrive", 0}},
      {"exit_order", {"drop_wait", 6}},        {"initialized", {"always_accumulate", 0}},
      {"k_agreement", {"next_k", 0}},          {"named_barriers", {"threads_less", 1}},
      {"phase_window", {"next_slot", 0}},      {"placement", {"moved_store", 0}},
      {"proxy_fence", {"drop_fence", 2}},      {"race_shared", {"drop_wait", 2}},
      {"reduction", {"drop_accumulate", 1}},   {"uniformity", {"all_lanes", 5}},
      {"early_access", {"late_grid_wait", 0}},
  };
  if (const auto edit = edits.find(kind); edit != edits.end())
    return mutant(edit->second.first, edit->second.second);
  // The softmax of attention: a mask, a factor, the greatest score, rows without keys.
  if (kind == "mask") return attention("% 2)) + TK - TQ < ", "% 2)) + TK - TQ <= ");
  if (kind == "rescale") return attention("add(mul(x0, x1), x2)", "add(mul(x0, mul(x1, x1)), x2)");
  if (kind == "dominance")
    return attention("most[0, \"2:1\"], values[", "values[0, \"2:1\"], values[");
  if (kind == "degenerate")
    return attention("where(eq(x0, -inf), 0, mul(x0, 0.25503486164919736))",
                     "mul(x0, 0.25503486164919736)");
  core::Kernel k = good();
  if (kind == "cluster_barrier") k = without_cluster_arrive();
  if (kind == "output_once") shorten(k.body, "turn");
  if (kind == "bounds") k.barriers[0].count = 1;
  if (kind == "alignment") k.shared[0].at += 128;
  if (kind == "resources") k.min_blocks = 2;
  if (kind == "tags")
    std::erase_if(k.body, [](const core::Op& op) { return op.as<core::Tag>() != nullptr; });
  return k;
}

/// Codes never change meaning: by kind, what its refutation says.
const std::map<std::string_view, std::string_view> codes = {
    {"deadlock", "TS0860"},        {"phase_window", "TS0861"}, {"arrivals", "TS0862"},
    {"race_shared", "TS0863"},     {"initialized", "TS0864"},  {"proxy_fence", "TS0865"},
    {"async_registers", "TS0866"}, {"uniformity", "TS0867"},   {"barrier_init", "TS0868"},
    {"named_barriers", "TS0869"},  {"exit_order", "TS0870"},   {"bounds", "TS0871"},
    {"cluster_barrier", "TS0872"}, {"k_agreement", "TS0873"},  {"placement", "TS0874"},
    {"reduction", "TS0875"},       {"output_once", "TS0876"},  {"alignment", "TS0877"},
    {"resources", "TS0879"},       {"mask", "TS0882"},         {"rescale", "TS0883"},
    {"dominance", "TS0884"},       {"degenerate", "TS0885"},   {"tags", "TS0886"},
    {"early_access", "TS0889"},
};

TEST(CheckKinds, ProveAttention) {
  const core::Kernel k = attention();
  const Report r = check(k, {}, *means_of(k));
  EXPECT_EQ(r.verdict(), Verdict::proved) << to_text(r);
}

TEST(CheckKinds, ProveTheGoodAndRefuteTheBad) {
  const Report right = check(good(), {}, product());
  ASSERT_EQ(right.findings.size(), kinds::all().size());
  for (const Kind* k : kinds::all()) {
    EXPECT_EQ(right.find(k->name)->verdict, Verdict::proved) << k->name << "\n" << to_text(right);
    const core::Kernel with_fault = bad(k->name);
    const Report wrong = check(with_fault, {}, *means_of(with_fault));
    const Finding* f = wrong.find(k->name);
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(f->verdict, Verdict::refuted) << k->name << "\n" << to_text(wrong);
    ASSERT_FALSE(f->diagnostics.empty()) << k->name;
    const Diagnostic& d = f->diagnostics.front();
    EXPECT_EQ(d.code, codes.at(k->name));
    for (const std::string& text : {d.message, d.expected, d.found}) EXPECT_NE(text, "") << k->name;
    EXPECT_FALSE(d.helps.empty());
    EXPECT_EQ(d.data["kind"], std::string(k->name));
  }
}

/// Where the wait for the grids before stands, and what that is worth to accesses behind it.
TEST(CheckKinds, AWaitForGridsCountsForItsOwnThread) {
  const auto verdict = [](const std::function<void(core::Builder&)>& waits, bool in_role) {
    core::Builder b("k", 64);
    const core::TensorId c =
        b.tensor({"C", DType::float32, {b.number(64)}, {b.number(1)}, core::Access::output});
    const core::RegistersId v = b.registers("v", DType::float32, {32}, Layout(32, 1));
    const auto store = [&] {
      b.issue("store.global.4", {core::GlobalAt{c, {b.at().lane}}, core::Slice{v, b.number(0)}});
    };
    if (!in_role) waits(b);
    b.role("first", 0, 1, [&](Term) {
      if (in_role) waits(b);
    });
    b.role("second", 1, 1, [&](Term) { store(); });
    const Result<core::Kernel> k = b.finish();
    EXPECT_TRUE(k) << to_text(k.error());
    return check(*k).find("early_access")->verdict;
  };
  const auto wait = [](core::Builder& b) { b.issue("grid.wait"); };
  EXPECT_EQ(verdict([](core::Builder&) {}, false), Verdict::proved) << "it does not start early";
  EXPECT_EQ(verdict(wait, false), Verdict::proved);
  EXPECT_EQ(verdict(wait, true), Verdict::refuted) << "another role's";
  const auto sometimes = [&](core::Builder& b) {
    b.when(less(b.at().block, b.number(1)), [&] { wait(b); });
  };
  EXPECT_EQ(verdict(sometimes, false), Verdict::unknown);
  const auto always = [&](core::Builder& b) {
    b.when(less(b.at().block, b.number(1)), [&] { wait(b); }, [&] { wait(b); });
  };
  EXPECT_EQ(verdict(always, false), Verdict::proved);
}

TEST(CheckKinds, HaveNumbersAndNamesOfTheirOwn) {
  std::map<int, std::string_view> numbers;
  for (const Kind* k : kinds::all()) {
    EXPECT_TRUE(numbers.emplace(k->number, k->name).second) << k->name;
    EXPECT_TRUE(k->law.ends_with(".")) << k->name;
  }
}

TEST(CheckKinds, AreThoseOfTheDocument) {
  std::vector<const Kind*> all(kinds::all().begin(), kinds::all().end());
  std::sort(all.begin(), all.end(),
            [](const Kind* a, const Kind* b) { return a->number < b->number; });
  std::string table = "| number | kind | code | law |\n|---|---|---|---|\n";
  for (const Kind* k : all)
    table += fmt::format("| {} | `{}` | {} | {} |\n", k->number, k->name, k->code.id, k->law);
  std::ifstream file(source_folder() + "/docs/checker.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(table), std::string::npos)
      << "docs/checker.md has to have this table:\n"
      << table;
}

TEST(CheckKinds, CoverageSaysWhatWasNeverExecuted) {
  core::Kernel k = good();
  const Report whole = check(k);
  EXPECT_EQ(whole.coverage.reached, whole.coverage.all());
  EXPECT_EQ(whole.coverage.products, 4);
  EXPECT_EQ(whole.coverage.loads, 2);
  EXPECT_EQ(whole.coverage.stores, 2);
  for (core::Op& op : k.body)
    if (auto* role = std::get_if<core::Role>(&op.node); role != nullptr && role->name == "consumer")
      for (core::Op& in : role->body)
        if (auto* branch = std::get_if<core::If>(&in.node))
          branch->condition = k.pool->truth(false);
  const Report less = check(k);
  EXPECT_EQ(less.coverage.reached, less.coverage.all() - 1);
}

TEST(CheckKinds, WhatIsNotModelledIsUnsupportedAndNeverProved) {
  core::Kernel k = good();
  core::Issue ends{arch::find_form("mbarrier.inval"), {}, {}, {}};
  ends.arguments = {core::BarrierAt{core::BarriersId(0), k.pool->constant(0)}};
  k.body.push_back({ends, {}});
  const Report r = check(k, {}, product());
  EXPECT_EQ(r.verdict(), Verdict::unsupported);
  EXPECT_EQ(r.find("deadlock")->reason, "`mbarrier.inval`: it is not modelled");
  for (const Finding& f : r.findings) {
    const bool by_text =
        std::set<std::string_view>{"alignment", "resources", "early_access"}.contains(f.kind->name);
    EXPECT_TRUE(by_text || f.verdict != Verdict::proved) << f.kind->name;
  }
}

TEST(CheckKinds, ARingByEqualTermsIsProved) {
  // count - S * (count // S) in place of count % S.
  core::Kernel k = good();
  std::function<void(core::Body&)> rewrite = [&](core::Body& body) {
    for (core::Op& op : body) {
      if (auto* issue = std::get_if<core::Issue>(&op.node))
        for (core::Argument& a : issue->arguments)
          if (auto* b = std::get_if<core::BarrierAt>(&a);
              b != nullptr && b->slot->op == term::Op::remainder) {
            const term::Term count = b->slot->args[0];
            b->slot = count - term::floor_div(count, 2) * 2;
          }
      if (auto* loop = std::get_if<core::For>(&op.node)) rewrite(loop->body);
      if (auto* branch = std::get_if<core::If>(&op.node)) rewrite(branch->body);
      if (auto* elected = std::get_if<core::Elected>(&op.node)) rewrite(elected->body);
      if (auto* role = std::get_if<core::Role>(&op.node)) rewrite(role->body);
    }
  };
  rewrite(k.body);
  EXPECT_EQ(check(k, {}, product()).verdict(), Verdict::proved);
}

}  // namespace
}  // namespace tessera::check
