#include "tile/build/rows.h"

namespace tessera::tile::build {
namespace {

constexpr std::pair<RowKind, std::string_view> kinds[] = {
    {RowKind::layer_norm, "layer_norm"},
    {RowKind::rms_norm, "rms_norm"},
    {RowKind::softmax, "softmax"},
    {RowKind::log_softmax, "log_softmax"},
    {RowKind::sum, "sum"},
    {RowKind::mean, "mean"},
    {RowKind::max, "max"},
};

}  // namespace

std::string_view name_of(RowKind k) {
  for (const auto& [kind, name] : kinds)
    if (kind == k) return name;
  return "?";
}

Result<RowKind> parse_row_kind(std::string_view name) {
  for (const auto& [kind, text] : kinds)
    if (text == name) return kind;
  return error(fail(bad_program, "no row kernel is called `{}`", name));
}

}  // namespace tessera::tile::build
