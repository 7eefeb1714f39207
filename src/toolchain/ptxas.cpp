#include "toolchain/ptxas.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "base/text.h"

namespace tessera::toolchain {
namespace {

// The number that ends right before `unit` in `line`: "Used 168 registers" with " registers" gives
// 168.
std::optional<int64_t> number_before(std::string_view line, std::string_view unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t begin = at;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
  if (begin == at) return std::nullopt;
  return std::stoll(std::string(line.substr(begin, at - begin)));
}

void keep_most(Json& j, const char* key, std::optional<int64_t> value) {
  if (!value) return;
  j[key] = std::max<int64_t>(j.value(key, int64_t{0}), *value);
}

// ptxas codes C7500 to C7599 tell of wgmma pipelines that were serialized or given up.
bool is_wgmma_warning(std::string_view line) {
  const std::size_t at = line.find("(C75");
  return at != std::string_view::npos;
}

}  // namespace

Json parse_ptxas(std::string_view log) {
  Json out = Json::object();
  Json warnings = Json::array();
  for (const std::string& line : split(log, '\n')) {
    keep_most(out, "registers", number_before(line, " registers"));
    keep_most(out, "shared_bytes", number_before(line, " bytes smem"));
    keep_most(out, "stack_bytes", number_before(line, " bytes stack frame"));
    const auto stores = number_before(line, " bytes spill stores");
    const auto loads = number_before(line, " bytes spill loads");
    if (stores || loads) keep_most(out, "spill_bytes", stores.value_or(0) + loads.value_or(0));
    if (is_wgmma_warning(line)) {
      const std::string text = trim(line);
      if (std::find(warnings.begin(), warnings.end(), Json(text)) == warnings.end())
        warnings.push_back(text);
    }
  }
  if (!warnings.empty()) {
    out["serialized_wgmma"] = true;
    out["warnings"] = std::move(warnings);
  }
  return out;
}

}  // namespace tessera::toolchain
