#include "lower/names.h"

#include <cctype>
#include <fmt/format.h>

namespace tessera::lower {
namespace {

constexpr std::string_view reserved[] = {
    "alignas",  "alignof",   "and",          "asm",         "auto",        "blockDim",  "blockIdx",
    "bool",     "break",     "case",         "char",        "class",       "const",     "constexpr",
    "continue", "decltype",  "default",      "delete",      "do",          "double",    "else",
    "elected",  "enum",      "explicit",     "export",      "extern",      "false",     "float",
    "for",      "friend",    "goto",         "gridDim",     "if",          "inline",    "int",
    "launch",   "long",      "max",          "memory",      "min",         "mutable",   "namespace",
    "new",      "noexcept",  "not",          "nullptr",     "operator",    "or",        "private",
    "pin",      "protected", "public",       "register",    "return",      "shared",    "short",
    "signed",   "sizeof",    "static",       "stream",      "struct",      "switch",    "template",
    "tensors",  "this",      "threadIdx",    "throw",       "true",        "try",       "typedef",
    "typeid",   "typename",  "union",        "unsigned",    "using",       "virtual",   "void",
    "volatile", "while",     "workspace",    "xor",         "arguments",   "config",    "grid",
    "matrix",   "tessera",   "check",        "fail",        "attributes",  "kernel",    "TensorMap",
    "field",    "set_field", "two_bfloat16", "two_float16", "of_bfloat16", "of_float16"};

}  // namespace

Names::Names() : taken_(std::begin(reserved), std::end(reserved)) {}

std::string Names::claim(std::string_view wanted) {
  std::string base;
  for (const char c : wanted) base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (base.empty()) base = "_";
  if (std::isdigit(static_cast<unsigned char>(base.front())) != 0) base.insert(0, "v");
  std::string name = base;
  for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

}  // namespace tessera::lower
