#include "realize/common/tile_parts_text.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/text.h"
#include "realize/common/tile_gemm_kernel.h"

namespace tessera::realize {
namespace {

/// Two columns that make results together, or one: the names of the sums, of what they become, and
/// of where the column is.
struct Side {
  std::string sum, result, place;
};

std::string name_of(std::size_t part, std::size_t operand) {
  return fmt::format("P{}_{}", part, operand);
}

bool has_rows(const PartOperand& x) {
  return x.ld != 0;
}
bool repeats(const GemmProblem& p, const PartOperand& x) {
  return has_rows(x) && x.rows < p.m;
}
/// It has an element for each column of half a group, the same for all groups.
bool of_half(const Part& part, const PartOperand& x) {
  return x.along_columns && part.period > 0 && x.distance == 0;
}
int64_t alignment(const PartOperand& x) {
  return std::gcd(std::gcd(x.ld, x.offset), int64_t{16} / size_of(x.dtype));
}

Status check(const GemmProblem& p, const Part& part) {
  const auto refuse = [](std::string_view what, std::string_view expected) {
    return error(fail(unsupported_gemm, "{}", what).expect("{}", expected));
  };
  if (part.period > 0 && part.period != 2 * tile_parts_half(p))
    return refuse("parts have groups of different widths", "one width");
  for (const PartOperand& x : part.operands) {
    if (part.period > 0 && x.distance != 0 && (x.distance != part.period || !x.along_columns))
      return refuse("an operand of a part goes on otherwise from group to group",
                    "the same for all groups, or one column after the other");
    // Columns of a part are counted from its first one, and tensors from the result's.
    if (x.along_columns && !of_half(part, x) && part.columns != p.n)
      return refuse("an operand has an element for each column of a part",
                    "one for each column of half a group, or a part that is the whole result");
  }
  return {};
}

/// The parameters of an operand's tensor.
std::vector<std::string> parameters(const GemmProblem& p, const Part& part, const PartOperand& x,
                                    const std::string& name) {
  const std::string rows = !has_rows(x) ? "1" : repeats(p, x) ? fmt::format("{}", x.rows) : "\"M\"";
  const std::string columns = !x.along_columns   ? "1"
                              : of_half(part, x) ? fmt::format("{}", part.period / 2)
                                                 : "\"N\"";
  return {fmt::format("{}_STRIDE: index(multiple={}, at_least=0, below=1 << 31)", name,
                      std::max<int64_t>(alignment(x), 1)),
          fmt::format("{0}: Tensor[{1}, {2}, {3}, strides(\"{0}_STRIDE\", 1)]", name,
                      short_name(x.dtype), rows, columns)};
}

/// The box that goes with the columns at `place`.
std::string box(const GemmProblem& p, const Part& part, const PartOperand& x,
                const std::string& name, const std::string& place, int64_t rows) {
  const std::string one = "part(0, 1)";
  const std::string row = !has_rows(x) ? one
                          : repeats(p, x)
                              ? fmt::format("part(m.index % {}, {})", x.rows / rows, rows)
                              : "m";
  return fmt::format("{}[{}, {}]", name, row,
                     !x.along_columns   ? one
                     : of_half(part, x) ? "half"
                                        : place);
}

/// `0 <= left.start and left.start < 5120`, as far as the result has other columns.
std::string condition(const GemmProblem& p, const Part& part, const std::string& place) {
  std::vector<std::string> all;
  if (part.first > 0) all.push_back(fmt::format("{} <= {}.start", part.first, place));
  if (part.first + part.columns < p.n)
    all.push_back(fmt::format("{}.start < {}", place, part.first + part.columns));
  return join(all, " and ");
}

class Text {
 public:
  Text(const GemmProblem& p, int64_t rows) : p_(p), rows_(rows) {
    if (tile_parts_half(p) > 0)
      sides_ = {{"low", "x", "left"}, {"high", "y", "right"}};
    else
      sides_ = {{"x", "y", "n"}};
  }

  std::string text() {
    const bool halves = sides_.size() == 2;
    std::vector<std::string> of = {"x", "batch", "m", "n"};
    if (halves) of = {"low", "high", "batch", "m", "left", "right", "half"};
    for (const Side& s : sides_)
      lines_.push_back(
          fmt::format("{1} = registers(f32, {0}.shape)\n    {1}[:] = {0}", s.sum, s.result));
    for (std::size_t i = 0; i < p_.parts.size(); ++i)
      if (!p_.parts[i].plain) part(i, of);
    lines_.push_back(halves ? "return [x, y]" : "return y");
    return fmt::format("\n\ndef {}(\n    {},\n):\n    {}\n", halves ? "turned" : "epilogue",
                       join(of, ",\n    "), join(lines_, "\n    "));
  }

 private:
  /// Registers with the operand's elements; those of single columns are loaded for each side.
  std::string load(std::size_t i, std::size_t operand, const Side& side) {
    const Part& part = p_.parts[i];
    const PartOperand& x = part.operands[operand];
    const std::string of = name_of(i, operand);
    std::string to = fmt::format("p{}_{}", i, operand);
    const bool own = part.period == 0 && x.along_columns;
    if (own) to += "_" + side.place;
    if (loaded_.insert(to).second)
      steps_.push_back(fmt::format("{} = load({}, like={})", to,
                                   box(p_, part, x, of, own ? side.place : sides_[0].place, rows_),
                                   sides_[0].sum));
    return to;
  }

  void part(std::size_t i, std::vector<std::string>& parameters_of_all) {
    const Part& part = p_.parts[i];
    for (std::size_t o = 0; o < part.operands.size(); ++o)
      for (std::string& text : parameters(p_, part, part.operands[o], name_of(i, o)))
        parameters_of_all.push_back(std::move(text));
    steps_.clear();
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      // A result is computed of itself, so that it stays as it is in other parts.
      std::vector<std::string> operands = {sides_[s].result};
      if (part.period > 0) {
        operands = {sides_[0].sum, sides_[1].sum};
        operands[s] = sides_[s].result;
      }
      for (std::size_t o = 0; o < part.operands.size(); ++o)
        operands.push_back(load(i, o, sides_[s]));
      const std::size_t result = part.period > 0 ? s : 0;
      steps_.push_back(fmt::format("{}[:] = {}", sides_[s].result,
                                   expression_text(part.dag, operands, part.dag.results[result])));
    }
    const std::string where = condition(p_, part, sides_[0].place);
    if (where.empty())
      lines_.insert(lines_.end(), steps_.begin(), steps_.end());
    else
      lines_.push_back(fmt::format("if {}:\n        {}", where, join(steps_, "\n        ")));
  }

  const GemmProblem& p_;
  int64_t rows_;
  std::vector<Side> sides_;
  std::vector<std::string> lines_;
  std::vector<std::string> steps_;  // of one part, in the order in which they run
  std::set<std::string> loaded_;
};

/// The part's function at column j, which is in the left or in the right half of its group.
std::string meaning(const GemmProblem& p, std::size_t i, bool right) {
  const Part& part = p.parts[i];
  const int64_t half = part.period / 2;
  const auto sum = [](std::string_view column) {
    return fmt::format("sum(A[i, k] * B[{}, k], k)", column);
  };
  const std::string before = fmt::format("j - {}", half), behind = fmt::format("j + {}", half);
  std::vector<std::string> operands = {sum("j")};
  if (part.period > 0)
    operands = {sum(right ? before : "j"), sum(right ? std::string("j") : behind)};
  for (std::size_t o = 0; o < part.operands.size(); ++o) {
    const PartOperand& x = part.operands[o];
    const std::string row = !has_rows(x)    ? "0"
                            : repeats(p, x) ? fmt::format("i % {}", x.rows)
                                            : "i";
    const std::string column = !x.along_columns   ? "0"
                               : of_half(part, x) ? fmt::format("j % {}", half)
                               : right            ? before
                                                  : "j";
    operands.push_back(fmt::format("{}[{}, {}]", name_of(i, o), row, column));
  }
  return expression_text(part.dag, operands, part.dag.results[right ? 1 : 0]);
}

}  // namespace

int64_t tile_parts_half(const GemmProblem& p) {
  for (const Part& part : p.parts)
    if (part.period > 0) return part.period / 2;
  return 0;
}

int tile_parts_columns(const TileGemmConfig& c, const GemmProblem& p) {
  const int64_t half = tile_parts_half(p);
  const int most = tile_gemm_part(c, p);
  if (half == 0) return most;
  // Two parts and their tables are in registers at a time: 64 columns of four tables spill 936
  // bytes beside 128 accumulators, 32 spill nothing.
  constexpr int roomy = 96;
  return half % most != 0 || c.accumulators() > roomy ? 32 : most;
}

Result<std::string> parts_function(const GemmProblem& p, int64_t rows) {
  for (const Part& part : p.parts) {
    TESSERA_CHECK(check(p, part));
    TESSERA_CHECK(finite_numbers(part.dag));
  }
  return Text(p, rows).text();
}

std::string parts_meaning(const GemmProblem& p) {
  std::string text = "C[i, j] = ";
  for (std::size_t i = 0; i < p.parts.size(); ++i) {
    const Part& part = p.parts[i];
    std::string here = meaning(p, i, false);
    if (part.period > 0)
      here = fmt::format("({} if j % {} < {} else {})", here, part.period, part.period / 2,
                         meaning(p, i, true));
    text += here;
    if (i + 1 < p.parts.size()) text += fmt::format(" if j < {} else ", part.first + part.columns);
  }
  return text;
}

void add_part_places(const GemmProblem& p, std::map<std::string, int64_t>& values) {
  for (std::size_t i = 0; i < p.parts.size(); ++i)
    for (std::size_t o = 0; o < p.parts[i].operands.size(); ++o) {
      const PartOperand& x = p.parts[i].operands[o];
      const std::string name = name_of(i, o);
      values[name + "_tensor"] = x.tensor;
      values[name + "_offset"] = x.offset;
      values[name + "_STRIDE"] = x.ld;
    }
}

std::optional<std::string> tile_refuses_parts(const TileGemmConfig& c, const GemmProblem& p) {
  if (p.parts.empty()) return std::nullopt;
  const int64_t half = tile_parts_half(p), rows = int64_t{64} * c.warpgroups();
  if (half % 32 != 0) return "half a group of columns is no multiple of 32";
  if (half > 0 && c.columns % (2 * half) != 0) return "a tile cuts a group of columns";
  for (const Part& part : p.parts) {
    const int64_t end = part.first + part.columns;
    if (part.first % c.columns != 0 || (end != p.n && end % c.columns != 0))
      return "a tile lies in two parts";
    for (const PartOperand& x : part.operands)
      if (repeats(p, x) && (x.rows % c.rows != 0 || x.rows % rows != 0))
        return "an operand of a part begins anew within a tile";
  }
  return std::nullopt;
}

}  // namespace tessera::realize
