// Pointwise chains, strided copies, rotary embeddings and reductions of them in the tile language.
#include <numeric>

#include "realize/common/tile_candidates.h"
#include "rules/pointwise.h"
#include "tile/build/pointwise.h"
#include "tile/build/rows.h"

namespace tessera::realize {
namespace {

using rules::PointwiseBody;

inline constexpr Code unsupported{"TS0442", "realize.tile_pointwise_unsupported"};

tile::build::PointwiseProblem problem_of(const PointwiseBody::Group& group,
                                         const std::vector<tile::Tensor>& tensors,
                                         std::string name) {
  tile::build::PointwiseProblem p{
      .name = std::move(name), .shape = group.shape, .tensors = tensors, .dag = group.dag};
  for (const rules::TensorView& v : group.operands) p.operands.push_back(strided(v));
  for (const rules::TensorView& v : group.outputs) p.outputs.push_back(strided(v));
  return p;
}

// All groups as kernels of one program, under one configuration.
Result<Space> plain(const PointwiseBody& body, const std::vector<tile::Tensor>& tensors,
                    const arch::Arch& arch) {
  std::vector<tile::build::PointwiseProblem> problems;
  for (std::size_t i = 0; i < body.groups.size(); ++i) {
    problems.push_back(problem_of(
        body.groups[i], tensors, body.groups.size() == 1 ? "pointwise" : fmt::format("part{}", i)));
  }
  if (problems.empty()) return error(fail(unsupported, "the pattern has no groups"));
  // The largest group decides the schedules that are tried.
  const auto largest =
      std::max_element(problems.begin(), problems.end(), [](const auto& a, const auto& b) {
        const auto size = [](const auto& p) {
          return std::accumulate(p.shape.begin(), p.shape.end(), int64_t{1}, std::multiplies<>());
        };
        return size(a) < size(b);
      });
  const auto configs = tile::build::pointwise_configs(*largest, tile::build::limits_of(arch));
  return tile_space("tile_pointwise", configs, arch,
                    [&](const tile::build::PointwiseConfig& c) -> Result<tile::Program> {
                      tile::Program program;
                      for (const auto& problem : problems) {
                        TESSERA_TRY(part, tile::build::pointwise(problem, c, target_of(arch)));
                        if (program.kernels.empty()) {
                          program = std::move(part);
                          continue;
                        }
                        for (tile::Kernel& k : part.kernels)
                          program.kernels.push_back(std::move(k));
                      }
                      return program;
                    });
}

Result<tile::build::RowKind> reduction_kind(const std::string& name) {
  if (name == "sum") return tile::build::RowKind::sum;
  if (name == "mean") return tile::build::RowKind::mean;
  if (name == "amax") return tile::build::RowKind::max;
  return error(fail(unsupported, "the tile compiler has no `{}` reduction yet", name));
}

// A reduction over trailing dims: rows of the flattened trailing dims, or everything at once.
Result<Space> reduced(const PointwiseBody& body, const std::vector<tile::Tensor>& tensors,
                      const arch::Arch& arch) {
  TESSERA_TRY(kind, reduction_kind(body.reduction));
  if (body.groups.size() != 1 || body.groups[0].outputs.size() != 1) {
    return error(fail(unsupported, "a reduction of {} groups with several results is not lowered",
                      body.groups.size()));
  }
  const PointwiseBody::Group& group = body.groups[0];
  const pointwise::Target target = target_of(arch);
  const tile::build::Limits limits = tile::build::limits_of(arch);
  const std::size_t rank = group.shape.size();
  const std::size_t kept = rank - static_cast<std::size_t>(body.reduced_dims);
  tile::build::RowProblem rows{
      .name = "reduce", .kind = kind, .tensors = tensors, .pre = group.dag, .post = body.finish};
  rows.row_shape.assign(group.shape.begin(),
                        group.shape.begin() + static_cast<std::ptrdiff_t>(kept));
  rows.columns = std::accumulate(group.shape.begin() + static_cast<std::ptrdiff_t>(kept),
                                 group.shape.end(), int64_t{1}, std::multiplies<>());
  // The reduced dims as one: every view must walk them with one stride.
  const auto flatten = [&](const rules::TensorView& v) -> Result<tile::build::StridedView> {
    tile::build::StridedView out = strided(v);
    for (std::size_t d = kept; d + 1 < rank && d + 1 < v.strides.size(); ++d) {
      if (v.strides[d] != v.strides[d + 1] * group.shape[d + 1]) {
        return error(fail(unsupported, "the reduced dims of {} are not one stride", v.to_string()));
      }
    }
    const int64_t last = v.strides.size() == rank ? v.strides.back() : 0;
    out.strides.resize(kept);
    out.strides.push_back(last);
    return out;
  };
  for (const rules::TensorView& v : group.operands) {
    TESSERA_TRY(flat, flatten(v));
    rows.operands.push_back(flat);
  }
  tile::build::StridedView output = strided(group.outputs[0]);
  output.strides.resize(kept);
  output.strides.push_back(0);
  rows.outputs = {output};
  if (kept > 0) {
    return tile_space(
        "tile_pointwise", tile::build::row_configs(rows, limits), arch,
        [&](const tile::build::RowConfig& c) { return tile::build::rows(rows, c, target); });
  }
  auto whole = problem_of(group, tensors, "reduce_all");
  whole.outputs = {output};
  return tile_space("tile_pointwise", tile::build::row_configs(rows, limits), arch,
                    [&](const tile::build::RowConfig& c) {
                      return tile::build::full_reduction(whole, kind, body.finish, c, target);
                    });
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph& g,
                      const arch::Arch& arch) {
  const auto* body = dynamic_cast<const PointwiseBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported, "the pattern has no pointwise body"));
  const std::vector<tile::Tensor> tensors = launch_tensors(pattern, g);
  return body->reduction.empty() ? plain(*body, tensors, arch) : reduced(*body, tensors, arch);
}

}  // namespace

extern const Realizer tile_pointwise = {
    .name = "tile_pointwise",
    .doc = "pointwise chains, copies, rotary embeddings and their reductions, in the tile language",
    .kind = Kind::synthesized,
    .rule = "pointwise",
    .realize = realize,
};

}  // namespace tessera::realize
