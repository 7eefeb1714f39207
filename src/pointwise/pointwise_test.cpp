#include "pointwise/pointwise.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>

#include "base/files.h"
#include "base/source_folder.h"

namespace tessera::pointwise {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

TEST(Dag, EqualSubexpressionsAreOneNode) {
  Dag dag;
  const int x = dag.add_operand(0);
  const int a = dag.add_call("mul", {x, dag.add_constant(0.5)});
  const int b = dag.add_call("mul", {dag.add_operand(0), dag.add_constant(0.5)});
  EXPECT_EQ(a, b);
  dag.results = {dag.add_call("add", {dag.add_call("gelu_tanh", {x}), a})};
  EXPECT_EQ(dag.to_string(), "add(gelu_tanh(%0), mul(%0, 0.5))");
  EXPECT_EQ(dag.operand_count(), 1);
}

TEST(Dag, SharedCallsArePrintedOnce) {
  Dag dag;
  const int s = dag.add_call("silu", {dag.add_operand(0)});
  dag.results = {dag.add_call("mul", {s, s}), s};
  EXPECT_EQ(dag.to_string(), "$0 = silu(%0); mul($0, $0); $0");
}

TEST(Dag, EvaluatesEveryResult) {
  Dag dag;
  const int x = dag.add_operand(0);
  const int y = dag.add_operand(1);
  dag.results = {dag.add_call("sub", {x, y}),
                 dag.add_call("where", {dag.add_call("lt", {x, y}), x, y})};
  const double operands[] = {3, 5};
  EXPECT_THAT(dag.eval(operands), testing::ElementsAre(-2, 3));
}

TEST(Dag, WrongArityIsAFault) {
  Dag dag;
  EXPECT_THROW(dag.add_call("add", {dag.add_operand(0)}), std::logic_error);
  EXPECT_THROW(dag.add_call("no_such", {dag.add_operand(0)}), std::logic_error);
}

TEST(EmitPointwise, NamesStatementsAndSpellsConstants) {
  Dag dag;
  const int x = dag.add_operand(0);
  dag.results = {
      dag.add_call("maximum", {dag.add_call("mul", {x, dag.add_constant(2)}),
                               dag.add_constant(-std::numeric_limits<double>::infinity())})};
  std::vector<std::string> results;
  const std::string operands[] = {"acc"};
  const std::string code = emit(dag, operands, "e", &results);
  EXPECT_EQ(code,
            "const float e2 = (acc * 2.0f);\nconst float e4 = tsr_maximum(e2, (-tsr_inf()));\n");
  EXPECT_THAT(results, testing::ElementsAre("e4"));
}

/// A prelude with one vectorizable loop a function, compiled and loaded; a GPU's with what emulates
/// CUDA's own functions.
template <Target target>
class Compiled : public testing::Test {
 protected:
  using Loop = void (*)(const float*, const float*, const float*, float*, long);

  /// On a GPU `approximated` has the text of this one.
  static bool has_text(const Function& f) {
    return target == Target::host || f.name != "tanh_approx";
  }

  static void SetUpTestSuite() {
    folder = new TemporaryFolder("tessera-prelude");
    std::string source =
        target == Target::cuda ? "#include <cuda_runtime.h>\n#include <cmath>\n" : "";
    source += prelude(target);
    for (const Function& f : functions()) {
      if (!has_text(f)) continue;
      Dag dag;
      std::vector<int> arguments;
      for (int i = 0; i < f.arity; ++i) arguments.push_back(dag.add_operand(i));
      dag.results = {dag.add_call(f.name, arguments)};
      std::vector<std::string> results;
      const std::string operands[] = {"x", "y", "z"};
      const std::string code = emit(dag, operands, "e", &results);
      source += fmt::format(
          "extern \"C\" void {}_loop(const float* __restrict a, const float* __restrict b, const "
          "float* __restrict c, "
          "float* __restrict out, long n) {{\n#pragma GCC ivdep\nfor (long i = 0; i < n; ++i) {{ "
          "const float x = a[i], y = b[i], z = c[i]; "
          "(void)y; (void)z;\n{} out[i] = {}; }} }}\n",
          f.name, code, results.front());
    }
    write_file_atomically(folder->path() / "prelude.cpp", source);
    const std::string base = (folder->path() / "prelude").string();
    const std::string command = fmt::format(
        "g++ -std=c++20 -O3 -march=native -fno-math-errno -ffp-contract=off "
        "-fopt-info-vec-optimized -shared -fPIC -Wall -Wextra -Werror {1} -o {0}.so "
        "{0}.cpp > {0}.log 2>&1",
        base,
        target == Target::cuda ? "-isystem " + source_folder() + "/tests/emulate/include" : "");
    ASSERT_EQ(std::system(command.c_str()), 0) << read_file(base + ".log");
    library = dlopen((base + ".so").c_str(), RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    report = read_file(base + ".log");
    lines = split_lines(source);
  }
  static void TearDownTestSuite() {
    dlclose(library);
    delete folder;
  }
  static std::vector<std::string> split_lines(const std::string& text) {
    std::vector<std::string> out(1);
    for (const char c : text) {
      if (c == '\n')
        out.emplace_back();
      else
        out.back() += c;
    }
    return out;
  }

  static std::vector<float> run(const Function& f, const std::vector<float>& x,
                                const std::vector<float>& y, const std::vector<float>& z) {
    std::vector<float> out(x.size());
    auto loop = reinterpret_cast<Loop>(dlsym(library, fmt::format("{}_loop", f.name).c_str()));
    loop(x.data(), y.data(), z.data(), out.data(), static_cast<long>(x.size()));
    return out;
  }

  static inline TemporaryFolder* folder = nullptr;
  static inline void* library = nullptr;
  static inline std::string report;
  static inline std::vector<std::string> lines;
};
using HostPrelude = Compiled<Target::host>;
using DevicePrelude = Compiled<Target::cuda>;

/// Distance in units of the last place of the float nearest to `right`; 0 for equal, also for NaN
/// against NaN.
double ulp_distance(float got, double right) {
  if (std::isnan(right) || std::isnan(got)) return std::isnan(right) == std::isnan(got) ? 0 : 1e30;
  const auto nearest = static_cast<float>(right);
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0 : 1e30;
  const double ulp =
      std::max(std::ldexp(1.0, std::ilogb(std::max(std::fabs(right), 1e-38)) - 23), 1.4e-45);
  return std::fabs(static_cast<double>(got) - right) / ulp;
}

std::vector<float> sweep() {
  std::vector<float> x = {0.0f,  -0.0f,  inf,     -inf,    NAN,     1.0f,
                          -1.0f, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f};
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 3571) {
    float f = 0;
    std::memcpy(&f, &bits, 4);
    x.push_back(f);
    x.push_back(-f);
  }
  for (int i = -400000; i <= 400000; ++i) x.push_back(static_cast<float>(i) * 2.7e-4f);
  return x;
}

double worst(const Function& f, const std::vector<float>& got, const std::vector<float>& x,
             double second, double third, float* where, double limit) {
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::fabs(x[i]) > limit && std::isfinite(x[i])) continue;
    const double arguments[] = {x[i], second, third};
    const double right = f.eval(std::span(arguments, static_cast<std::size_t>(f.arity)));
    if (std::fabs(right) < 1.2e-38 && std::fabs(got[i]) < 1.2e-38f)
      continue;  // subnormal results may be flushed
    const double d = ulp_distance(got[i], right);
    if (d > most) {
      most = d;
      *where = x[i];
    }
  }
  return most;
}

TEST_F(HostPrelude, OneArgumentFunctionsAreWithinUlps) {
  const std::vector<float> x = sweep();
  const std::vector<float> ones(x.size(), 1.0f);
  // Those built from others add their rounding; where a result is a difference of near-equal
  // numbers, PyTorch's own formula loses the same digits, so those are compared absolutely below.
  const std::map<std::string_view, double> looser = {
      {"mish", 5},        {"log_sigmoid", 3}, {"log10", 2.5},   {"tanh", 3},
      {"tanh_approx", 3}, {"rsqrt", 2},       {"sigmoid", 3},   {"silu", 3},
      {"selu", 3},        {"log1p", 2.5},     {"hardswish", 3}, {"hardsigmoid", 3}};
  const std::map<std::string_view, double> domain = {
      {"gelu_tanh", 80}, {"mish", 80}, {"silu", 80}, {"sigmoid", 80}};
  for (const Function& f : functions()) {
    if (f.arity != 1 || f.name == "gelu_erf" || f.name == "gelu_tanh" || f.name == "hardswish" ||
        f.name == "hardsigmoid")
      continue;
    float where = 0;
    const auto l = domain.find(f.name);
    const double most =
        worst(f, run(f, x, ones, ones), x, 1, 1, &where, l == domain.end() ? 1e39 : l->second);
    const auto bound = looser.find(f.name);
    EXPECT_LE(most, bound == looser.end() ? 2 : bound->second) << f.name << " at " << where;
  }
}

TEST_F(HostPrelude, CancellingFunctionsAreWithinFloatErrors) {
  const std::vector<float> x = sweep();
  const std::vector<float> ones(x.size(), 1.0f);
  for (const std::string_view name : {"gelu_erf", "gelu_tanh", "hardswish", "hardsigmoid"}) {
    const Function& f = *find(name);
    const std::vector<float> got = run(f, x, ones, ones);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!(std::fabs(x[i]) < 1e12f)) continue;
      const double argument[] = {x[i]};
      EXPECT_NEAR(got[i], f.eval(std::span(argument, 1)), 3e-7 * std::max(1.0f, std::fabs(x[i])))
          << name << " at " << x[i];
    }
  }
}

/// Numbers of all kinds in every place, among them those on either side of a rounding to few bits.
struct Specials {
  std::vector<float> x, y, z;
};

Specials specials_of_three() {
  const std::vector<float> specials = {0.0f, -0.0f, 1.0f, -1.0f, 0.3f,  -0.3f, 2.5f,  -7.25f, 21.0f,
                                       inf,  -inf,  NAN,  464.f, 465.f, 1e-9f, 3e38f, 1e-40f};
  Specials s;
  auto& [x, y, z] = s;
  for (const float a : specials) {
    for (const float b : specials) {
      x.push_back(a), y.push_back(b), z.push_back(1.5f);
    }
  }
  return s;
}

TEST_F(HostPrelude, FunctionsOfSeveralArgumentsFollowTheirMeaning) {
  const auto [x, y, z] = specials_of_three();
  for (const Function& f : functions()) {
    if (f.arity < 2) continue;
    const std::vector<float> got = run(f, x, y, z);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double arguments[] = {x[i], y[i], z[i]};
      if (std::isnan(y[i]) && f.arity == 3 && f.name != "where") continue;  // bounds are never NaN
      const double right = f.eval(std::span(arguments, static_cast<std::size_t>(f.arity)));
      EXPECT_LE(ulp_distance(got[i], right), 4) << f.name << "(" << x[i] << ", " << y[i] << ", "
                                                << z[i] << ") = " << got[i] << ", not " << right;
    }
  }
}

/// The text that a GPU compiles is as near to the value; functions of the special function unit
/// lose what is below 2^-126, and some digits.
TEST_F(DevicePrelude, FollowsTheMeaningOnNumbersOfAllKinds) {
  const auto [x, y, z] = specials_of_three();
  const std::set<std::string_view> of_special_unit = {"sigmoid", "silu", "gelu_tanh",
                                                      "exp2_flushed"};
  for (const Function& f : functions()) {
    if (!has_text(f)) continue;
    const std::vector<float> got = run(f, x, y, z);
    const double most = of_special_unit.contains(f.name) ? 64 : 8;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double arguments[] = {x[i], y[i], z[i]};
      if (std::isnan(y[i]) && f.arity == 3 && f.name != "where") continue;  // bounds are never NaN
      const double right = f.eval(std::span(arguments, static_cast<std::size_t>(f.arity)));
      if (std::fabs(right) < 1.2e-38 && std::fabs(got[i]) < 1.2e-38f) continue;
      if (f.name == "hardswish" && x[i] > 5e37f) continue;  // infinite in PyTorch, too
      if (f.name.starts_with("gelu") && std::fabs(got[i] - right) < 1e-6) continue;
      EXPECT_LE(ulp_distance(got[i], right), most) << f.name << "(" << x[i] << ", " << y[i] << ", "
                                                   << z[i] << ") = " << got[i] << ", not " << right;
    }
  }
}

TEST_F(HostPrelude, LoopsVectorize) {
  for (std::size_t i = 0; i + 2 < lines.size(); ++i) {
    if (!lines[i].starts_with("extern")) continue;
    const std::string name = lines[i].substr(16, lines[i].find("_loop") - 16);
    if (testing::Value(name, testing::AnyOf("pow", "fmod", "remainder", "div_floor", "atan",
                                            "atan2", "sin", "cos", "tan")))
      continue;
    if (name == "tanh_approx") continue;  // on a host it is tanh, and the compiler makes one loop
    const std::string place = fmt::format("prelude.cpp:{}:", i + 3);
    EXPECT_NE(report.find(place), std::string::npos) << name << " is not vectorized";
  }
}

TEST(Dag, HasOneOrderForOneMeaning) {
  Dag a, b;
  const int ax = a.add_operand(0), ay = a.add_operand(1);
  const int sum = a.add_call("add", {ax, ay});
  a.results = {a.add_call("mul", {sum, a.add_constant(2)}), sum};
  const int by = b.add_operand(1), two = b.add_constant(2), bx = b.add_operand(0);
  b.add_constant(7);  // nobody needs it
  const int same = b.add_call("add", {bx, by});
  b.results = {b.add_call("mul", {same, two}), same};
  const Dag x = a.ordered(), y = b.ordered();
  ASSERT_EQ(x.nodes.size(), 5U);
  ASSERT_EQ(y.nodes.size(), 5U);
  for (std::size_t i = 0; i < x.nodes.size(); ++i) {
    EXPECT_EQ(x.nodes[i].kind, y.nodes[i].kind);
    EXPECT_EQ(x.nodes[i].arguments, y.nodes[i].arguments);
  }
  EXPECT_EQ(x.results, y.results);
  const double given[] = {3, 4};
  EXPECT_EQ(y.eval(given), b.eval(given));
  EXPECT_EQ(y.to_string(), b.to_string());
}

}  // namespace
}  // namespace tessera::pointwise
