#include "realize/common/cutlass_parts_text.h"

#include "base/text.h"
#include "realize/common/cutlass_templates.h"

namespace tessera::realize {
namespace {

std::string operand_type(const GemmProblem& p, const PartOperand& x) {
  const char* along = !x.along_columns ? "one" : x.adjacent() ? "pairs" : "elements";
  return fmt::format("tessera::PartOperand<{}, tessera::Columns::{}, {}>", cutlass_type(x.dtype),
                     along, x.rows < p.m);
}

/// Operand `high` is what `low` is half a period to the right: two halves of one table.
bool is_right_half(const Part& part, const PartOperand& low, const PartOperand& high) {
  PartOperand moved = low;
  moved.offset += part.period / 2;
  return part.period > 0 && low.along_columns && moved == high;
}

/// `static void apply(...)`'s body: the DAG over the accumulators and the loaded operands.
void fill_function(const Part& part, DType result, Values& values) {
  std::vector<std::string> operands =
      part.period == 0 ? std::vector<std::string>{"low"} : std::vector<std::string>{"low", "high"};
  for (std::size_t i = 0; i < part.operands.size(); ++i)
    operands.push_back(
        fmt::format("float({}.x{}[i])", same_for_groups(part, part.operands[i]) ? "s" : "o", i));
  std::vector<std::string> results;
  const std::string body = approximated(pointwise::emit(part.dag, operands, "t", &results), result);
  std::string statements;
  for (const std::string& line : split(body, '\n'))
    if (!line.empty()) statements += "    " + line + "\n";
  // A result may be an accumulator that the other has already replaced.
  const std::string stores =
      part.period == 0 ? fmt::format("    low = {};\n", results.at(0))
                       : fmt::format("    const float r = {};\n    high = {};\n    low = r;\n",
                                     results.at(0), results.at(1));
  values.insert(values.end(),
                {{"ACCUMULATORS", part.period == 0 ? "float& low" : "float& low, float& high"},
                 {"STATEMENTS", statements},
                 {"RESULTS", stores}});
}

std::string part_text(const GemmProblem& p, const Part& part, std::size_t index) {
  std::string members;
  std::string declared[2];
  std::vector<std::string> read[2];
  for (std::size_t i = 0; i < part.operands.size(); ++i) {
    const PartOperand& x = part.operands[i];
    const std::string type = operand_type(p, x);
    const bool shared = same_for_groups(part, x);
    const std::size_t source = read_through(part, i);
    if (source == i) members += fmt::format("  {} x{};\n", type, i);
    declared[shared ? 0 : 1] += fmt::format("    typename {}::Two x{};\n", type, i);
    read[shared ? 0 : 1].push_back(fmt::format("x{}.two(row, {}, column{})", source,
                                               shared ? "0" : "group",
                                               source == i ? "" : " + period / 2"));
  }
  Values values = {{"NAME", fmt::format("Part{}", index)},
                   {"PERIOD", fmt::format("{}", part.period)},
                   {"MEMBERS", members},
                   {"SHARED", declared[0]},
                   {"OWN", declared[1]},
                   {"READ_SHARED", join(read[0], ", ")},
                   {"READ_OWN", join(read[1], ", ")}};
  fill_function(part, p.outputs.front().dtype, values);
  return fill(templates::part_template, values);
}

/// Statements that fill the arguments of part `index`, whose integers start at `at`.
std::string part_arguments(const GemmProblem& p, const Part& part, std::size_t index, int at) {
  const std::string node = fmt::format("get<{}>(r.epilogue.parts)", index);
  std::string text = fmt::format(
      "  {0}.first = static_cast<int>(v[{1}]);\n  {0}.end = static_cast<int>(v[{2}]);\n", node, at,
      at + 1);
  at += 2;
  for (std::size_t i = 0; i < part.operands.size(); ++i) {
    if (read_through(part, i) != i) continue;
    const PartOperand& x = part.operands[i];
    text += fmt::format(
        "  {{\n    const Matrix x = matrix(launch, workspace, $FIRST$ + {0}, sizeof({1}));\n"
        "    {2}.x{3} = {4}{{x.as<{1}>(), x.ld, x.batch, static_cast<uint32_t>(v[{5}])}};\n",
        at, cutlass_type(x.dtype), node, i, operand_type(p, x), at + 4);
    if (x.along_columns && x.adjacent())
      text += "    if (!aligned_to(x.data, " + fmt::format("{}", 2 * size_of(x.dtype)) +
              ")) return false;\n";
    text += "  }\n";
    at += 5;
  }
  return text;
}

int first_part_int(const GemmProblem& p) {
  return 16 + 4 * static_cast<int>(p.leaves.size() + p.outputs.size());
}

}  // namespace

std::vector<const Part*> computed_parts(const GemmProblem& p) {
  std::vector<const Part*> found;
  for (const Part& part : p.parts)
    if (!part.plain) found.push_back(&part);
  return found;
}

bool same_for_groups(const Part& part, const PartOperand& x) {
  return part.period == 0 || x.distance == 0;
}

std::size_t read_through(const Part& part, std::size_t i) {
  for (std::size_t j = 0; j < i; ++j)
    if (is_right_half(part, part.operands[j], part.operands[i])) return j;
  return i;
}

std::vector<std::string> part_ints(const GemmProblem& p, std::string_view prefix) {
  std::vector<std::string> names;
  const auto parts = computed_parts(p);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    names.push_back(fmt::format("{}part{}_first", prefix, i));
    names.push_back(fmt::format("{}part{}_end", prefix, i));
    for (std::size_t x = 0; x < parts[i]->operands.size(); ++x) {
      if (read_through(*parts[i], x) != x) continue;
      for (const char* field : {"tensor", "offset", "ld", "distance", "rows"})
        names.push_back(fmt::format("{}part{}_x{}_{}", prefix, i, x, field));
    }
  }
  return names;
}

std::vector<int64_t> part_values(const GemmProblem& p) {
  std::vector<int64_t> values;
  for (const Part* part : computed_parts(p)) {
    values.insert(values.end(), {part->first, part->first + part->columns});
    for (std::size_t i = 0; i < part->operands.size(); ++i) {
      const PartOperand& x = part->operands[i];
      if (read_through(*part, i) == i)
        values.insert(values.end(), {x.tensor, x.offset, x.ld, x.distance, x.rows});
    }
  }
  return values;
}

void fill_parts(const GemmProblem& p, int first_int, Values& values) {
  const auto parts = computed_parts(p);
  std::string structs, names, arguments;
  int at = first_part_int(p);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    structs += part_text(p, *parts[i], i);
    names += fmt::format(", Part{}", i);
    arguments +=
        replace_all(part_arguments(p, *parts[i], i, at), "$FIRST$", fmt::format("{}", first_int));
    GemmProblem one;
    one.parts = {*parts[i]};
    at += static_cast<int>(part_values(one).size());
  }
  for (auto& [key, value] : values)
    if (key == "FUNCTOR") value += structs;
  values.insert(
      values.end(),
      {{"EPILOGUE", parts.empty() ? "BuiltEpilogue"
                                  : fmt::format("tessera::PartedEpilogue<BuiltEpilogue{}>", names)},
       {"PART_ARGUMENTS", arguments}});
}

}  // namespace tessera::realize
