// docs/instructions.md is printed from the records: this test holds it to them.
//   TESSERA_UPDATE_PAGES=1 build/src/arch_test --gtest_filter='Page.*'    writes it
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "arch/arch.h"
#include "arch/instruction.h"
#include "arch/ldmatrix.h"
#include "arch/mma.h"
#include "arch/shared_tile.h"
#include "arch/tma.h"
#include "arch/wgmma.h"
#include "base/files.h"
#include "base/source_folder.h"
#include "base/text.h"

namespace tessera::arch {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string table(const std::vector<std::string>& header, const Rows& rows) {
  std::string s = "\n| " + join(header, " | ") + " |\n|";
  for (std::size_t i = 0; i < header.size(); ++i) s += "---|";
  s += "\n";
  for (const auto& row : rows) s += "| " + join(row, " | ") + " |\n";
  return s;
}

std::string code(const std::string& text) {
  return "`" + replace_all(replace_all(text, "|", "\\|"), "\n", " ") + "`";
}

std::string list(const std::vector<std::string>& values) {
  return values.size() > 8 ? fmt::format("{}, {}, ..., {}", values[0], values[1], values.back())
                           : join(values, ", ");
}

std::string phrases(const Effects& e) {
  return replace_all(to_string(e), "; ", ";<br>");
}

std::string range_of(const Operand& o) {
  if (o.high == 0 && o.low == 0) return "";
  const std::string step = o.step == 1 ? "" : fmt::format(" in steps of {}", o.step);
  return fmt::format("`${}` {} to {}{}", o.name, o.low, o.high, step);
}

/// What must hold of operands: alignments and ranges.
std::string conditions(const Form& f) {
  std::vector<std::string> out;
  for (const Modifier& m : f.modifiers)
    out.push_back(fmt::format("<{}>: {}", m.name, list(m.values)));
  for (const Operand& o : f.operands) {
    if (o.alignment > 1)
      out.push_back(fmt::format("`${}` aligned to {} bytes", o.name, o.alignment));
    if (const std::string r = range_of(o); !r.empty()) out.push_back(r);
  }
  return replace_all(join(out, "; "), "<", "\\<");
}

std::string forms_table(const std::vector<const Form*>& forms) {
  Rows rows;
  for (const Form* f : forms)
    rows.push_back({code(f->name), f->doc, code(f->ptx), conditions(*f), phrases(f->effects)});
  return table({"form", "does", "PTX", "operands", "effects"}, rows);
}

std::string types(Element c, Element a, Element b) {
  return fmt::format("{} | {} | {}", name_of(c), name_of(a), name_of(b));
}

/// One row a combination of types; what the forms of a row share besides is said below.
std::string wgmma_table() {
  std::map<std::string, std::vector<std::string>> forms;
  std::map<std::string, Wgmma> kinds;
  std::vector<std::string> order;
  for (const Wgmma& w : wgmma_kinds()) {
    const std::string key = types(w.c, w.a, w.b);
    if (!kinds.contains(key)) order.push_back(key);
    kinds.emplace(key, w);
    forms[key].push_back(code(w.form().name));
  }
  Rows rows;
  for (const std::string& key : order) {
    const Wgmma& w = kinds.at(key);
    std::vector<std::string> n;
    for (int64_t i : wgmma_widths(w.a)) n.push_back(std::to_string(i));
    rows.push_back({key, std::to_string(w.k()),
                    n.size() == 32 ? "8, 16, ..., 256" : "8, 16, 24, 32, 48, ..., 256",
                    fmt::format("n / {}", 2 * w.c_per_register()),
                    w.may_transpose() ? "A in shared memory, B" : "none",
                    join(forms[key], "<br>")});
  }
  return table({"D", "A", "B", "k", "n", "registers of D", "may be contiguous in m, n", "forms"},
               rows);
}

std::string mma_table() {
  std::map<std::string, std::vector<std::string>> forms;
  std::vector<std::string> order;
  for (const MmaSync& i : mma_sync_kinds()) {
    const std::string key = types(i.c, i.a, i.b);
    if (!forms.contains(key)) order.push_back(key);
    forms[key].push_back(code(i.form().name));
  }
  Rows rows;
  for (const std::string& key : order) rows.push_back({key, join(forms[key], "<br>")});
  return table({"D and C", "A", "B", "forms"}, rows);
}

std::string with_effects(const std::string& what, const Form& f) {
  return fmt::format("\n{} `{}`:\n\n* PTX: {}\n* effects: {}\n", what, f.name, code(f.ptx),
                     to_string(f.effects));
}

std::string wgmma_section(const Family& family) {
  std::vector<const Form*> others;
  for (const Form& f : family.forms())
    if (f.modifiers.empty()) others.push_back(&f);
  const Wgmma ss = wgmma(Element::bf16, Element::bf16, Element::f32, Feed::shared, 8).value();
  const Wgmma rs = wgmma(Element::bf16, Element::bf16, Element::f32, Feed::registers, 8).value();
  return wgmma_table() + with_effects("With A in shared memory, as", ss.form()) +
         with_effects("With A in registers, as", rs.form()) + forms_table(others);
}

std::string mma_section() {
  const MmaSync bf16{Element::bf16, Element::bf16, Element::f32, 16};
  return mma_table() + with_effects("As", bf16.form());
}

std::string families() {
  std::string s;
  for (const Family* family : instructions::all()) {
    s += fmt::format("\n## {}\n\n{}. PTX ISA: {}.\n", family->name, family->doc, family->section);
    if (family->name == "wgmma") {
      s += wgmma_section(*family);
    } else if (family->name == "mma_sync") {
      s += mma_section();
    } else {
      std::vector<const Form*> forms;
      for (const Form& f : family->forms()) forms.push_back(&f);
      s += forms_table(forms);
    }
  }
  return s;
}

std::string contents() {
  Rows rows;
  for (const Family* f : instructions::all())
    rows.push_back({fmt::format("[{0}](#{0})", f->name), std::string(f->doc)});
  rows.push_back({"[fragments](#fragments)", "Which register of which thread holds which element"});
  rows.push_back({"[tiles](#tiles-in-shared-memory)", "Swizzles, alignments, descriptors"});
  rows.push_back({"[tensor maps](#tensor-maps)", "What the accelerator can address"});
  rows.push_back({"[limits](#limits)", "What a block may use"});
  return table({"section", "what stands there"}, rows);
}

std::string fragments() {
  Rows rows;
  const auto row = [&](const std::string& what, const Layout& l, const std::string& to) {
    rows.push_back({what, code(to_string(l)), to});
  };
  for (Element e : {Element::s8, Element::bf16, Element::tf32}) {
    const Wgmma w{e, e, Element::f32, Feed::registers, 64};
    row(fmt::format("wgmma, A of {} bytes an element", bytes_of(e)), w.a_layout(), "m + 64 k");
  }
  row("wgmma, accumulators, n = 64",
      Wgmma{.a = Element::bf16, .b = Element::bf16, .n = 64}.c_layout(), "m + 64 n");
  for (const MmaSync& i : {MmaSync{Element::s8, Element::s8, Element::s32, 32},
                           MmaSync{Element::bf16, Element::bf16, Element::f32, 16},
                           MmaSync{Element::tf32, Element::tf32, Element::f32, 8}}) {
    row(fmt::format("mma.m16n8k{}, A of {} bytes an element", i.k, bytes_of(i.a)), i.a_layout(),
        "m + 16 k");
    row(fmt::format("mma.m16n8k{}, B", i.k), i.b_layout(), "n + 8 k");
  }
  row("mma.m16n8, accumulators", MmaSync::c_layout(), "m + 16 n");
  row("ldmatrix, stmatrix of 4", MatrixMove{4}.elements(), "column + 8 row + 64 matrix");
  row("ldmatrix.trans, stmatrix.trans of 4", MatrixMove{4, true}.elements(),
      "column + 8 row + 64 matrix");
  return table({"registers of", "(thread, element)", "to"}, rows);
}

std::string tiles() {
  Rows rows;
  for (SwizzleMode s :
       {SwizzleMode::none, SwizzleMode::bytes_32, SwizzleMode::bytes_64, SwizzleMode::bytes_128}) {
    const SharedTile k{Element::bf16, Major::k, s, 128, 64};
    const SharedTile mn{Element::bf16, Major::mn, s, 128, 64};
    const Swizzle bits = swizzle_of(s);
    rows.push_back({std::string(name_of(s)),
                    code(fmt::format("swizzle({},{},{})", bits.bits, bits.base, bits.shift)),
                    std::to_string(alignment_of(s)), std::to_string(code_of(s)),
                    s == SwizzleMode::none ? "none" : std::to_string(width_of(s)),
                    code(to_string(k.atom())), code(to_string(mn.atom())),
                    fmt::format("{} / {}", k.leading_bytes(), k.stride_bytes()),
                    fmt::format("{} / {}", mn.leading_bytes(), mn.stride_bytes())});
  }
  return table(
      {"swizzle", "of byte addresses", "alignment", "code", "most bytes of a TMA box's row",
       "atom, k contiguous", "atom, mn contiguous", "leading / stride, k", "leading / stride, mn"},
      rows);
}

std::string tma_limits_table() {
  const TmaLimits& l = tma_limits;
  return table({"of a tensor map", "limit"},
               {{"rank", fmt::format("1 to {}", l.max_rank)},
                {"extent of the tensor", "1 to 2^32 elements"},
                {"extent of a box", fmt::format("1 to {} elements", l.max_box_extent)},
                {"contiguous row of a box", fmt::format("a multiple of {} bytes; within the "
                                                        "swizzle's width",
                                                        l.inner_box_multiple)},
                {"strides", fmt::format("multiples of {} bytes below 2^40", l.stride_multiple)},
                {"tensor's address", fmt::format("a multiple of {} bytes", l.base_alignment)},
                {"map's address", fmt::format("a multiple of {} bytes", l.map_alignment)}});
}

std::string limits_table() {
  Rows rows;
  const auto row = [&](const std::string& what, auto&& of) {
    const auto text = [&](std::string_view arch) {
      const int64_t v = of(**find(arch));
      return v == 0 ? std::string("-") : std::to_string(v);
    };
    rows.push_back({what, text("sm_90a"), text("sm_80")});
  };
  row("threads of a block", [](const Arch& a) { return a.limits.threads_per_block; });
  row("static shared memory of a block, bytes",
      [](const Arch& a) { return a.limits.static_shared_memory; });
  row("shared memory of a block, opted in, bytes",
      [](const Arch& a) { return a.shared_memory_per_block; });
  row("shared memory of a multiprocessor, bytes",
      [](const Arch& a) { return a.limits.shared_memory_per_multiprocessor; });
  row("named barriers of a block", [](const Arch& a) { return a.limits.named_barriers; });
  row("arrivals of a phase of an mbarrier", [](const Arch& a) { return a.limits.mbarrier_count; });
  row("pending bytes of an mbarrier", [](const Arch& a) { return a.limits.mbarrier_bytes; });
  row("least registers by setmaxnreg", [](const Arch& a) { return a.limits.least_registers; });
  row("most registers by setmaxnreg", [](const Arch& a) { return a.limits.most_registers; });
  row("blocks of a cluster", [](const Arch& a) { return a.limits.cluster_blocks; });
  row("blocks of a cluster, opted in",
      [](const Arch& a) { return a.limits.cluster_blocks_opted_in; });
  return table({"", "sm_90a", "sm_80"}, rows);
}

constexpr std::string_view introduction = R"(# Instructions

What kernels for Hopper are made of, printed from the records in `src/arch/`. Lowering, interpreter and checker read the same
records. `src/arch/page_test.cpp` holds this page to them and says how to write it anew. The layouts are tested against
CuTe's own traits, element by element, and NVIDIA's assembler takes the text of every form.

A form's PTX has `$name` for an operand and `<name>` for a modifier; where PTX wants a predicate, the text is a block that makes
it of a register. Effects are what a form does beyond computing values:

| word | meaning |
|---|---|
| proxy | the path of an access to memory: `generic` (plain loads and stores, ldmatrix, cp.async), `async` (TMA, bulk copies, wgmma), `tensormap` (reads of a tensor map). A proxy fence orders accesses of two paths, nothing else does |
| until | what says that an access is finished; without it, the access is finished when the instruction is. Registers that are used until a group is complete must not be touched before |
| until barrier_bytes | the mbarrier of the operand `barrier` has counted the bytes: waiting for its phase makes them visible |
| until cp_async_group, bulk_group, wgmma_group | the group to which the instruction was committed is awaited, by the threads that committed it |
| until bulk_group_read | the same; only the source in shared memory may then be written again |
| box($map) | the bytes of a whole box of a tensor map, also where it leaves the tensor |
| tile($a) | the bytes of the matrix that the descriptor names, of the instruction's shape |
| atomically | threads so far apart may do the same to the same bytes at a time, without a race |
| signals, awaits | an event that the instruction makes happen, or that it waits for; `with_accesses`: when its accesses are finished |
| needs | a fence that must stand between earlier accesses of the operand in the other way and this one. It stands in the threads that made them, before they hand over to the thread that issues |
)";

std::string page() {
  std::string s(introduction);
  s += contents() + families();
  s += "\n## Fragments\n\nWhich register of which thread holds which element. The modes count "
       "threads "
       "and the elements of a thread's registers, neighbours in one 32-bit register first.\n";
  s += fragments();
  s += "\n## Tiles in shared memory\n\nAtoms are 8 rows of 16 to 128 bytes, one after the other; a "
       "tile is made of atoms, those along m or n first. The swizzle acts on byte addresses, so a "
       "tile starts at the alignment that its mode names. The last two columns are a descriptor's "
       "offsets in bytes, for 128 x 64 elements of 2 bytes; 16 stands where hardware ignores the "
       "field. A descriptor has the address >> 4 in bits 0 to 13, the leading offset >> 4 in 16 to "
       "29, the stride offset >> 4 in 32 to 45 and the code in 62 and 63. Operands of 1 or 4 bytes "
       "an element have k contiguous.\n";
  s += tiles();
  s += "\n## Tensor maps\n\nA load fills with zeros, or with NaN, what lies outside of the tensor, "
       "and counts those bytes too; a store leaves them out. Boxes lie in shared memory without "
       "gaps.\n";
  s += tma_limits_table();
  s += "\n## Limits\n";
  s += limits_table();
  return s;
}

TEST(Page, IsWhatTheRecordsSay) {
  const std::string path = source_folder() + "/docs/instructions.md";
  if (std::getenv("TESSERA_UPDATE_PAGES") != nullptr) write_file_atomically(path, page());
  EXPECT_EQ(read_file(path), page());
}

// The page shows the effects of one kind of wgmma for all.
TEST(Page, KindsOfWgmmaDoTheSame) {
  for (const Wgmma& w : wgmma_kinds()) {
    const Wgmma shown = wgmma(Element::bf16, Element::bf16, Element::f32, w.a_from, 8).value();
    EXPECT_EQ(to_string(w.form().effects), to_string(shown.form().effects)) << w.form().name;
  }
}

}  // namespace
}  // namespace tessera::arch
