// kernels/gemm_slices.py and gemm_slices_tf32.py: the kernels are proved in their variants, give
// every element under several schedules of the interpreter, and are refuted with an edit of which
// slice takes which part of k, or of what is added up.
#include <gtest/gtest.h>
#include <random>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "proofs/checked_kernel.h"
#include "replay/replay.h"

namespace tessera::proofs {
namespace {

enum class File { general, tf32 };

std::string path_of(File file) {
  return file == File::tf32 ? "kernels/gemm_slices_tf32.py" : "kernels/gemm_slices.py";
}

std::string file_text(File file = File::general) {
  return read_file(source_folder() + "/" + path_of(file));
}

std::optional<core::Kernel> kernel_of(const std::string& text, const std::string& name,
                                      const Constants& constants, const std::string& means = "",
                                      File file = File::general) {
  std::map<std::string, int64_t> small;
  if (name == "partial")
    small = {{"BM", 64}, {"BN", 32}, {"BK", 16}, {"STAGES", 2}, {"K_MULTIPLE", 8}};
  if (file == File::tf32) small.erase("BK");
  return checked_kernel(path_of(file), text, name, {constants, means}, small);
}

/// Proved; the reference of the meaning finds each element right under some schedules.
void expect_right(const core::Kernel& kernel, std::map<std::string, int64_t> parameters,
                  int64_t multiprocessors, const std::map<std::string, std::size_t>& inputs) {
  const check::Report r = judged(kernel);
  ASSERT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
  simulate::Launch launch;
  for (const core::Term p : kernel.parameters)
    launch.parameters[p->symbol->name] = parameters.at(p->symbol->name);
  launch.multiprocessors = multiprocessors;
  std::mt19937_64 random(11);
  for (const auto& [name, size] : inputs)
    for (std::size_t i = 0; i < size; ++i)
      launch.inputs[name].push_back(static_cast<double>(random() % 3) - 1);
  const auto means = *check::means_of(kernel);
  const replay::Reference reference(kernel, *means, launch);
  const auto simulator = simulate::Simulator::make(kernel, launch);
  ASSERT_TRUE(simulator) << to_text(simulator.error());
  for (uint64_t seed = 0; seed < (thorough() ? 20 : 3); ++seed) {
    const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
    for (const Diagnostic& d : o.findings) ADD_FAILURE() << "seed " << seed << "\n" << to_text(d);
    EXPECT_EQ(reference.wrong_element(o), std::nullopt) << "seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
}

/// Elements from the first to the last of `rows` that lie `stride` apart.
std::size_t span(int64_t rows, int64_t stride, int64_t columns) {
  return static_cast<std::size_t>((rows - 1) * stride + columns);
}

struct Sizes {
  int64_t m = 72, n = 40, k = 104, slices = 3;
  int64_t multiprocessors = 4;
};

void expect_partial(const std::string& what, Constants c, const Sizes& s = {},
                    File file = File::general) {
  SCOPED_TRACE(what);
  const auto kernel = kernel_of(file_text(file), "partial", c, "", file);
  if (file == File::tf32) c["A_ORDER"] = 2;
  ASSERT_TRUE(kernel);
  const auto is = [&](const char* name, int64_t value) {
    const auto known = c.find(name);
    return known != c.end() && std::get<int64_t>(known->second) == value;
  };
  const int64_t a = (is("A_ORDER", 2) ? s.m : s.k) + 8, b = (is("B_ORDER", 2) ? s.n : s.k) + 8;
  const int64_t p = is("P_ORDER", 2) ? s.m + 8 : s.n + 8, across = is("P_ORDER", 2) ? s.n : s.m;
  expect_right(*kernel,
               {{"M", s.m},
                {"N", s.n},
                {"K", s.k},
                {"S", s.slices},
                {"A_STRIDE", a},
                {"B_STRIDE", b},
                {"P_STRIDE", p},
                {"P_SLICE", p * across}},
               s.multiprocessors,
               {{"A", is("A_ORDER", 2) ? span(s.k, a, s.m) : span(s.m, a, s.k)},
                {"B", is("B_ORDER", 2) ? span(s.k, b, s.n) : span(s.n, b, s.k)}});
}

TEST(Slices, OfAProductAreRightAndProved) {
  expect_partial("runs", {});
  expect_partial("interleaved", {{"SPREAD", 1}});
  expect_partial("turned, few columns", {{"P_ORDER", 2}, {"BN", 16}, {"BK", 64}, {"SPREAD", 1}},
                 {136, 16, 200, 3, 5});
  expect_partial("more slices than parts of k", {{"STAGES", 3}}, {64, 32, 24, 5, 3});
  if (!thorough()) return;
  expect_partial("one slice", {}, {72, 40, 40, 1, 4});
  expect_partial("several tiles a block", {{"SPREAD", 1}}, {136, 72, 72, 3, 2});
  expect_partial("m and n side by side",
                 {{"A_ORDER", 2}, {"B_ORDER", 2}, {"BM", 128}, {"BN", 64}, {"BK", 64}},
                 {136, 72, 200, 2, 4});
  for (const int64_t beside : {0, 1})
    expect_partial("clusters", {{"CLUSTER", 2}, {"BESIDE", beside}, {"BN", 64}, {"STAGES", 3}},
                   {136, 136, 104, 3, 4});
  expect_partial("128 rows a warpgroup", {{"BM", 256}, {"ROWS", 128}}, {264, 40, 72, 2, 4});
}

void expect_tf32(const std::string& what, const Constants& c, const Sizes& s = {}) {
  expect_partial(what, c, s, File::tf32);
}

TEST(Slices, OfAProductThroughRegistersAreRightAndProved) {
  expect_tf32("runs", {});
  expect_tf32("turned, a cluster", {{"P_ORDER", 2}, {"CLUSTER", 2}, {"SPREAD", 1}, {"STAGES", 3}},
              {136, 40, 200, 3, 4});
  if (!thorough()) return;
  expect_tf32("few columns", {{"BN", 16}, {"SPREAD", 1}}, {136, 16, 200, 3, 5});
  expect_tf32("more slices than parts of k", {{"STAGES", 3}}, {64, 32, 40, 5, 3});
  expect_tf32("one slice", {}, {72, 40, 40, 1, 4});
  expect_tf32("several tiles a block", {{"SPREAD", 1}}, {136, 72, 72, 3, 2});
  expect_tf32("several warpgroups", {{"BM", 128}}, {136, 40, 104, 3, 4});
  expect_tf32("128 rows a warpgroup", {{"BM", 256}, {"ROWS", 128}}, {264, 40, 72, 2, 4});
}

void expect_reduce(const std::string& what, const Constants& c, const Sizes& s) {
  SCOPED_TRACE(what);
  const auto kernel = kernel_of(file_text(), "reduce", c);
  ASSERT_TRUE(kernel);
  const int64_t p = (s.n + 3) / 4 * 4 + 8;
  expect_right(*kernel,
               {{"M", s.m},
                {"N", s.n},
                {"S", s.slices},
                {"P_STRIDE", p},
                {"P_SLICE", p * s.m},
                {"C_STRIDE", s.n + 8}},
               s.multiprocessors, {{"P", span(s.m * s.slices, p, s.n)}});
}

TEST(Slices, AreAddedUpRightlyWhichIsProved) {
  expect_reduce("odd extents", {{"AHEAD", 4}}, {5, 131, 0, 6, 2});
  expect_reduce("vectors", {{"AHEAD", 4}, {"N_MULTIPLE", 8}, {"C_MULTIPLE", 8}}, {9, 136, 0, 4, 2});
  if (!thorough()) return;
  expect_reduce("fewer slices than are loaded at once", {}, {4, 128, 0, 2, 2});
  expect_reduce("eight warps", {{"WARPS", 8}, {"AHEAD", 1}}, {17, 130, 0, 3, 3});
  expect_reduce("sixteen warps", {{"WARPS", 16}, {"AHEAD", 2}}, {17, 130, 0, 3, 3});
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted; nullptr: none has to be, but nothing is proved
  bool seen = true;  // by the interpreter, at the small launches that it takes
};

/// Not proved; where a kind is named, refuted by it, and what it shows is seen in a run.
void expect_found(const Edit& e, const std::string& kernel, const Constants& c,
                  File file = File::general) {
  SCOPED_TRACE(e.what);
  std::string text = file_text(file);
  const auto place = text.find(e.from, text.find("def " + kernel + "("));
  ASSERT_NE(place, std::string::npos);
  text.replace(place, std::string(e.from).size(), e.to);
  const auto edited = kernel_of(text, kernel, c, "", file);
  if (!edited) return;
  check::Report r = judged(*edited);
  EXPECT_NE(r.verdict(), check::Verdict::proved);
  if (e.kind == nullptr) return;
  ASSERT_EQ(r.find(e.kind)->verdict, check::Verdict::refuted) << to_text(r);
  replay::Replayer(*edited, *check::means_of(*edited)).replay(r);
  const Diagnostic& d = r.find(e.kind)->diagnostics.front();
  EXPECT_EQ(d.data.value("replayed", ""), e.seen ? "same" : "nothing") << to_text(d);
}

constexpr const char* part =
    "part(k.index * S + s.index if SPREAD == 1 else s.index * turns + "
    "k.index, BK)";
constexpr const char* turns = "turns = (cdiv(K, BK) - 1) // S + 1";

TEST(Slices, OfAProductWithAnEditAreRefuted) {
  const Edit edits[] = {
      {"a slice ends a turn early", turns, "turns = (cdiv(K, BK) - 1) // S", nullptr},
      {"turns are rounded down", turns, "turns = max(cdiv(K, BK) // S, 1)", "reduction", false},
      {"the last part of k is lost", turns, "turns = max((K // BK - 1) // S + 1, 1)", "reduction",
       false},
      {"slices overlap", part, "part(s.index * (turns - 1) + k.index, BK)", "reduction"},
      {"slices leave gaps", part, "part(s.index * (turns + 1) + k.index, BK)", "reduction"},
      {"the slice is doubled", part, "part((s.index // 2) * turns + k.index, BK)", "reduction"},
      {"the slice is left out", part, "part(k.index, BK)", "reduction"},
      {"a tile's row in the slice's place", part, "part(m.index * turns + k.index, BK)",
       "reduction"},
      {"slices of two orders", part, "part(k.index * S + s.index * turns, BK)", "reduction"},
      {"B of another slice", "tma.load(B[n, here]",
       "tma.load(B[n, part(s.index + turns + k.index, BK)]", "k_agreement"},
      {"stored as the next slice", "P[s.index, m[", "P[s.index + 1, m[", "reduction"},
      {"all are stored as the first", "P[s.index, m[", "P[0, m[", "reduction"},
      {"a wait is missing", "full[k].wait()\n                wgmma.fence()", "wgmma.fence()",
       "race_shared"},
  };
  int which = 0;
  for (const Edit& e : edits)
    if (thorough() || which++ % 2 == 0) expect_found(e, "partial", {});
}

constexpr const char* part_of_tf32 =
    "part(k.index * S + s.index if SPREAD == 1 else s.index * turns + k.index, 32)";

TEST(Slices, OfAProductThroughRegistersWithAnEditAreRefuted) {
  const Edit edits[] = {
      {"the last part of k is lost", "turns = (cdiv(K, 32) - 1) // S + 1",
       "turns = max((K // 32 - 1) // S + 1, 1)", "reduction"},
      {"slices overlap", part_of_tf32, "part(s.index * (turns - 1) + k.index, 32)", "reduction"},
      {"B of another slice", "tma.load(B[n, here]",
       "tma.load(B[n, part(s.index + turns + k.index, 32)]", "k_agreement"},
      {"the other half of A", "a[k, part(u, high), half]", "a[k, part(u, high), part(1 - h, 16)]",
       "k_agreement"},
      {"stored as the next slice", "P[s.index, m[", "P[s.index + 1, m[", "reduction"},
      {"threads' reads are not fenced", "fence.async_shared()", "wgmma.fence()", "proxy_fence"},
      {"a wait is missing", "full[k].wait()\n                for h", "for h", "race_shared"},
  };
  int which = 0;
  for (const Edit& e : edits)
    if (thorough() || which++ % 2 == 0) expect_found(e, "partial", {}, File::tf32);
}

constexpr const char* chunks = "range(cdiv(S, AHEAD))";
constexpr const char* later = "P[chunk * AHEAD + u + 1, m, n]";

TEST(Slices, AddedUpWithAnEditAreRefuted) {
  const Edit edits[] = {
      {"the last slices are lost", chunks, "range(S // AHEAD)", "reduction"},
      {"the first slices are lost", chunks, "range(1, cdiv(S, AHEAD))", nullptr},
      {"a slice is doubled", later, "P[chunk * AHEAD + u, m, n]", "reduction"},
      {"a slice is left out", "static_range(AHEAD - 1)", "static_range(AHEAD - 2)", "reduction"},
      {"slices of the chunk before", later, "P[chunk + u + 1, m, n]", nullptr},
      {"another row", later, "P[chunk * AHEAD + u + 1, part(m.index + 1, WARPS), n]", nullptr},
      {"the sum is not kept", "total[:] = total + more", "total[:] = more", nullptr},
      {"the sum begins at one", "total[:] = 0.0", "total[:] = 1.0", "placement"},
      {"the sum goes on from tile to tile", "total[:] = 0.0", "if m.index == 0: total[:] = 0.0",
       nullptr},
      {"what lies beyond is one", "load(P[chunk * AHEAD, m, n], like=total)",
       "load(P[chunk * AHEAD, m, n], like=total, fill=1.0)", nullptr},
      {"twice as much", "store(epilogue(total,", "store(2.0 * epilogue(total,", "placement"},
  };
  int which = 0;
  for (const Edit& e : edits)
    if (thorough() || which++ % 2 == 0) expect_found(e, "reduce", {{"AHEAD", 4}});
}

/// A function of the whole sum, with tensors of its own.
TEST(Slices, PassThroughTheEpilogue) {
  const std::string text = file_text() +
                           "\n\ndef scaled(x, batch, m, n, X: Tensor[f32, 1, \"N\"]):\n"
                           "    return relu(x * 0.5) + load(X[part(0, 1), n], like=x)\n";
  const Constants c = {{"AHEAD", 2}, {"epilogue", std::string("scaled")}};
  const auto judge = [&](const std::string& means) {
    const auto kernel = kernel_of(text, "reduce", c, means);
    return judged(*kernel).verdict();
  };
  const std::string sum = "sum(P[s, i, j], s)";
  EXPECT_EQ(judge("C[i, j] = relu(" + sum + " * 0.5) + X[0, j]"), check::Verdict::proved);
  EXPECT_EQ(judge("C[i, j] = relu(" + sum + ") * 0.25 + X[0, j]"), check::Verdict::refuted);
  EXPECT_EQ(judge("C[i, j] = relu(sum(P[i, s, j], s) * 0.5) + X[0, j]"), check::Verdict::unknown);
}

}  // namespace
}  // namespace tessera::proofs
