// Every instruction can be issued: with arguments as its operands say, in a kernel that is right
// and whose text comes back. Matrices and fragments are those of arch's own records, and no others.
#include <gtest/gtest.h>

#include "arch/wgmma.h"

#include "core/builder.h"
#include "core/parse.h"
#include "core/print.h"
#include "core/testing/same.h"
#include "core/verify.h"

namespace tessera::core {
namespace {

const arch::Arch& hopper() {
  return **arch::find("sm_90a");
}

std::string all(const std::vector<Diagnostic>& found) {
  std::string out;
  for (const Diagnostic& d : found) out += to_text(d) + "\n";
  return out;
}

/// A kernel with a storage of each kind, large enough for any operand.
struct Stage {
  Builder b{"stage", 128, 2};
  TensorId x;
  std::map<int, MapId> maps;  // by rank
  SharedId shared;
  BarriersId full;
  std::map<DType, RegistersId> registers;

  Stage() {
    std::vector<Term> extents, strides;
    for (int rank = 1; rank <= 5; ++rank) {
      extents.push_back(b.number(16));
      strides.assign(1, b.number(1));
      while (strides.size() < extents.size()) strides.insert(strides.begin(), strides[0] * 16);
      x = b.tensor({fmt::format("x{}", rank), DType::bfloat16, extents, strides, Access::output});
      std::vector<int> dims;
      for (int d = rank; d-- > 0;) dims.push_back(d);
      std::vector<int64_t> box(rank, 1);
      box[0] = 8;
      maps[rank] = b.map({fmt::format("map{}", rank), x, dims, box});
    }
    shared = b.shared("shared", DType::bfloat16, Layout(16384, 1));
    full = b.barriers("full", 1);
    b.kernel().grid = b.number(2);
  }

  RegistersId of(DType t) {
    if (const auto known = registers.find(t); known != registers.end()) return known->second;
    const Layout layout(IntTuple::flat({128, 16}), IntTuple::flat({1, 128}));
    return registers[t] = b.registers("r_" + std::string(short_name(t)), t, {128, 16}, layout);
  }

  Argument argument(const arch::Form& f, const arch::Operand& o, const arch::Choices& choices) {
    using arch::OperandKind;
    const int64_t count = value_of(o.registers, choices).value_or(1);
    const auto rank = value_of(arch::Amount::modifier("rank"), choices).value_or(1);
    switch (o.kind) {
      case OperandKind::shared:
      case OperandKind::cluster_shared:
        if (o.name == "barrier") return BarrierAt{full, b.number(0)};
        return SharedAt{shared, {b.number(0)}};
      case OperandKind::descriptor:
        return SharedAt{shared, {b.number(0)}};
      case OperandKind::global:
        return GlobalAt{x, std::vector<Term>(5, b.number(0))};
      case OperandKind::tensor_map:
        return MapRef{maps.at(static_cast<int>(rank))};
      case OperandKind::f32:
        return Slice{of(DType::float32), b.number(0)};
      default:
        break;
    }
    if (o.kind == OperandKind::immediate || o.direction == arch::Direction::in)
      return Integers{std::vector<Term>(count, b.number(o.low))};
    const bool byte = f.name.find(".1") != std::string::npos;
    return Slice{of(o.kind == OperandKind::b64   ? DType::int64
                    : o.kind == OperandKind::b16 ? (byte ? DType::uint8 : DType::bfloat16)
                                                 : DType::int32),
                 b.number(0)};
  }
};

/// Combinations of modifiers in which only values of the map's element matter.
bool is_taken(const arch::Form& f, const arch::Choices& choices) {
  if (!f.name.starts_with("tma.reduce")) return true;
  for (const auto& [name, value] : choices)
    if (name == "op" && value != "add" && value != "min" && value != "max") return false;
  return true;
}

TEST(CoreForms, EachCanBeIssued) {
  int issued = 0;
  for (const arch::Family* family : arch::instructions::all())
    for (const arch::Form& f : family->forms()) {
      // Products are below; setmaxnreg belongs into roles.
      if (!hopper().has(f.capability) || f.name.starts_with("wgmma.f") ||
          f.name.starts_with("wgmma.s") || f.name.starts_with("mma.") ||
          f.name.starts_with("setmaxnreg"))
        continue;
      for (const arch::Choices& choices : arch::combinations(f)) {
        if (!is_taken(f, choices)) continue;
        Stage stage;
        std::vector<Argument> arguments;
        for (const arch::Operand& o : f.operands)
          arguments.push_back(stage.argument(f, o, choices));
        const auto issue = [&] { stage.b.issue(f.name, arguments, choices); };
        if (f.effects.issuer == arch::Issuer::elected)
          stage.b.elected(issue);
        else
          issue();
        const Result<Kernel> k = stage.b.finish();
        ASSERT_TRUE(k) << to_text(k.error());
        const auto found = verify(*k, hopper());
        EXPECT_TRUE(found.empty()) << all(found);
        const Result<Kernel> read = parse("stage.py", to_string(*k));
        ASSERT_TRUE(read) << to_text(read.error());
        EXPECT_TRUE(testing::same(*k, *read)) << to_string(*k);
        ++issued;
      }
    }
  EXPECT_GT(issued, 120);
}

/// Registers of a fragment: the tile [rows, columns] that its own layout covers.
RegistersId fragment(Builder& b, const char* name, arch::Element e, int64_t rows, const Layout& l) {
  return b.registers(name, arch::storage_of(e), {rows, l.size() / rows}, l);
}

/// Findings of one wgmma whose operands in shared memory lie as `tile` says.
std::vector<Diagnostic> product(const arch::Wgmma& w, arch::Major major, arch::SwizzleMode swizzle,
                                const std::function<Layout(const Layout&)>& change) {
  Builder b("product", 128);
  const auto shared = [&](const char* name, arch::Element e, int64_t rows) {
    const arch::SharedTile atoms{e, major, swizzle};
    const int64_t depth = std::max(w.k(), atoms.atom_k()) * 2;
    const Layout l = arch::shared_tile(e, major, swizzle, rows, depth).value().layout();
    return b.shared(name, arch::storage_of(e), change(l), swizzle);
  };
  const auto number = [&](int64_t n) { return Integers{{b.number(n)}}; };
  const bool in_shared = w.a_from == arch::Feed::shared;
  const RegistersId d = fragment(b, "d", w.c, 64, w.c_layout());
  std::vector<Argument> arguments = {Slice{d, b.number(0)}};
  if (in_shared)
    arguments.emplace_back(SharedAt{shared("a", w.a, 128), {b.number(64), b.number(w.k())}});
  else
    arguments.emplace_back(Slice{fragment(b, "a", w.a, 64, w.a_layout()), b.number(0)});
  arguments.emplace_back(SharedAt{shared("b", w.b, 256), {b.number(128), b.number(0)}});
  arguments.emplace_back(number(1));
  for (std::size_t o = 4; o < w.form().operands.size(); ++o) {
    const bool transposes = w.form().operands[o].name.starts_with("transpose");
    arguments.emplace_back(number(transposes && major == arch::Major::k ? 0 : 1));
  }
  b.issue(w.form().name, arguments, w.choices());
  const Result<Kernel> k = b.finish();
  if (!k) return {k.error()};
  return verify(*k, hopper());
}

TEST(CoreForms, CanonicalMatricesAreTakenAndNoOthers) {
  const auto same = [](const Layout& l) { return l; };
  // Rows of an atom one after the other, as without a swizzle's atoms of 8.
  const auto apart = [](const Layout& l) {
    std::vector<int64_t> strides = flatten(l.mode(0).stride());
    const IntTuple rows = IntTuple::flat({strides[0] + 8, strides[1] + 64});
    return concat({Layout(l.mode(0).shape(), rows), l.mode(1)});
  };
  int taken = 0;
  for (arch::Wgmma w : arch::wgmma_kinds()) {
    w.n = 64;
    for (const arch::Major major : {arch::Major::k, arch::Major::mn})
      for (const arch::SwizzleMode swizzle :
           {arch::SwizzleMode::none, arch::SwizzleMode::bytes_32, arch::SwizzleMode::bytes_64,
            arch::SwizzleMode::bytes_128}) {
        if (major == arch::Major::mn && !w.may_transpose()) continue;
        const auto right = product(w, major, swizzle, same);
        EXPECT_TRUE(right.empty()) << name_of(swizzle) << " " << name_of(major) << all(right);
        const auto wrong = product(w, major, swizzle, apart);
        ASSERT_FALSE(wrong.empty()) << w.form().name << name_of(swizzle);
        EXPECT_EQ(wrong.front().code, bad_matrix.id) << all(wrong);
        ++taken;
      }
  }
  EXPECT_GT(taken, 100);
}

TEST(CoreForms, FragmentsOfWarpsAreTakenAndNoOthers) {
  for (const arch::MmaSync& m : arch::mma_sync_kinds())
    for (const bool right : {true, false}) {
      Builder b("product", 32);
      const auto slice = [&](const char* name, arch::Element e, int64_t rows, const Layout& l) {
        return Slice{fragment(b, name, e, rows, l), b.number(0)};
      };
      // Rows of B where columns of A are.
      const Layout a = right ? m.a_layout()
                             : concat({Layout(m.a_layout().mode(0).shape(), IntTuple::flat({1, 4})),
                                       m.a_layout().mode(1)});
      const Slice d = slice("d", m.c, 16, arch::MmaSync::c_layout());
      b.issue(m.form().name, {d, slice("a", m.a, 16, a), slice("b", m.b, 8, m.b_layout()), d});
      const Result<Kernel> k = b.finish();
      ASSERT_TRUE(k) << to_text(k.error());
      const auto found = verify(*k, hopper());
      EXPECT_EQ(found.empty(), right) << m.form().name << all(found);
      if (!right && !found.empty()) {
        EXPECT_EQ(found.front().code, bad_registers.id) << all(found);
      }
    }
}

}  // namespace
}  // namespace tessera::core
