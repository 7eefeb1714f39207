#include "realize/common/wgmma_parts_text.h"

#include "base/text.h"
#include "realize/common/cutlass_parts_text.h"
#include "realize/common/wgmma_text.h"

#include "pointwise/pointwise.h"

namespace tessera::realize {
namespace {

/// What a thread keeps of two neighbouring columns: both elements, or the one that all share.
std::string kept_type(const PartOperand& x) {
  const std::string type = cuda_type(x.dtype);
  return x.along_columns ? fmt::format("tessera_wgmma::TwoOf<{}>::Type", type) : type;
}

/// `v.x{i} = ...;` for operand i, whose pointer is number `pointer` of the kernel's.
std::string read(const GemmProblem& p, const Part& part, std::size_t i, int pointer) {
  const PartOperand& x = part.operands[i];
  std::string column = x.along_columns ? "column" : "0";
  if (read_through(part, i) != i) column += " + period / 2";
  const std::string at = fmt::format("tessera_wgmma::place<{}, {}>(p.y[{}], row, {}, {})",
                                     cuda_type(x.dtype), x.rows < p.m ? "true" : "false", pointer,
                                     same_for_groups(part, x) ? "0" : "group", column);
  if (!x.along_columns) return fmt::format("    v.x{} = *{};\n", i, at);
  return fmt::format("    v.x{} = tessera_wgmma::{}({});\n", i,
                     x.adjacent() ? "pair" : "side_by_side", at);
}

std::string function_of(const GemmProblem& p, const Part& part) {
  std::vector<std::string> operands = {"low"};
  if (part.period > 0) operands.emplace_back("high");
  for (std::size_t i = 0; i < part.operands.size(); ++i)
    operands.push_back(fmt::format("tessera_wgmma::element<I>({}.x{})",
                                   same_for_groups(part, part.operands[i]) ? "s" : "o", i));
  std::vector<std::string> results;
  const std::string body =
      approximated(pointwise::emit(part.dag, operands, "t", &results), p.outputs.front().dtype);
  std::string text;
  for (const std::string& line : split(body, '\n'))
    if (!line.empty()) text += "    " + line + "\n";
  // A result may be an accumulator that the other has already replaced.
  text += part.period == 0 ? fmt::format("    low = {};\n", results.at(0))
                           : fmt::format("    const float r = {};\n    high = {};\n    low = r;\n",
                                         results.at(0), results.at(1));
  return text;
}

/// `pointer`: the kernel's number of the part's first operand; grows by those that it has.
std::string part_text(const GemmProblem& p, const Part& part, std::size_t index, int& pointer) {
  std::string members[2], reads[2];
  std::vector<int> pointers;
  for (std::size_t i = 0; i < part.operands.size(); ++i) {
    const std::size_t through = read_through(part, i);
    pointers.push_back(through == i ? pointer++ : pointers[through]);
    const std::size_t own = same_for_groups(part, part.operands[i]) ? 0 : 1;
    members[own] += fmt::format("    {} x{};\n", kept_type(part.operands[i]), i);
    reads[own] += read(p, part, i, pointers.back());
  }
  return fmt::format(
      R"(struct Part{0} {{
  static constexpr int period = {1};
  struct Shared {{
{2}  }};
  struct Own {{
{3}  }};
  static __device__ __forceinline__ Shared shared([[maybe_unused]] const Params& p, [[maybe_unused]] int row,
                                                  [[maybe_unused]] int column) {{
    Shared v;
{4}    return v;
  }}
  static __device__ __forceinline__ Own own([[maybe_unused]] const Params& p, [[maybe_unused]] int row,
                                            [[maybe_unused]] int group, [[maybe_unused]] int column) {{
    Own v;
{5}    return v;
  }}
  template <int I>
  static __device__ __forceinline__ void apply([[maybe_unused]] const Shared& s, [[maybe_unused]] const Own& o,
                                               float& low, [[maybe_unused]] float& high) {{
{6}  }}
}};
)",
      index, part.period, members[0], members[1], reads[0], reads[1], function_of(p, part));
}

}  // namespace

WgmmaParts wgmma_parts(const GemmProblem& p) {
  WgmmaParts text;
  int pointer = 0;
  std::string calls;
  const auto parts = computed_parts(p);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text.structs += part_text(p, *parts[i], i, pointer);
    calls += fmt::format(
        "    tessera_wgmma::apply_part<Config, Part{0}>(p, p.parts[{0}], acc, row, column, "
        "thread);\n",
        i);
  }
  if (parts.empty()) return text;
  text.function = fmt::format(
      "  template <int Blocks, int Registers>\n"
      "  static __device__ __forceinline__ void apply_parts(const Params& p, float "
      "(&acc)[Blocks][Registers], int row, int column, int thread) {{\n{}  }}\n",
      calls);
  return text;
}

int wgmma_part_count(const GemmProblem& p) {
  return static_cast<int>(computed_parts(p).size());
}

int wgmma_part_operands(const GemmProblem& p) {
  int count = 0;
  for (const Part* part : computed_parts(p))
    for (std::size_t i = 0; i < part->operands.size(); ++i)
      count += read_through(*part, i) == i ? 1 : 0;
  return count;
}

std::string wgmma_part_arguments(const GemmProblem& p, int at) {
  std::string text;
  int pointer = 0;
  const auto parts = computed_parts(p);
  for (std::size_t n = 0; n < parts.size(); ++n) {
    text += fmt::format("  p.parts[{}] = {{static_cast<int>(v[{}]), static_cast<int>(v[{}])}};\n",
                        n, at, at + 1);
    at += 2;
    for (std::size_t i = 0; i < parts[n]->operands.size(); ++i) {
      if (read_through(*parts[n], i) != i) continue;
      const PartOperand& x = parts[n]->operands[i];
      text += fmt::format(
          "  p.y[{0}] = {{matrix(launch, {1}, {2}).data, v[{3}], v[{4}], "
          "static_cast<uint32_t>(v[{5}])}};\n",
          pointer, at, size_of(x.dtype), at + 2, at + 3, at + 4);
      if (x.along_columns && x.adjacent())
        text += fmt::format("  if (!aligned(p.y[{}].data, {})) return -1;\n", pointer,
                            2 * size_of(x.dtype));
      ++pointer;
      at += 5;
    }
  }
  return text;
}

std::optional<std::string> wgmma_refuses_parts(int columns, const GemmProblem& p) {
  for (const Part& part : p.parts) {
    if (part.period % 16 != 0) return "half a group of columns is no multiple of 8";
    if (part.period > 0 && columns % part.period != 0) return "a tile cuts a group of columns";
    const bool open_end = part.plain && part.first + part.columns == p.n;
    if (part.first % columns != 0 || (!open_end && part.columns % columns != 0))
      return "a tile lies in two parts";
  }
  return std::nullopt;
}

}  // namespace tessera::realize
