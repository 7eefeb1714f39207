#include "toolchain/lean_cutlass.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

/// `from`, everywhere in a header, becomes `to`; with `until`, all from there up to the next
/// `until`.
struct Edit {
  std::string_view file;
  std::string_view from;
  std::string_view to;
  std::string_view until = {};
};

constexpr std::string_view tuple = "cute/container/tuple.hpp";
constexpr std::string_view traits = "cute/util/type_traits.hpp";
constexpr std::string_view algorithms = "cute/algorithm/tuple_algorithms.hpp";
constexpr std::string_view layout = "cute/layout.hpp";

const Edit edits[] = {
    {tuple, "cute::is_empty<First>::value", "__is_empty(First)"},
    {tuple, "(cute::is_empty<Rest>::value && ...)", "(__is_empty(Rest) && ...)"},
    {tuple, "// Returns the element in the ith position",
     "}\n#include \"tessera_cutlass/lean_tuple.h\"\nnamespace cute {\n",
     "// Returns the first position of type X"},
    {tuple, "CUTE_STL_NAMESPACE::tuple_element<I, CUTE_STL_NAMESPACE::tuple<T...>>",
     "tessera_cutlass::Nth<I, T...>"},
    {tuple, "#ifdef CUTE_STL_NAMESPACE_IS_CUDA_STD\nnamespace std",
     "#include \"tessera_cutlass/lean_tuple_traits.h\"\n#ifdef CUTE_STL_NAMESPACE_IS_CUDA_STD\n"
     "namespace std"},

    {traits, "remove_cv_t<remove_reference_t<T>>", "TESSERA_REMOVE_CVREF(T)"},
    {traits, "using remove_cvref_t = typename remove_cvref<T>::type;",
     "using remove_cvref_t = TESSERA_REMOVE_CVREF(T);"},

    {algorithms, "#include <cute/numeric/integral_constant.hpp>",
     "#include <cute/numeric/integral_constant.hpp>\n#include \"tessera_cutlass/lean_apply.h\""},
    {algorithms, "[](auto const&... a){ return cute::make_tuple(a...); }",
     "tessera_cutlass::MakeTuple{}"},
    {algorithms, "[](auto const&... a) { return cute::make_tuple(a...); }",
     "tessera_cutlass::MakeTuple{}"},
    {algorithms, "[](auto const&... a) { return cute::tuple_cat(a...); }",
     "tessera_cutlass::Concatenate{}"},
    {algorithms, "tapply(T&& t, F&& f, G&& g, seq<I...>)\n{\n",
     "tapply(T&& t, F&& f, G&& g, seq<I...>)\n{\n"
     "  if constexpr (tessera_cutlass::is_constant_tuple<remove_cvref_t<T>>) {\n"
     "    return tessera_cutlass::apply_constant(t, f, g);\n"
     "  } else\n"},
    {algorithms, "tapply(T0&& t0, T1&& t1, F&& f, G&& g, seq<I...>)\n{\n",
     "tapply(T0&& t0, T1&& t1, F&& f, G&& g, seq<I...>)\n{\n"
     "  if constexpr (tessera_cutlass::is_constant_pair<remove_cvref_t<T0>, remove_cvref_t<T1>>) "
     "{\n"
     "    return tessera_cutlass::apply_constant(t0, t1, f, g);\n"
     "  } else\n"},
    {algorithms, "  return (FoldAdaptor<F,V>{f,v} | ... | get<Is>(static_cast<T&&>(t))).val_;",
     "  return tessera_cutlass::fold(v, f, get<Is>(static_cast<T&&>(t))...);"},

    {layout, "  return make_layout(make_shape (layout0.shape() , layout1.shape() ),",
     "  if constexpr (__is_empty(Layout<Shape0, Stride0>) && __is_empty(Layout<Shape1, Stride1>)) "
     "{\n"
     "    return Layout<tuple<Shape0, Shape1>, tuple<Stride0, Stride1>>{};\n"
     "  } else\n"
     "  return make_layout(make_shape (layout0.shape() , layout1.shape() ),"},
};

/// Whose functions do nothing but return.
constexpr std::string_view returning[] = {
    layout,
    algorithms,
    "cute/stride.hpp",
    "cute/int_tuple.hpp",
    "cute/layout_composed.hpp",
    "cute/swizzle_layout.hpp",
};

/// One structure for each shape of wgmma and kind of operands, a megabyte each; the second of a
/// pair is read where CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED asks for all shapes. Each includes its
/// second by a path beside it.
struct Shapes {
  std::string_view file;
  bool sparse;
  bool extended;
};
constexpr Shapes shapes[] = {
    {"cute/arch/mma_sm90_gmma.hpp", false, false},
    {"cute/arch/mma_sm90_gmma_ext.hpp", false, true},
    {"cute/arch/mma_sm90_gmma_sparse.hpp", true, false},
    {"cute/arch/mma_sm90_gmma_sparse_ext.hpp", true, true},
    {"cute/atom/mma_traits_sm90_gmma.hpp", false, false},
    {"cute/atom/mma_traits_sm90_gmma_ext.hpp", false, true},
    {"cute/atom/mma_traits_sm90_gmma_sparse.hpp", true, false},
    {"cute/atom/mma_traits_sm90_gmma_sparse_ext.hpp", true, true},
};

bool apply(std::string& text, const Edit& edit) {
  if (text.find(edit.from) == std::string::npos) return false;
  if (edit.until.empty()) {
    text = replace_all(text, edit.from, edit.to);
    return true;
  }
  const std::size_t begin = text.find(edit.from);
  const std::size_t end = text.find(edit.until, begin);
  if (end == std::string::npos) return false;
  text.replace(begin, end - begin, edit.to);
  return true;
}

bool balanced(std::string_view text, char open, char close) {
  return std::count(text.begin(), text.end(), open) == std::count(text.begin(), text.end(), close);
}

bool is_call(std::string_view expression) {
  const auto has = [&](std::string_view part) {
    return expression.find(part) != std::string_view::npos;
  };
  const std::size_t call = expression.find('(');
  return call != std::string_view::npos && expression.find('{') > call && !has("[") && !has("//") &&
         !expression.starts_with("static_cast") && !expression.starts_with("*") &&
         balanced(expression, '(', ')') && balanced(expression, '{', '}');
}

/// Whether a statement that follows this line is one of a block.
bool ends_statement(const std::string& line) {
  const std::string t = trim(line);
  return t.empty() || t.ends_with("{") || t.ends_with("}") || t.ends_with(";") ||
         t.ends_with("else") || t.ends_with("*/") || t.starts_with("//") ||
         t.find(" //") != std::string::npos;
}

}  // namespace

std::string with_lean_returns(const std::string& header) {
  std::string out;
  std::string previous;
  std::size_t at = 0;
  while (at < header.size()) {
    const std::size_t end = std::min(header.find('\n', at), header.size() - 1) + 1;
    const std::string line = header.substr(at, end - at);
    const std::size_t indent = line.find_first_not_of(' ');
    const std::size_t semicolon = header.find(';', at);
    if (indent != std::string::npos && indent > 0 && line.compare(indent, 7, "return ") == 0 &&
        ends_statement(previous) && semicolon != std::string::npos) {
      const std::size_t begin = at + indent + 7;
      const std::string expression = header.substr(begin, semicolon - begin);
      if (is_call(expression)) {
        out += line.substr(0, indent) + "TESSERA_RETURN(" + expression + ")";
        at = semicolon + 1;
        previous = ";";
        continue;
      }
    }
    out += line;
    if (!trim(line).empty()) previous = line;
    at = end;
  }
  return out;
}

std::set<int> wgmma_columns(const std::string& source) {
  std::set<int> out;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (!digit(source[at])) continue;
    std::int64_t number = 0;
    for (; at < source.size() && digit(source[at]); ++at)
      number = std::min<std::int64_t>(number * 10 + (source[at] - '0'), 1 << 20);
    for (const std::int64_t tile : {number, number / 2, number * 2}) {
      int columns = 256;
      while (columns > 0 && (tile == 0 || tile % columns != 0)) columns -= 8;
      if (columns > 0) out.insert(columns);
    }
  }
  return out;
}

std::string with_wgmma_shapes(const std::string& header, const std::set<int>& columns) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t next = header.find("\nstruct "); next != std::string::npos;
       next = header.find("\nstruct ", next + 1)) {
    const std::size_t body = header.find("\n{", next);
    const std::size_t end = header.find("\n};", next);
    const std::size_t shape = header.find("MMA_64x", next);
    const std::size_t alias = header.find("SM90_64x", next);
    const std::size_t rows = std::min(shape, alias);
    if (end == std::string::npos || body > end || rows > body) continue;
    const int n = std::atoi(header.c_str() + header.find("64x", rows) + 3);
    // What is no template is named where templates are selected, and must be complete there.
    if (columns.contains(n) || header[next - 1] != '>') continue;
    out.append(header, at, body - at);
    out += ";";
    at = end + 3;
  }
  out.append(header, at);
  return out;
}

std::map<std::string, std::string> lean_headers(const fs::path& include, const std::string& source,
                                                bool extended) {
  std::map<std::string, std::string> out;
  const auto text = [&](std::string_view file) -> std::string* {
    const auto [found, added] = out.try_emplace(std::string(file));
    if (!added) return &found->second;
    std::error_code ignored;
    const fs::path path = include / file;
    if (!fs::exists(path, ignored)) return nullptr;
    found->second = read_file(path);
    return apply(found->second,
                 {file, "#pragma once", "#pragma once\n#include \"tessera_cutlass/lean.h\""})
               ? &found->second
               : nullptr;
  };
  for (const Edit& edit : edits) {
    std::string* const t = text(edit.file);
    if (t == nullptr || !apply(*t, edit)) return {};
  }
  for (const std::string_view file : returning) {
    std::string* const t = text(file);
    if (t == nullptr) return {};
    *t = with_lean_returns(*t);
  }
  const std::set<int> columns = wgmma_columns(source);
  for (const Shapes& s : shapes) {
    if (s.extended && !extended) continue;
    std::string* const t = text(s.file);
    if (t == nullptr) return {};
    *t = with_wgmma_shapes(*t, s.sparse ? std::set<int>{} : columns);
  }
  return out;
}

fs::path lean_folder(const fs::path& output) {
  return output.parent_path() / (output.stem().string() + ".lean");
}

void write_lean_headers(const fs::path& include, const Source& source, const fs::path& output) {
  const bool extended = std::find(source.flags.begin(), source.flags.end(),
                                  "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED") != source.flags.end();
  for (const auto& [path, text] : lean_headers(include, source.text, extended)) {
    const fs::path file = lean_folder(output) / path;
    fs::create_directories(file.parent_path());
    write_file_atomically(file, text);
  }
}

std::string lean_headers_version() {
  std::string out = "shapes 1\n#include \"tessera_cutlass/lean.h\"\n";
  for (const Edit& e : edits) out += std::string(e.file) + "\n" + std::string(e.to) + "\n";
  for (const std::string_view file : returning) out += std::string(file) + "\n";
  return out;
}

}  // namespace tessera::toolchain
