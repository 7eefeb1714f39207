// NVIDIA's assembler takes the text of every form: each is rendered with all values of its
// modifiers and the ends of its immediates' ranges into PTX for sm_90a. Of wgmma, two kinds have
// all widths and the others three.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "arch/arch.h"
#include "arch/instruction.h"
#include "arch/testing/compilers.h"
#include "base/files.h"
#include "base/text.h"

namespace tessera::arch {
namespace {

struct Register {
  std::string type, name;
};

Register of(OperandKind k) {
  switch (k) {
    case OperandKind::shared:
    case OperandKind::cluster_shared:
    case OperandKind::b32:
      return {"b32", "r"};
    case OperandKind::b16:
      return {"b16", "h"};
    case OperandKind::f32:
      return {"f32", "f"};
    case OperandKind::global:
    case OperandKind::tensor_map:
    case OperandKind::descriptor:
    case OperandKind::b64:
      return {"b64", "d"};
    case OperandKind::immediate:
      break;
  }
  return {};
}

enum class End { low, high };

/// The form's text with registers in the place of %0, %1, ...; immediates at one end of their
/// range.
std::string with_registers(const Form& form, const Rendered& r, End end) {
  std::string text = r.text;
  for (std::size_t i = r.slots.size(); i-- > 0;) {
    const Operand& o = form.operands[r.slots[i].operand];
    const std::string value = o.kind == OperandKind::immediate
                                  ? std::to_string(end == End::low ? o.low : o.high)
                                  : fmt::format("@{}{}", of(o.kind).name, i);
    text = replace_all(text, fmt::format("%{}", i), value);
  }
  return replace_all(text, "@", "%");
}

/// Guards are written with an @ of their own.
std::string guarded(const Form& form, const Rendered& r, End end) {
  Rendered copy = r;
  copy.text = replace_all(copy.text, "@", "\x01");
  return replace_all(with_registers(form, copy, end), "\x01", "@");
}

/// A kernel of one instruction, whose results are stored so that none is dropped.
std::string kernel(int number, const Form& form, const Rendered& r, End end) {
  std::string s = fmt::format(".visible .entry k{}(.param .b64 out) {{\n", number);
  for (std::size_t i = 0; i < r.slots.size(); ++i) {
    const Operand& o = form.operands[r.slots[i].operand];
    if (o.kind == OperandKind::immediate) continue;
    s += fmt::format(".reg .{} %{}{};\n", of(o.kind).type, of(o.kind).name, i);
    const std::string zero = o.kind == OperandKind::f32 ? "0f00000000" : "0";
    s += fmt::format("mov.{} %{}{}, {};\n", of(o.kind).type, of(o.kind).name, i, zero);
  }
  return s + guarded(form, r, end) + "\nret;\n}\n";
}

bool has_immediate(const Form& form) {
  for (const Operand& o : form.operands)
    if (o.kind == OperandKind::immediate) return true;
  return false;
}

/// All of them, but for most kinds of wgmma, which would take ten times as long.
std::vector<Choices> sampled(const Form& form) {
  std::vector<Choices> all = combinations(form);
  if (!form.name.starts_with("wgmma.") || all.size() == 1 ||
      form.name == "wgmma.f32.bf16.bf16.rs" || form.name == "wgmma.s32.s8.u8.ss")
    return all;
  return {all.front(), all[all.size() / 2], all.back()};
}

/// What the assembler says against it; empty when it takes it.
std::string assembled(const std::string& ptx) {
  const TemporaryFolder folder("ptxas");
  write_file_atomically(folder.path() / "k.ptx", ptx);
  const Finished f =
      run({.argv = {(testing::cuda_root() / "bin/ptxas").string(), "-arch=sm_90a", "-O0",
                    (folder.path() / "k.ptx").string(), "-o", (folder.path() / "k.cubin").string()},
           .folder = {},
           .env = {}},
          std::chrono::minutes(5));
  return f.ok() ? "" : f.output.substr(0, 4000) + (f.output.empty() ? "no output" : "");
}

const std::string head = ".version 8.7\n.target sm_90a\n.address_size 64\n";

TEST(Ptxas, TakesTheTextOfEveryForm) {
  if (testing::cuda_root().empty()) GTEST_SKIP() << "no ptxas";
  std::string ptx = head;
  int count = 0;
  for (const Family* family : instructions::all())
    for (const Form& form : family->forms())
      for (const Choices& choices : sampled(form)) {
        const auto r = render(form, choices);
        ASSERT_TRUE(r) << to_text(r.error());
        ptx += fmt::format("// {}\n", form.name) + kernel(count++, form, *r, End::low);
        if (has_immediate(form)) ptx += kernel(count++, form, *r, End::high);
      }
  EXPECT_GT(count, 500);
  EXPECT_EQ(assembled(ptx), "");
}

TEST(Ptxas, RefusesWhatIsNoInstruction) {
  if (testing::cuda_root().empty()) GTEST_SKIP() << "no ptxas";
  Form integers = *find_form("wgmma.s32.s8.s8.ss");
  integers.modifiers.front().values = {"40"};
  const auto r = render(integers, {{"n", "40"}});
  ASSERT_TRUE(r);
  EXPECT_NE(assembled(head + kernel(0, integers, *r, End::low)), "");
}

}  // namespace
}  // namespace tessera::arch
