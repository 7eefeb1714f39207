#include "mutations/subjects.h"

#include "base/files.h"

#include "core/testing/gemm.h"
#include "core/testing/mutate_cluster.h"
#include "language/language.h"

namespace tessera::mutations {
namespace {

using core::testing::GemmShape;
using core::testing::Mutant;
using Constants = std::map<std::string, language::Constant>;

/// Epilogues that a caller would write.
constexpr const char* functions = "\n\ndef relu_part(x, batch, m, n):\n    return relu(x * 0.5)\n";

/// The kernel `entry` of a kernel file, which `functions` are appended to. Constants that are not
/// given are `small`'s.
MutationSubject of_kernel_file(std::string name, const std::string& file, const std::string& entry,
                               const Constants& small, Constants constants,
                               const std::string& means = "") {
  constants.insert(small.begin(), small.end());
  return {std::move(name), [=](const std::string& root) {
            return language::elaborate({file, read_file(root + "/" + file) + functions}, entry,
                                       {constants, means});
          }};
}

/// kernels/gemm.py with these constants, others of small tiles.
MutationSubject of_file(std::string name, Constants constants, const std::string& means = "") {
  return of_kernel_file(std::move(name), "kernels/gemm.py", "gemm",
                        {{"BM", 64}, {"BN", 32}, {"PART", 32}, {"BK", 16}, {"STAGES", 2}},
                        std::move(constants), means);
}

/// Products whose operands come through registers: of tf32, and of float32's parts.
MutationSubject of_tf32(std::string name, Constants constants) {
  const Constants small = {{"BM", 64}, {"BN", 32}, {"STAGES", 2}};
  return of_kernel_file(std::move(name), "kernels/gemm_tf32.py", "gemm", small,
                        std::move(constants));
}

MutationSubject of_slices_tf32(std::string name, Constants constants) {
  const Constants small = {{"BM", 64}, {"BN", 32}, {"STAGES", 2}};
  return of_kernel_file(std::move(name), "kernels/gemm_slices_tf32.py", "partial", small,
                        std::move(constants));
}

MutationSubject of_fp32(std::string name, Constants constants) {
  const Constants small = {{"BN", 64}, {"STAGES", 2}, {"PROMOTE", 2}};
  return of_kernel_file(std::move(name), "kernels/gemm_fp32.py", "gemm", small,
                        std::move(constants));
}

MutationSubject of_unaligned(std::string name, Constants constants) {
  const Constants small = {{"BM", 64}, {"BN", 32}, {"STAGES", 2}};
  return of_kernel_file(std::move(name), "tests/kernels/gemm_unaligned.py", "gemm", small,
                        std::move(constants));
}

/// The sum over slices.
MutationSubject of_reduce(std::string name, Constants constants) {
  return of_kernel_file(std::move(name), "kernels/gemm_slices.py", "reduce", {{"AHEAD", 4}},
                        std::move(constants));
}

MutationSubject of_copies(std::string name, Constants constants) {
  return of_kernel_file(std::move(name), "kernels/copies.py", "copy",
                        {{"WARPS", 2}, {"VECTORS", 2}}, std::move(constants));
}

/// Attention with a block for each tile, others of small tiles.
MutationSubject of_attention(std::string name, Constants constants) {
  const Constants small = {{"D", 32}, {"KEYS", 16}, {"GROUPS", 1}, {"TURNS", 0}, {"STAGES", 2}};
  return of_kernel_file(std::move(name), "tests/kernels/attention_tiles.py", "attention", small,
                        std::move(constants));
}

MutationSubject of_generator(std::string name, const GemmShape& shape) {
  return {std::move(name), [=](const std::string&) { return core::testing::gemm(shape); }};
}

MutationSubject storages_of(MutationSubject s) {
  s.storages = true;
  return s;
}

constexpr int64_t yes = 1;

}  // namespace

const std::vector<MutationSubject>& mutation_subjects() {
  using core::testing::Epilogue;
  const Constants batches = {{"BATCHES", yes}, {"A_BATCHES", yes}, {"B_BATCHES", yes}};
  static const std::vector<MutationSubject> all = {
      of_file("plain", {{"STAGES", 3}, {"BM", 128}}),
      of_file("clusters", {{"CLUSTER", 2}}),
      of_file("clusters_beside", {{"CLUSTER", 2}, {"BESIDE", yes}}),
      of_file("turns", {{"TURNS", 2}}),
      of_file("direct", {{"DIRECT", yes}}),
      of_file("turns_direct", {{"TURNS", 2}, {"DIRECT", yes}, {"STAGES", 3}}),
      of_file("columns", {{"A_ORDER", 2}, {"B_ORDER", 2}, {"BN", 64}, {"PART", 64}}),
      of_file("batches", batches),
      of_file("tf32", {{"ELEMENT", "f32"},
                       {"DIRECT", yes},
                       {"ROUND", yes},
                       {"M_MULTIPLE", 4},
                       {"N_MULTIPLE", 4},
                       {"K_MULTIPLE", 4}}),
      of_file("relu", {{"epilogue", "relu_part"}},
              "C[i, j] = relu(sum(A[i, k] * B[j, k], k) * 0.5)"),
      of_tf32("tf32_registers", {}),
      of_tf32("tf32_registers_turns", {{"TURNS", 2}, {"STAGES", 3}, {"CLUSTER", 2}, {"DIRECT", 0}}),
      of_slices_tf32("slices_tf32", {{"CLUSTER", 2}, {"P_ORDER", 2}}),
      of_fp32("fp32", {}),
      of_unaligned("unaligned", {{"WIDTH", 2}}),
      of_reduce("added_up", {}),
      of_copies("copies", {{"WIDTH", 2}}),
      of_generator("residual",
                   {.bm = 64, .bn = 64, .bk = 16, .stages = 2, .epilogue = Epilogue::residual}),
      of_generator("bias_direct", {.bm = 64,
                                   .bn = 64,
                                   .bk = 16,
                                   .stages = 2,
                                   .batched = true,
                                   .epilogue = Epilogue::bias,
                                   .direct = true}),
      of_attention("attention", {{"STAGES", 3}}),
      of_attention("attention_causal", {{"CAUSAL", yes}}),
      of_attention("attention_turns", {{"GROUPS", 2}, {"TURNS", yes}}),
      storages_of(of_file("storages", {{"STAGES", 3}})),
      storages_of(of_file("storages_clusters", {{"CLUSTER", 2}})),
      storages_of(of_file("storages_direct", {{"DIRECT", yes}})),
  };
  return all;
}

const std::vector<MutationSubject>& correct_variants() {
  static const std::vector<MutationSubject> all = [] {
    std::vector<MutationSubject> out;
    const auto add = [&](const std::string& name, Constants c) {
      out.push_back(of_file(name, std::move(c)));
    };
    const std::vector<std::pair<std::string, Constants>> ways = {
        {"one block", {}},
        {"clusters", {{"CLUSTER", 2}}},
        {"clusters beside", {{"CLUSTER", 2}, {"BESIDE", yes}}},
        {"turns", {{"TURNS", 2}}},
        {"turns in clusters", {{"TURNS", 2}, {"CLUSTER", 2}}},
        {"direct", {{"DIRECT", yes}}},
        {"batches", {{"BATCHES", yes}, {"A_BATCHES", yes}, {"B_BATCHES", yes}}}};
    const std::vector<std::pair<std::string, Constants>> tiles = {
        {"128x256, 4 stages", {{"BM", 128}, {"BN", 256}, {"PART", 64}, {"BK", 64}, {"STAGES", 4}}},
        {"64x32, 2 stages", {}},
        {"64x192, 5 stages", {{"BN", 192}, {"PART", 64}, {"BK", 32}, {"STAGES", 5}}},
        {"192x128, 3 stages", {{"BM", 192}, {"BN", 128}, {"PART", 64}, {"BK", 64}, {"STAGES", 3}}},
        {"columns",
         {{"A_ORDER", 2}, {"B_ORDER", 2}, {"BN", 64}, {"PART", 64}, {"BK", 64}, {"STAGES", 3}}},
        {"16 columns", {{"BN", 16}, {"PART", 16}}},
        {"rows apart", {{"A_ORDER", yes}, {"B_ORDER", yes}, {"C_ORDER", yes}, {"STAGES", 6}}}};
    for (const auto& [way, one] : ways)
      for (const auto& [tile, two] : tiles) {
        // Two roles of three warpgroups and the producer are more threads than a block has, and
        // stages of the largest tile leave no room for the results of two.
        const bool turns = one.contains("TURNS");
        if (turns && (tile.starts_with("192") || tile.starts_with("128x256"))) continue;
        Constants both = one;
        both.insert(two.begin(), two.end());
        add(way + ", " + tile, both);
      }
    using core::testing::Epilogue;
    for (const bool direct : {false, true})
      for (const auto& [name, e] : {std::pair{"relu", Epilogue::relu},
                                    {"bias", Epilogue::bias},
                                    {"residual", Epilogue::residual}})
        out.push_back(of_generator(fmt::format("{}{}", name, direct ? ", direct" : ""),
                                   {.bn = 128, .stages = 3, .epilogue = e, .direct = direct}));
    for (const int64_t causal : {0, 1})
      for (const auto& [name, c] : std::map<std::string, Constants>{
               {"one consumer", {}},
               {"two consumers by turns", {{"GROUPS", 2}, {"TURNS", yes}}},
               {"three consumers", {{"GROUPS", 3}, {"D", 64}, {"KEYS", 32}}},
               {"strides", {{"STRIDED", yes}, {"STAGES", 3}}}}) {
        Constants both = c;
        both["CAUSAL"] = causal;
        out.push_back(of_attention(
            fmt::format("attention{}, {}", causal == 1 ? " with a mask" : "", name), both));
      }
    add("twice the rows", {{"BM", 128}, {"ROWS", 128}, {"BN", 128}, {"PART", 64}, {"TURNS", 2}});
    return out;
  }();
  return all;
}

std::vector<Mutant> mutants_of(const core::Kernel& kernel, bool storages, int sites) {
  std::vector<std::vector<Mutant>> all;
  if (storages)
    all = {core::testing::storage_mutants(kernel)};
  else
    all = {core::testing::mutants(kernel), core::testing::result_mutants(kernel),
           core::testing::power_mutants(kernel), core::testing::cluster_mutants(kernel)};
  std::vector<Mutant> out;
  for (const std::vector<Mutant>& some : all)
    for (const Mutant& m : some) {
      if (m.site >= sites || (kernel.means.empty() && m.breaks == core::testing::Breaks::data))
        continue;
      out.push_back(m);
    }
  return out;
}

}  // namespace tessera::mutations
