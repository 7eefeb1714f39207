#include "pipeline/by_hand_facts.h"

#include <filesystem>
#include <regex>

#include "base/files.h"
#include "base/text.h"

namespace tessera::pipeline {
namespace {

/// Bytes of the elements that a tensor is filled with: a quarter, the index 0, true.
std::string filling(DType t) {
  switch (t) {
    case DType::float64:
      return std::string("\0\0\0\0\0\0\xd0\x3f", 8);
    case DType::float32:
      return std::string("\0\0\x80\x3e", 4);
    case DType::bfloat16:
      return std::string("\x80\x3e", 2);
    case DType::float16:
      return std::string("\0\x34", 2);
    case DType::boolean:
      return std::string("\1", 1);
    default:
      return std::string(1, '\0');
  }
}

}  // namespace

int line_in(const std::string& message) {
  static const std::regex place(R"(source\.(?:cpp|cu)[:(](\d+))");
  std::smatch found;
  return std::regex_search(message, found, place) ? std::stoi(found[1]) : 0;
}

std::vector<std::string> warnings_of(const toolchain::Built& built) {
  constexpr std::size_t most = 8;
  std::vector<std::string> out;
  const std::filesystem::path log = built.library.parent_path() / "log.txt";
  if (!std::filesystem::exists(log)) return out;
  for (const std::string& line : split(read_file(log), '\n')) {
    if (out.size() == most || line.find("warning") == std::string::npos) continue;
    const std::size_t at = line.rfind("source.c", line.find("warning"));
    out.push_back(trim(at == std::string::npos ? line : line.substr(at)));
  }
  return out;
}

std::vector<toolchain::Storage> storages(const rules::Pattern& p, const graph::Graph& g) {
  std::vector<toolchain::Storage> out;
  for (const auto& list : {p.inputs, p.outputs}) {
    for (const graph::ValueId id : list) {
      const graph::TensorType& t = g.value(id).type;
      int64_t extent = t.numel() > 0 ? 1 : 0;
      for (std::size_t d = 0; d < t.shape.size() && extent > 0; ++d)
        extent += (t.shape[d] - 1) * t.strides[d];
      out.push_back({.bytes = extent * size_of(t.dtype), .element = filling(t.dtype)});
    }
  }
  return out;
}

}  // namespace tessera::pipeline
