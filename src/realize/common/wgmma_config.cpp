#include "realize/common/wgmma_config.h"

#include <algorithm>

#include "realize/common/wgmma_parts_text.h"

namespace tessera::realize {
namespace {

constexpr int split_depth = 16;
constexpr int depth_16bit = 64;
constexpr int tf32_depth = 32;
constexpr int packed_buffers = 3;
constexpr int store_columns = 32;

}  // namespace

int widest_result(const GemmProblem& p) {
  int widest = 0;
  for (const Matrix& d : p.outputs) widest = std::max(widest, size_of(d.dtype));
  return widest;
}

int products_of(const GemmProblem& p) {
  return p.paired() ? 2 : 1;
}

Json WgmmaConfig::to_json() const {
  Json j = {{"tile", {rows, columns, wgmma_depth(*this)}},
            {"cluster", {cluster_m, cluster_n}},
            {"schedule", schedule == Schedule::cooperative ? "cooperative" : "pingpong"},
            {"stages", stages},
            {"scheduler", "persistent"}};
  if (split) j["mainloop"] = "split_registers";
  if (sliced) j["split"] = "batched";
  return j;
}

int wgmma_depth(const WgmmaConfig& c) {
  return c.split ? split_depth : c.tf32 ? tf32_depth : depth_16bit;
}

int wgmma_stages(const WgmmaConfig& c, const GemmProblem& p, int64_t shared_bytes) {
  const int64_t both = c.rows + c.columns;
  const int64_t stage = both * wgmma_depth(c) * size_of(p.a.dtype);
  const int64_t packed = c.split ? int64_t{packed_buffers} * c.columns * 128 : 0;
  const int64_t stores =
      int64_t{2} * wgmma_store_buffers * 64 * store_columns * (c.sliced ? 4 : widest_result(p));
  constexpr int64_t barriers = 512;
  constexpr int64_t most = 12;
  return static_cast<int>(std::min((shared_bytes - packed - stores - barriers) / stage, most));
}

std::optional<std::string> wgmma_refuses(const WgmmaConfig& c, const GemmProblem& p) {
  const int products = products_of(p);
  const int result_columns = c.columns / products;
  if (c.cluster_m * c.cluster_n > 2) return "clusters of more than two";
  if (c.columns > 256 || c.columns % products != 0) return "wider than one wgmma";
  if (result_columns % store_columns != 0) return "results are stored by 32 columns";
  if (auto reason = wgmma_refuses_parts(result_columns, p)) return reason;
  const int group = c.schedule == Schedule::pingpong ? c.rows : c.rows / 2;
  if (group % 64 != 0 || group > 128) return "a warpgroup multiplies 64 or 128 rows";
  if (c.tf32) {
    if (!p.a.columns_contiguous || !p.b.columns_contiguous) return "tf32 operands are read along K";
  } else if (!c.split) {
    if (!p.b.columns_contiguous) {
      if (result_columns % 64 != 0) return "N-major weights come in blocks of 64";
      if (c.cluster_m == 2 && result_columns % 128 != 0)
        return "two blocks share N-major weights in blocks of 64";
    }
    if (!p.a.columns_contiguous && c.cluster_n == 2 && c.rows % 128 != 0)
      return "two blocks share M-major rows in blocks of 64";
  }
  return std::nullopt;
}

}  // namespace tessera::realize
