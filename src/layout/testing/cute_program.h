// A program on CuTe's headers, made of cases in our notation, and what it prints.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "layout/testing/cases.h"

namespace tessera::testing {

/// `op | first | second`, and `| reason` where the results differ.
struct Case {
  std::string line, op, first, second, reason;
  [[nodiscard]] std::vector<int64_t> numbers() const {
    std::string_view text = second;
    return flatten(parse_int_tuple(text).value());
  }
};

/// The offsets of a result by index, and the sizes of its modes.
struct Values {
  std::vector<int64_t> sizes, offsets;
  friend bool operator==(const Values&, const Values&) = default;
};

inline std::string to_string(const Values& v) {
  return fmt::format("sizes {} offsets {}", tessera::to_string(IntTuple::flat(v.sizes)),
                     tessera::to_string(IntTuple::flat(v.offsets)));
}

inline std::vector<Case> read_cases(const std::string& text) {
  std::vector<Case> out;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string> parts;
    for (const std::string& p : split(line, '|')) parts.push_back(trim(p));
    parts.resize(4);
    out.push_back({line, parts[0], parts[1], parts[2], parts[3]});
  }
  return out;
}

/// The value in C++ with everything static.
inline std::string in_cute(const IntTuple& t) {
  if (t.is_leaf) return fmt::format("Int<{}>", t.value);
  std::string s;
  for (const IntTuple& i : t.items) s += (s.empty() ? "" : ",") + in_cute(i);
  return "cute::tuple<" + s + ">";
}
inline std::string in_cute(const Layout& l) {
  return fmt::format("Layout<{},{}>", in_cute(l.shape()), in_cute(l.stride()));
}
inline std::string in_cute(const Tiler& t) {
  if (!t.is_by_mode()) return in_cute(t.whole());
  std::string s;
  for (const Tiler& m : t.modes()) s += (s.empty() ? "" : ",") + in_cute(m);
  return "cute::tuple<" + s + ">";
}
inline std::string in_cute(const Coordinate& c) {
  if (c.is_leaf) return c.index ? fmt::format("Int<{}>", *c.index) : "Underscore";
  std::string s;
  for (const Coordinate& i : c.items) s += (s.empty() ? "" : ",") + in_cute(i);
  return "cute::tuple<" + s + ">";
}
inline std::string in_cute(const SwizzledLayout& l) {
  if (l.swizzle().bits == 0) return in_cute(l.layout()) + "{}";
  return fmt::format("composition(Swizzle<{},{},{}>{{}},Int<{}>{{}},{}{{}})", l.swizzle().bits,
                     l.swizzle().base, l.swizzle().shift, l.offset(), in_cute(l.layout()));
}

/// One statement that prints the case's result.
inline std::string statement(const Case& c) {
  const std::string a = in_cute(parse_swizzled_layout(c.first).value());
  if (c.op == "slice") {
    const std::string at = in_cute(parse_coordinate(c.second).value());
    return fmt::format("show_slice({}{{}}, {});", at, a);
  }
  if (c.op == "coalesce" || c.op == "right_inverse" || c.op == "left_inverse")
    return fmt::format("show({}({}));", c.op, a);
  if (c.op == "upcast" || c.op == "downcast")
    return fmt::format("show({}<{}>({}));", c.op, c.second, a);
  if (c.op == "recast") {
    return fmt::format("show(recast_layout<uint_bit_t<{}>,uint_bit_t<{}>>({}));", c.numbers().at(0),
                       c.numbers().at(1), a);
  }
  if (c.op == "complement" || c.op == "coalesce_by") {
    std::string_view text = c.second;
    const std::string second = in_cute(parse_int_tuple(text).value());
    return fmt::format("show({}({},{}{{}}));", c.op == "complement" ? c.op : "coalesce", a, second);
  }
  const std::string second = in_cute(parse_tiler(c.second).value());
  return fmt::format("show({}({},{}{{}}));", c.op == "compose" ? "composition" : c.op, a, second);
}

inline constexpr std::string_view cute_head = R"(#include <cstdio>
#include <cute/layout_composed.hpp>
#include <cute/numeric/integral_ratio.hpp>
#include <cute/numeric/numeric_types.hpp>
#include <cute/swizzle_layout.hpp>
using namespace cute;
template <class L> void show(L const& l, int offset = 0) {
  if constexpr (is_tuple<decltype(shape(l))>::value)
    for_each(shape(l), [](auto m) { printf("%d ", int(size(m))); });
  else
    printf("%d ", int(size(l)));
  printf("|");
  for (int i = 0; i < int(size(l)); ++i) printf(" %d", int(l(i)) + offset);
  printf("\n");
}
template <class C, class L> void show_slice(C const& c, L const& l) {
  auto [part, offset] = slice_and_offset(c, l);
  show(part, int(offset));
}
int main() {
)";

/// g++ with the headers of CUTLASS and CUDA; empty where they are not.
inline std::vector<std::string> cute_compiler() {
  namespace fs = std::filesystem;
  const char* own = std::getenv("TESSERA_CUTLASS_DIR");
  const char* python = std::getenv("TESSERA_PYTHON");
  const Finished asked =
      run({.argv = {python != nullptr ? python : "python3", "-c",
                    "import site, sys; print(*site.getsitepackages(), sep='\\n')"},
           .folder = {},
           .env = {}},
          std::chrono::seconds(60));
  std::vector<fs::path> cutlass, cuda;
  if (own != nullptr) cutlass = {fs::path(own), fs::path(own) / "source"};
  for (const std::string& site : split(asked.output, '\n')) {
    if (own == nullptr) cutlass.push_back(fs::path(site) / "cutlass_library/source");
    cuda.push_back(fs::path(site) / "nvidia/cu13/include");
  }
  cuda.insert(cuda.begin(), "/usr/local/cuda/include");
  const auto first = [](const std::vector<fs::path>& of, const char* file) -> fs::path {
    for (const fs::path& p : of)
      if (fs::exists(p / file)) return p;
    return {};
  };
  const fs::path cute = first(cutlass, "include/cute/layout.hpp");
  const fs::path runtime = first(cuda, "cuda_runtime_api.h");
  std::vector<fs::path> standard = cuda;
  for (const fs::path& p : cuda) standard.push_back(p / "cccl");
  const fs::path cccl = first(standard, "cuda/std/utility");
  if (cute.empty() || runtime.empty() || cccl.empty()) return {};
  return {"g++",
          "-std=c++17",
          "-O0",
          "-w",
          "-DNDEBUG",
          "-I" + (cute / "include").string(),
          "-I" + runtime.string(),
          "-I" + cccl.string()};
}

/// What each case is in CuTe; throws with the compiler's words when it does not compile.
inline std::vector<Values> run_cute(std::vector<std::string> compiler,
                                    const std::vector<Case>& cases) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "tessera-cute-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const fs::path folder = pattern;
  std::string text(cute_head);
  for (const Case& c : cases) text += statement(c) + "\n";
  std::ofstream(folder / "cases.cpp") << text << "}\n";
  compiler.insert(compiler.end(),
                  {(folder / "cases.cpp").string(), "-o", (folder / "cases").string()});
  Finished f = run({.argv = compiler, .folder = folder, .env = {}}, std::chrono::minutes(9));
  if (f.ok())
    f = run({.argv = {folder / "cases"}, .folder = folder, .env = {}}, std::chrono::minutes(1));
  fs::remove_all(folder);
  if (!f.ok()) throw std::runtime_error(f.output.substr(0, 4000));
  std::vector<Values> out;
  for (const std::string& line : split(f.output, '\n')) {
    if (line.empty()) continue;
    Values v;
    std::vector<int64_t>* into = &v.sizes;
    for (const std::string& word : split(line, ' ')) {
      if (word == "|") into = &v.offsets;
      if (!word.empty() && word != "|") into->push_back(std::stoll(word));
    }
    out.push_back(std::move(v));
  }
  return out;
}

}  // namespace tessera::testing
