#include "proofs/attention_variant.h"

#include <stdexcept>

#include "base/files.h"
#include "base/source_folder.h"

namespace tessera::proofs {

std::string attention_text() {
  return read_file(source_folder() + "/kernels/attention.py");
}

std::string edited_attention(const std::string& from, const std::string& to) {
  std::string text = attention_text();
  const std::size_t at = text.find(from, text.find("def attention"));
  if (at == std::string::npos) throw std::runtime_error("kernels/attention.py lacks: " + from);
  return text.replace(at, from.size(), to);
}

check::Report attention_report(const std::string& text, Constants constants) {
  constants.insert({{"D", int64_t{32}}, {"KEYS", int64_t{16}}, {"GROUPS", int64_t{1}}});
  constants.insert({"TURNS", std::get<int64_t>(constants.at("GROUPS")) > 1 ? 1 : 0});
  const auto kernel = language::elaborate({"attention.py", text}, "attention", {constants});
  if (!kernel) throw std::runtime_error(to_text(kernel.error()));
  const auto means = check::means_of(*kernel);
  if (!means) throw std::runtime_error(to_text(means.error()));
  return check::check(*kernel, {}, *means);
}

}  // namespace tessera::proofs
