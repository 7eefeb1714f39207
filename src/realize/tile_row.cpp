// Row normalizations in the tile language: the row is read once, kept on chip, and written once.
#include "realize/common/tile_candidates.h"
#include "rules/row_norm.h"
#include "tile/build/rows.h"

namespace tessera::realize {
namespace {

inline constexpr Code not_rows{"TS0441", "realize.tile_row_unsupported"};

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph& g,
                      const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::RowNormBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(not_rows, "the pattern has no row_norm body"));
  TESSERA_TRY(kind, tile::build::parse_row_kind(body->kind));
  tile::build::RowProblem problem{.name = body->kind,
                                  .kind = kind,
                                  .row_shape = body->rows,
                                  .columns = body->columns,
                                  .eps = body->eps,
                                  .tensors = launch_tensors(pattern, g),
                                  .pre = body->pre,
                                  .post = body->post};
  for (const rules::TensorView& v : body->operands) problem.operands.push_back(strided(v));
  for (const rules::TensorView& v : body->outputs) problem.outputs.push_back(strided(v));
  return tile_space("tile_row", tile::build::row_configs(problem, tile::build::limits_of(arch)),
                    arch, [&](const tile::build::RowConfig& c) {
                      return tile::build::rows(problem, c, target_of(arch));
                    });
}

}  // namespace

extern const Realizer tile_row = {
    .name = "tile_row",
    .doc =
        "layer norm, RMS norm, softmax, log-softmax with pointwise work around them, in the tile "
        "language",
    .kind = Kind::synthesized,
    .rule = "row_norm",
    .realize = realize,
};

}  // namespace tessera::realize
