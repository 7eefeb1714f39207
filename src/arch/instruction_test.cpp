// What every record must satisfy, whatever its instruction.
#include "arch/instruction.h"

#include <gmock/gmock.h>
#include <set>

#include "arch/arch.h"
#include "base/text.h"

namespace tessera::arch {
namespace {

using ::testing::HasSubstr;

std::vector<const Form*> forms() {
  std::vector<const Form*> out;
  for (const Family* family : instructions::all())
    for (const Form& form : family->forms()) out.push_back(&form);
  return out;
}

TEST(Instruction, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Form* f : forms()) {
    EXPECT_TRUE(names.insert(f->name).second) << f->name;
    EXPECT_EQ(find_form(f->name), f);
    EXPECT_FALSE(f->doc.empty()) << f->name;
  }
  EXPECT_EQ(find_form("wgmma.f32.bf16.f16.ss"), nullptr);
  EXPECT_GT(names.size(), 150u);
}

TEST(Instruction, HopperHasAllOfThem) {
  const Arch& hopper = **find("sm_90a");
  const Arch& ampere = **find("sm_80");
  int less = 0;
  for (const Form* f : forms()) {
    EXPECT_TRUE(hopper.has(f->capability)) << f->name;
    less += ampere.has(f->capability) ? 0 : 1;
  }
  EXPECT_GT(less, 0);
}

// Effects speak of operands and modifiers that the form has.
TEST(Instruction, EffectsNameOperands) {
  for (const Form* f : forms()) {
    const auto known = [&](std::string_view name) {
      return name.empty() || f->operand(name) != nullptr;
    };
    const auto amount = [&](const Amount& a) {
      return a.of == Amount::Of::modifier ? f->modifier(a.name) != nullptr : known(a.name);
    };
    for (const Access& a : f->effects.accesses)
      EXPECT_TRUE(!a.operand.empty() && known(a.operand) && known(a.blocks) &&
                  known(a.unless_zero) && amount(a.bytes) && amount(a.lanes))
          << f->name << ": " << to_string(a);
    for (const Event& e : f->effects.events)
      EXPECT_TRUE(known(e.operand) && known(e.blocks) && known(e.block) && amount(e.amount))
          << f->name << ": " << to_string(e);
    for (const Need& n : f->effects.needs)
      EXPECT_TRUE(f->operand(n.operand) != nullptr) << f->name << ": " << to_string(n);
  }
}

// The text uses every operand and every modifier, and nothing else.
TEST(Instruction, TextNamesOperands) {
  for (const Form* f : forms()) {
    for (const Operand& o : f->operands)
      EXPECT_THAT(f->ptx, HasSubstr("$" + std::string(o.name))) << f->name;
    for (const Modifier& m : f->modifiers)
      EXPECT_THAT(f->ptx, HasSubstr("<" + std::string(m.name) + ">")) << f->name;
    for (const Choices& c : combinations(*f)) {
      const auto r = render(*f, c);
      ASSERT_TRUE(r) << to_text(r.error());
      EXPECT_EQ(r->text.find('$'), std::string::npos) << f->name;
      EXPECT_EQ(r->text.find('<'), std::string::npos) << f->name;
      bool reads = false;
      for (const Slot& s : r->slots) {
        const bool read = f->operands[s.operand].direction == Direction::in;
        EXPECT_TRUE(read || !reads) << f->name << ": results come first";
        reads = read;
      }
    }
  }
}

// What completes later says how: by a group that another instruction awaits, or by an event of its
// own at an mbarrier.
TEST(Instruction, EveryCompletionIsAwaitedBySomeInstruction) {
  std::set<EventKind> awaited;
  for (const Form* f : forms())
    for (const Event& e : f->effects.events)
      if (e.verb == Verb::awaits) awaited.insert(e.kind);
  const auto event_of = [](Completion c) {
    switch (c) {
      case Completion::cp_async_group:
        return EventKind::cp_async_group;
      case Completion::bulk_group_read:
        return EventKind::bulk_group_read;
      case Completion::bulk_group:
        return EventKind::bulk_group;
      case Completion::wgmma_group:
        return EventKind::wgmma_group;
      default:
        return EventKind::phase;
    }
  };
  for (const Form* f : forms())
    for (const Access& a : f->effects.accesses) {
      if (a.until == Completion::at_once) continue;
      EXPECT_TRUE(awaited.contains(event_of(a.until))) << f->name;
      bool counted = a.until != Completion::barrier_bytes;
      for (const Event& e : f->effects.events) counted = counted || e.kind == EventKind::bytes;
      EXPECT_TRUE(counted) << f->name;
    }
}

// Memory that the async proxy touches was last touched by the generic one as far as a record knows.
TEST(Instruction, AsyncAccessesOfSharedMemoryNeedTheProxyFence) {
  for (const Form* f : forms())
    for (const Access& a : f->effects.accesses) {
      if (a.proxy != Proxy::async || a.space == Space::global) continue;
      bool needs = false;
      for (const Need& n : f->effects.needs)
        needs = needs || (n.fence == FenceKind::async_proxy && n.operand == a.operand);
      EXPECT_TRUE(needs) << f->name << " of " << a.operand;
    }
}

// A need is met by the fence of some instruction.
TEST(Instruction, EveryNeedHasAFence) {
  std::set<FenceKind> there;
  for (const Form* f : forms())
    for (const Fence& fence : f->effects.fences) there.insert(fence.kind);
  for (const Form* f : forms())
    for (const Need& n : f->effects.needs)
      EXPECT_TRUE(there.contains(n.fence)) << f->name << ": " << to_string(n);
}

TEST(Instruction, RangesAreThoseOfTheArchitecture) {
  const Limits& limits = (*find("sm_90a"))->limits;
  const Operand& id = *find_form("barrier.sync")->operand("id");
  EXPECT_EQ(id.high, limits.named_barriers - 1);
  EXPECT_EQ(find_form("barrier.sync")->operand("threads")->high, limits.threads_per_block);
  EXPECT_EQ(find_form("mbarrier.init")->operand("count")->high, limits.mbarrier_count);
  EXPECT_EQ(find_form("mbarrier.arrive_expect_tx")->operand("bytes")->high, limits.mbarrier_bytes);
  const Operand& registers = *find_form("setmaxnreg.inc")->operand("registers");
  EXPECT_EQ(registers.low, limits.least_registers);
  EXPECT_EQ(registers.high, limits.most_registers);
  EXPECT_EQ(registers.step, limits.register_step);
  EXPECT_EQ(find_form("mbarrier.arrive_at")->operand("rank")->high,
            limits.cluster_blocks_opted_in - 1);
}

TEST(Instruction, ChoicesAreChecked) {
  const Form& f = *find_form("ldmatrix");
  EXPECT_TRUE(check(f, {{"matrices", "2"}}));
  const Status wrong = check(f, {{"matrices", "3"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, "TS0450");
  EXPECT_EQ(wrong.error().expected, "one of: 1, 2, 4");
  EXPECT_FALSE(check(f, {}));
  EXPECT_FALSE(check(f, {{"matrices", "2"}, {"n", "8"}}));
}

}  // namespace
}  // namespace tessera::arch
