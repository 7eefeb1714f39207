// torch's scaled_dot_product_attention by each of its backends: cuDNN, flash, memory-efficient; on
// the host its own.
#include <array>

#include "realize/realize.h"
#include "rules/attention.h"

namespace tessera::realize {
namespace {

inline constexpr Code not_attention{"TS0430", "realize.library_unsupported"};

// Only what no run is needed to know; the backends themselves refuse the rest when they are
// verified.
std::optional<std::string> refusal(std::string_view backend, const rules::AttentionBody& body) {
  if (backend == "flash" && body.mask) return "flash attention of torch takes no mask";
  if ((backend == "flash" || backend == "cudnn") && body.q.dtype != DType::bfloat16 &&
      body.q.dtype != DType::float16) {
    return fmt::format("{} attention takes 16-bit types only", backend);
  }
  if (backend == "flash" && body.value_dim != body.head_dim)
    return "flash attention needs equal head dims";
  return std::nullopt;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::AttentionBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(not_attention, "the pattern has no attention body"));
  if (pattern.outputs.size() != 1)
    return error(fail(not_attention, "attention with more than one output"));
  if (body->softcap > 0)
    return error(fail(not_attention, "torch's scaled_dot_product_attention caps no scores"));
  if (body->band && !body->mask)
    return error(fail(not_attention, "torch's scaled_dot_product_attention takes no band"));
  if (body->causal && body->mask)
    return error(fail(not_attention, "torch takes a causal flag or a mask, not both"));
  Space space;
  constexpr std::array<std::string_view, 3> cuda = {"cudnn", "flash", "efficient"};
  constexpr std::array<std::string_view, 1> host = {"default"};
  const std::span<const std::string_view> backends = arch.device == "cuda"
                                                         ? std::span<const std::string_view>(cuda)
                                                         : std::span<const std::string_view>(host);
  for (const std::string_view backend : backends) {
    if (const auto why = refusal(backend, *body)) {
      space.pruned.emplace_back(*why, 1);
      continue;
    }
    Candidate c;
    c.realizer = "library_sdpa";
    c.kind = Kind::library;
    c.config = {{"backend", backend}};
    c.call = LibraryCall{.function = "sdpa", .arguments = {{"backend", backend}}};
    space.candidates.push_back(std::move(c));
  }
  return space;
}

}  // namespace

extern const Realizer library_sdpa = {
    .name = "library_sdpa",
    .doc =
        "torch's scaled_dot_product_attention: cuDNN, flash, memory-efficient; its own on the host",
    .kind = Kind::library,
    .rule = "attention",
    .realize = realize,
};

}  // namespace tessera::realize
