// kernels/attention.py in its variants, run by the interpreter: every element of O beside softmax
// in double, under several schedules; what the checker proves of them; and edits that are found.
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "core/verify.h"
#include "language/language.h"
#include "lower/lower.h"
#include "simulate/simulate.h"

namespace tessera::proofs {
namespace {

using Constants = std::map<std::string, language::Constant>;

struct Case {
  Constants constants;
  int64_t queries = 70, keys = 50, heads = 2, shared_heads = 1, batches = 1;
  int64_t multiprocessors = 2;  // fewer than tiles, which blocks take one after the other
  [[nodiscard]] int64_t constant(const std::string& name, int64_t otherwise) const {
    const auto known = constants.find(name);
    return known == constants.end() ? otherwise : std::get<int64_t>(known->second);
  }
  [[nodiscard]] int64_t dim() const { return constant("D", 64); }
  [[nodiscard]] double cap() const {
    const auto known = constants.find("CAP");
    return known == constants.end() ? 0 : std::stod(std::get<std::string>(known->second));
  }
  [[nodiscard]] int64_t mask() const { return constant("MASK", 0); }
  /// The element of the mask for a batch, a head, a query and a key. Heads share rows of it.
  [[nodiscard]] std::size_t mask_at(int64_t b, int64_t i, int64_t j) const {
    const int64_t rows = constant("MASK_ROWS", 1) == 1 ? queries : 1, row = keys + keys % 2;
    return static_cast<std::size_t>((b * rows + i % rows) * row + j);
  }
  /// Whether query i sees key j, as the file says of CAUSAL, LEFT and RIGHT.
  [[nodiscard]] bool sees(int64_t i, int64_t j) const {
    const int64_t at = i + keys - queries, left = constant("LEFT", -1),
                  right = constant("CAUSAL", 0) == 1 ? 0 : constant("RIGHT", -1);
    return (left < 0 || at - left <= j) && (right < 0 || j <= at + right);
  }
  /// Element (batch, head, row, column): dense, or [batch, row, head, column] with a gap.
  [[nodiscard]] std::size_t at(int64_t of_heads, int64_t of_rows, int64_t b, int64_t h, int64_t i,
                               int64_t c) const {
    const bool strided = constant("STRIDED", 0) == 1;
    const int64_t row = of_heads * dim() + 8;
    return static_cast<std::size_t>(strided ? (b * of_rows + i) * row + h * dim() + c
                                            : ((b * of_heads + h) * of_rows + i) * dim() + c);
  }
};

std::string text_of_kernel() {
  return read_file(source_folder() + "/kernels/attention.py");
}

core::Kernel kernel_of(const Case& c, const std::string& text) {
  Constants constants = c.constants;
  for (const auto& [name, value] : std::map<std::string, int64_t>{{"D", 64}, {"KEYS", 16}})
    constants.try_emplace(name, value);
  Result<core::Kernel> k = language::elaborate({"attention.py", text}, "attention", {constants});
  if (!k) throw std::runtime_error(to_text(k.error()));
  return std::move(*k);
}

simulate::Launch launch_of(const Case& c, const core::Kernel& kernel) {
  const int64_t d = c.dim();
  std::map<std::string, int64_t> known = {
      {"TQ", c.queries}, {"TK", c.keys}, {"H", c.heads}, {"G", c.shared_heads}, {"B", c.batches}};
  simulate::Launch out;
  out.multiprocessors = c.multiprocessors;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 1.5);
  // Eighths, which 16 bits hold.
  for (const std::string tensor : {"Q", "K", "V", "O"}) {
    const bool wide = tensor == "Q" || tensor == "O";
    const int64_t heads = wide ? c.heads : c.shared_heads, rows = wide ? c.queries : c.keys;
    known[tensor + "_ROW"] = heads * d + 8;
    known[tensor + "_HEAD"] = d;
    known[tensor + "_BATCH"] = rows * (heads * d + 8);
    if (tensor == "O") continue;
    const std::size_t last = c.at(heads, rows, c.batches - 1, heads - 1, rows - 1, d - 1);
    for (std::size_t i = 0; i <= last; ++i)
      out.inputs[tensor].push_back(std::round(normal(random) * 8) / 8);
  }
  if (c.mask() > 0) {
    known["M_ROW"] = c.keys + c.keys % 2;
    known["M_HEAD"] = 0;
    known["M_BATCH"] = static_cast<int64_t>(c.mask_at(1, 0, 0));
    // Of query 3 every key is hidden; of query 5 by the least number, which is none too few.
    std::vector<double>& mask = out.inputs["M"];
    mask.resize(c.mask_at(c.batches - 1, c.queries - 1, c.keys - 1) + 1);
    for (int64_t b = 0; b < c.batches; ++b)
      for (int64_t i = 0; i < c.queries; ++i)
        for (int64_t j = 0; j < c.keys; ++j) {
          const bool shown = i != 3 && random() % 4 != 0;
          const double least = -3.3895313892515355e38;  // of bfloat16
          mask[c.mask_at(b, i, j)] = c.mask() == 1 ? (shown ? 1 : 0)
                                     : i == 5      ? least
                                     : shown       ? std::round(normal(random) * 8) / 8
                                                   : -std::numeric_limits<double>::infinity();
        }
  }
  for (const core::Term p : kernel.parameters)
    out.parameters[p->symbol->name] = known.at(p->symbol->name);
  return out;
}

/// The first row of O that is not softmax(Q K^T / sqrt(D)) V to the accuracy of bfloat16 powers.
std::string wrong_row(const Case& c, const simulate::Launch& l, const std::vector<double>& o) {
  const int64_t d = c.dim();
  const std::vector<double>&q = l.inputs.at("Q"), &k = l.inputs.at("K"), &v = l.inputs.at("V");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (int64_t b = 0; b < c.batches; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.queries; ++i) {
        const int64_t g = h * c.shared_heads / c.heads;
        std::vector<double> powers;
        double total = 0, most = -infinity;
        for (int64_t j = 0; j < c.keys; ++j) {
          // Of a row the elements lie side by side.
          const std::size_t of_q = c.at(c.heads, c.queries, b, h, i, 0),
                            of_k = c.at(c.shared_heads, c.keys, b, g, j, 0);
          double score = 0;
          for (std::size_t x = 0; x < static_cast<std::size_t>(d); ++x)
            score += q[of_q + x] * k[of_k + x];
          score /= std::sqrt(static_cast<double>(d));
          if (c.cap() > 0) score = c.cap() * std::tanh(score / c.cap());
          if (c.mask() == 1 && l.inputs.at("M")[c.mask_at(b, i, j)] == 0) score = -infinity;
          if (c.mask() == 2) score += l.inputs.at("M")[c.mask_at(b, i, j)];
          powers.push_back(c.sees(i, j) ? score : -infinity);
          most = std::max(most, powers.back());
        }
        for (double& p : powers) total += p = most == -infinity ? 0 : std::exp(p - most);
        const bool zero = total == 0 && c.mask() > 0;
        std::vector<double> sums(static_cast<std::size_t>(d), 0);
        for (int64_t j = 0; j < c.keys; ++j) {
          const double share = powers[static_cast<std::size_t>(j)] / (zero ? 1 : total);
          const std::size_t of_v = c.at(c.shared_heads, c.keys, b, g, j, 0);
          for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += share * v[of_v + x];
        }
        for (int64_t x = 0; x < d; ++x) {
          const double sum = sums[static_cast<std::size_t>(x)],
                       found = o[c.at(c.heads, c.queries, b, h, i, x)];
          if (total == 0 && !zero ? !std::isnan(found) : !(std::abs(found - sum) < 0.03))
            return fmt::format("O[{}, {}, {}, {}] is {}, not {}", b, h, i, x, found, sum);
        }
      }
  return "";
}

/// What a few schedules show: the first finding, or a wrong row.
std::string shown(const Case& c, const core::Kernel& kernel, int64_t schedules) {
  const simulate::Launch launch = launch_of(c, kernel);
  const Result<simulate::Simulator> simulator = simulate::Simulator::make(kernel, launch);
  if (!simulator) return to_text(simulator.error());
  for (int64_t seed = 0; seed < schedules; ++seed) {
    const simulate::Outcome o = simulator->run(simulate::Schedule::seeded(seed));
    if (!o.findings.empty()) return to_text(o.findings.front());
    if (std::string wrong = wrong_row(c, launch, o.outputs.at("O")); !wrong.empty()) return wrong;
  }
  return "";
}

void expect_right(const Case& c, int64_t schedules = 2) {
  const core::Kernel kernel = kernel_of(c, text_of_kernel());
  const auto arch = arch::find("sm_90a");
  ASSERT_TRUE(arch);
  for (const Diagnostic& d : core::verify(kernel, **arch)) ADD_FAILURE() << to_text(d);
  const auto text = lower::lower(kernel);
  EXPECT_TRUE(text) << to_text(text.error());
  EXPECT_EQ(shown(c, kernel, schedules), "");
}

const Constants alone = {{"GROUPS", int64_t{1}}, {"TURNS", int64_t{0}}};

Case small(const Constants& more, Case c = {}) {
  c.constants = alone;
  for (const auto& [name, value] : more) c.constants[name] = value;
  return c;
}

TEST(AttentionValues, StepsOneTwoAndMoreThanSlots) {
  for (int64_t keys : {9, 32, 50}) expect_right(small({}, {.queries = 40, .keys = keys}));
}
TEST(AttentionValues, SharedHeadsAndBatchesWithStrides) {
  expect_right(small({{"STRIDED", int64_t{1}}, {"ELEMENT", std::string("bf16")}},
                     {.queries = 20, .keys = 24, .heads = 4, .shared_heads = 2, .batches = 2}),
               1);
}
TEST(AttentionValues, Causal) {
  expect_right(small({{"CAUSAL", int64_t{1}}}, {.queries = 70, .keys = 70, .heads = 1}));
  expect_right(small({{"CAUSAL", int64_t{1}}}, {.queries = 20, .keys = 50, .heads = 1}));
}
TEST(AttentionValues, Windows) {
  const Constants left = {{"LEFT", int64_t{20}}, {"CAUSAL", int64_t{1}}, {"D", int64_t{32}}},
                  both = {{"LEFT", int64_t{5}}, {"RIGHT", int64_t{9}}, {"D", int64_t{32}}};
  expect_right(small(left, {.queries = 70, .keys = 100, .heads = 1}), 1);
  expect_right(small(both, {.queries = 130, .keys = 100, .heads = 1}), 1);  // rows without a key
  if (!thorough()) return;
  for (const Constants& window : {left, both, Constants{{"LEFT", int64_t{0}}}})
    for (const int64_t keys : {1, 50, 90, 150})
      expect_right(small(window, {.queries = 90, .keys = keys, .heads = 1}));
}
TEST(AttentionValues, CappedScores) {
  expect_right(small({{"CAP", std::string("2.5")}, {"CAUSAL", int64_t{1}}, {"D", int64_t{32}}},
                     {.queries = 40, .keys = 40, .heads = 1}),
               1);
}
/// As scaled_dot_product_attention has it: rows of which each key is hidden are 0.
TEST(AttentionValues, MaskTensors) {
  const Constants shows = {{"MASK", int64_t{1}}, {"D", int64_t{32}}},
                  added = {{"MASK", int64_t{2}}, {"D", int64_t{32}}, {"MULTIPLE", int64_t{2}}};
  const Case uneven{.queries = 70, .keys = 45, .heads = 2, .batches = 2};
  const Case even{.queries = 70, .keys = 46, .heads = 2};
  const auto with = [](Constants c, const Constants& more) {
    for (const auto& [name, value] : more) c[name] = value;
    return c;
  };
  expect_right(small(shows, uneven), 1);
  expect_right(small(with(shows, {{"MULTIPLE", int64_t{2}}, {"CAUSAL", int64_t{1}}}), even), 1);
  expect_right(small(added, even), 1);
  expect_right(small(with(added, {{"MASK_ELEMENT", std::string("f32")},
                                  {"CAP", std::string("2.5")},
                                  {"MASK_ROWS", int64_t{0}}}),
                     {.queries = 70, .keys = 50, .heads = 1}),
               1);
}
TEST(AttentionValues, TilesOfDifferentSteps) {
  // One to three steps, for each of three heads, in sections of two, dealt to two blocks.
  Case c = small(
      {{"CAUSAL", int64_t{1}}, {"D", int64_t{32}}, {"KEYS", int64_t{64}}, {"SECTION", int64_t{2}}},
      {.queries = 140, .keys = 140, .heads = 3});
  expect_right(c, 1);
  if (!thorough()) return;
  c.constants["Q_SLOTS"] = int64_t{1};
  expect_right(c, 20);
}
TEST(AttentionValues, HeadsOf96AndConsumersInTurns) {
  Case c{.constants = {{"D", int64_t{96}}}, .queries = 100, .keys = 40, .heads = 1};
  expect_right(c);
  if (!thorough()) return;
  c.constants["GROUPS"] = int64_t{3};
  expect_right(c, 20);
}

struct Edit {
  std::string from, to;
  bool refuted;  // by the checker: what is wrong is no matter of values
};

TEST(AttentionValues, EditsAreFound) {
  const std::vector<Edit> edits = {
      {"                    v_full[step - 1].wait()\n", "", true},
      {"                k_empty[step].wait()\n", "", true},
      {"                    wgmma.wait(1)\n", "                    wgmma.wait(2)\n", true},
      {"                    sums *= factor\n", "                    pass\n", false},
      {"else end <= key", "else end < key", false},
      {"            fence.async_shared()\n", "", true},
      {"wgmma(powers, v[step - 1].T, sums)", "wgmma(powers, v[step].T, sums)", true},
      {"first_key + indices(scores, axis=1)", "first_key + indices(scores, axis=0)", false},
      {"total[:] = total * factor + ", "total[:] = total + ", false},
      {"                    v_empty[step - 1].arrive()\n", "", true},
      {"                v_empty[step].wait()\n", "", true},
      {"            q_full[work.turn].wait()\n", "", true},
      {"            q_empty[work.turn].wait()\n", "", true},
      {"                k_empty[step].arrive()\n", "", true},
      {"            sums[:] = 0.0\n", "", true},
      {"leave(q_empty[work.turn - 1])", "leave(q_empty[work.turn])", true},
      {"bulk.wait_read(0)  # shared", "pass  # shared", true},
  };
  for (const Edit& edit : edits) {
    std::string text = text_of_kernel();
    const std::size_t at = text.find(edit.from);
    ASSERT_NE(at, std::string::npos) << edit.from;
    text.replace(at, edit.from.size(), edit.to);
    std::string found;
    for (int64_t keys : {50, 1}) {  // of one key, every power that is too many shows
      if (!found.empty()) break;
      const Case c = small({}, {.queries = 40, .keys = keys, .heads = 3, .multiprocessors = 1});
      found += shown(c, kernel_of(c, text), 6);
    }
    EXPECT_NE(found, "") << "not found: " << edit.from;
    const check::Report report = check::check(kernel_of(small({}), text));
    EXPECT_EQ(report.verdict(), edit.refuted ? check::Verdict::refuted : check::Verdict::unknown)
        << edit.from << "\n"
        << check::to_text(report);
  }
}

/// Everything but what compares with the meaning: attention_proof_test.cpp.
TEST(AttentionValues, SynchronizationIsProved) {
  for (const Constants& constants : {Constants{}, Constants{{"CAUSAL", int64_t{1}}},
                                     Constants{{"GROUPS", int64_t{3}}, {"KEYS", int64_t{80}}}}) {
    Constants all = constants;
    all.try_emplace("D", int64_t{128});
    all.try_emplace("KEYS", int64_t{128});
    const core::Kernel kernel = kernel_of({.constants = all}, text_of_kernel());
    for (const check::Finding& f : check::check(kernel).findings) {
      const std::string name(f.kind->name);
      const bool of_meaning =
          std::set<std::string>{"k_agreement", "placement", "reduction", "output_once",
                                "mask",        "rescale",   "dominance", "degenerate"}
              .contains(name);
      EXPECT_EQ(f.verdict, of_meaning ? check::Verdict::unknown : check::Verdict::proved)
          << name << ": " << f.reason;
    }
  }
}

/// Where a role's count of what was before is not that of the others, nothing is proved.
TEST(AttentionValues, SumsOfOtherAmountsAreNotProved) {
  for (const int64_t more : {0, 1}) {
    core::Kernel kernel = kernel_of(small({{"CAUSAL", int64_t{1}}}), text_of_kernel());
    auto* const role = std::get_if<core::Role>(&kernel.body.back().node);
    ASSERT_NE(role, nullptr);
    int64_t found = 0;
    for (core::Op& op : role->body)
      if (auto* const loop = std::get_if<core::For>(&op.node))
        for (core::Carried& c : loop->carried) {
          c.amount = c.amount + more;
          ++found;
        }
    ASSERT_EQ(found, 1);
    bool proved = false;
    for (const check::Finding& f : check::check(kernel).findings)
      if (f.kind->name == "phase_window") proved = f.verdict == check::Verdict::proved;
    EXPECT_EQ(proved, more == 0);
  }
}

}  // namespace
}  // namespace tessera::proofs
