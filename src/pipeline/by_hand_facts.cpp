#include "pipeline/by_hand_facts.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>

#include "base/files.h"
#include "base/text.h"

namespace tessera::pipeline {
namespace {

std::vector<std::string> names_of(const std::vector<graph::ValueId>& values,
                                  const graph::Graph& g) {
  std::vector<std::string> out;
  for (const graph::ValueId id : values) out.push_back("%" + g.value(id).name);
  return out;
}

std::size_t tensors_of(const rules::Pattern& p) {
  return p.inputs.size() + p.outputs.size();
}

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

std::size_t described_tensors(const std::string& source) {
  constexpr std::size_t most_between = 16;  // quotes, a colon, blanks: `tensors\": [`
  const std::size_t function = source.find("tessera_describe");
  const std::size_t word =
      function == std::string::npos ? function : source.find("tensors", function);
  if (word == std::string::npos) return 0;
  const std::size_t open = source.find('[', word);
  if (open == std::string::npos || open > word + most_between) return 0;
  const std::size_t close = source.find(']', open);
  if (close == std::string::npos) return 0;
  // The list may be cut into several literals: what stands between names does not count.
  const std::string list = source.substr(open + 1, close - open - 1);
  std::size_t names = 0;
  for (const std::string& part : split(list, ',')) {
    names +=
        std::any_of(part.begin(), part.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  }
  return names;
}

std::string for_other_tensors(const std::string& source, const rules::Pattern& p,
                              const std::vector<rules::Pattern>& all, const graph::Graph& g) {
  constexpr std::size_t most = 4;
  const std::size_t described = described_tensors(source);
  if (described == 0 || described == tensors_of(p)) return "";
  std::string out = fmt::format(
      "the source is for {} tensors, as its tessera_describe says; pattern {} has {}: {} -> {}",
      described, p.id, tensors_of(p), join(names_of(p.inputs, g), ", "),
      join(names_of(p.outputs, g), ", "));
  std::vector<std::string> others;
  for (const rules::Pattern& o : all) {
    if (tensors_of(o) == described && others.size() < most)
      others.push_back(fmt::format("{} ({})", o.id, o.rule));
  }
  if (others.empty()) return out;
  return out + fmt::format("; {} {} {}: is it for {}?", join(others, ", "),
                           others.size() == 1 ? "has" : "have", described,
                           others.size() == 1 ? "that one" : "one of those");
}

attempt::Failure failure_of(const tune::Trial& trial) {
  using attempt::Failure;
  const std::string kind = trial.detail.value("kind", "");
  if (kind == attempt::name_of(Failure::forbidden)) return Failure::forbidden;
  switch (trial.outcome) {
    case tune::Outcome::crashed:
      return Failure::crash;
    case tune::Outcome::timed_out:
      return Failure::hang;
    default:
      break;
  }
  for (const Failure f : {Failure::non_finite, Failure::incomplete, Failure::out_of_bounds,
                          Failure::input_modified, Failure::out_of_memory, Failure::unsupported}) {
    if (kind == attempt::name_of(f)) return f;
  }
  return kind == "launch_failed" ? Failure::not_loadable : Failure::wrong_result;
}

}  // namespace tessera::pipeline
