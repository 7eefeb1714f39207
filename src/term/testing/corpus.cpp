#include "term/testing/corpus.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace tessera::term::testing {
namespace {

using Kind = Claim::Kind;
constexpr Kind eq = Claim::Kind::equal, holds = Claim::Kind::always, inj = Claim::Kind::injective;
constexpr Outcome no = Outcome::refuted;
constexpr Outcome open = Outcome::unknown;

constexpr Claim table[] = {
    // GEMM: fragments of wgmma and mma.sync
    {"wgmma_row", eq, "tid % 128 // 32 * 16 + tid % 32 // 4 + (acc >> 1 & 1) * 8",
     "(tid // 32 % 4) * 16 + tid // 4 % 8 + acc // 2 % 2 * 8"},
    {"wgmma_row_of_the_wrong_bit", eq, "tid // 32 % 4 * 16 + tid // 4 % 8 + acc % 2 * 8",
     "tid // 32 % 4 * 16 + tid // 4 % 8 + acc // 2 % 2 * 8", no},
    {"wgmma_column", eq, "acc // 4 * 8 + lane % 4 * 2 + acc % 2",
     "(acc >> 2 << 3) + ((lane & 3) << 1 | acc & 1)"},
    {"wgmma_column_swapped", eq, "acc // 4 * 8 + lane % 4 * 2 + acc % 2",
     "acc // 4 * 8 + acc % 2 * 4 + lane % 4", no},
    {"wgmma_tile_is_injective", inj,
     "(warp * 16 + lane // 4 + acc // 2 % 2 * 8) * 256 + acc // 4 * 8 + lane % 4 * 2 + acc % 2",
     "warp lane acc"},
    {"wgmma_tile_of_short_rows", inj,
     "(warp * 16 + lane // 4 + acc // 2 % 2 * 8) * 248 + acc // 4 * 8 + lane % 4 * 2 + acc % 2",
     "warp lane acc", no},
    {"lane_from_thread", eq, "tid - tid // 32 * 32", "tid & 31"},
    {"ldmatrix_address", eq, "(lane % 16) * 64 + lane // 16 * 8",
     "(lane & 15) << 6 | (lane >> 4) << 3"},
    {"stmatrix_rows", eq, "(lane % 8 + lane // 8 % 2 * 8) * 64 + lane // 16 * 8",
     "lane % 16 * 64 + lane // 16 * 8"},
    // Shared memory: swizzles
    {"swizzle_128_of_a_tile", eq, "row * 128 + (2 * col ^ row % 8 * 16)",
     "(row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 & 7) << 4"},
    {"swizzle_128_by_stage", eq, "stage * 8192 + (row * 128 + (2 * col ^ row % 8 * 16))",
     "(stage * 8192 + row * 128 + 2 * col) ^ ((stage * 8192 + row * 128 + 2 * col) >> 7 & 7) << 4"},
    {"swizzle_128_on_an_aligned_base", eq,
     "base + ((row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 & 7) << 4)",
     "(base + row * 128 + 2 * col) ^ ((base + row * 128 + 2 * col) >> 7 & 7) << 4"},
    {"swizzle_128_on_a_base_of_512", eq,
     "half + ((row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 & 7) << 4)",
     "(half + row * 128 + 2 * col) ^ ((half + row * 128 + 2 * col) >> 7 & 7) << 4", no},
    {"swizzle_64", eq, "row * 64 + (2 * (col % 32) ^ row // 2 % 4 * 16)",
     "(row * 64 + 2 * (col % 32)) ^ ((row * 64 + 2 * (col % 32)) >> 7 & 3) << 4"},
    {"swizzle_on_one_side_only", eq, "row * 128 + (2 * col ^ row % 8 * 16)", "row * 128 + 2 * col",
     no},
    {"swizzle_twice_is_nothing", eq,
     "(row * 128 + 2 * col ^ row % 8 * 16) ^ ((row * 128 + 2 * col ^ row % 8 * 16) >> 7 & 7) << 4",
     "row * 128 + 2 * col"},
    {"swizzle_is_injective", inj, "row * 128 + (2 * col ^ row % 8 * 16)", "row col"},
    {"padded_rows_are_injective", inj, "row * 72 + col", "row col"},
    {"chunks_lie_in_different_banks", inj,
     "((row % 8 * 128 + (col // 8 ^ row % 8) * 16) // 16 - row % 8 * 8) * 8 + row % 8", "row", no},
    {"stage_base_is_aligned", holds, "(stage * 16384 + 1024 * block) % 1024 == 0", ""},
    {"tile_within_its_stage", holds, "0 <= row * 128 + (2 * col ^ row % 8 * 16) < 8192", ""},
    // Rings: slots and phases
    {"slot_comes_back", eq, "(k + 4) % 4", "k % 4"},
    {"phase_flips_after_a_lap", eq, "(k + 4) // 4 % 2", "1 - k // 4 % 2"},
    {"phase_of_three_stages", eq, "(k + 3) // 3 % 2", "(k // 3 % 2) ^ 1"},
    {"phase_of_seven_stages", eq, "(k + 7) // 7 & 1", "1 - (k // 7 & 1)"},
    {"producer_phase", eq, "(k // 5 % 2) ^ 1", "(k // 5 + 1) % 2"},
    {"slot_with_symbolic_stages", eq, "(k + S) % S", "k % S"},
    {"phase_with_symbolic_stages", eq, "(k + S) // S", "k // S + 1"},
    {"slot_stale_by_one", eq, "(k - 1) % 4", "k % 4", no},
    {"slot_of_a_tile_counter", eq, "(tiles * 8 + k) % 4", "k % 4"},
    {"phase_reset_per_tile", eq, "(tiles * 8 + k) // 4 % 2", "k // 4 % 2"},
    {"phase_reset_per_odd_tile", eq, "(tiles * 6 + k) // 4 % 2", "k // 4 % 2", no},
    {"slots_of_one_lap_differ", holds, "not (k % 4 == (k + stage) % 4) or stage == 0 or stage == 4",
     ""},
    // Tile counts, tails and bounds
    {"ceil_div_by_cases", eq, "(K + 63) // 64", "K // 64 + select(K % 64 > 0, 1, 0)"},
    {"ceil_div_of_positive", eq, "(N + 127) // 128", "(N - 1) // 128 + 1"},
    {"ceil_div_covers", holds, "(K + 63) // 64 * 64 >= K", ""},
    {"ceil_div_is_tight", holds, "((K + 63) // 64 - 1) * 64 < K", ""},
    {"floor_for_ceil", eq, "(K + 63) // 64", "K // 64", no},
    {"k_tile_begins_inside", holds, "kt * 64 < K", ""},
    {"k_tile_is_full_but_the_last", holds, "kt * 64 + 63 < K or kt + 1 == (K + 63) // 64", ""},
    {"k_tile_without_mask", holds, "kt * 64 + col < K", "", no},
    {"block_begins_inside", holds, "bm * 128 < M", ""},
    {"masked_rows_are_inside", holds, "not (bm * 128 + row < M) or 0 <= bm * 128 + row < M", ""},
    {"mask_off_by_one", holds, "not (bm * 128 + row <= M) or bm * 128 + row < M", "", no},
    {"row_and_column_of_a_flat_index", eq, "(m * N + n) // N * 7 + (m * N + n) % N", "m * 7 + n"},
    {"flat_stores_are_injective", inj, "row * ld + col", "row col"},
    {"flat_stores_of_a_short_stride", inj, "row * N + col", "row col", no},
    {"split_k_covers", eq, "(split * 8 + k8) * 64 + col", "split * 512 + k8 * 64 + col"},
    // Rasters
    {"raster_row_and_column", eq, "pid // N * N + pid % N", "pid"},
    {"grouped_raster_row", eq, "pid // (8 * N) * 8 + pid % (8 * N) % 8",
     "pid // (8 * N) * 8 + pid % 8"},
    {"grouped_raster_column", eq, "pid % (8 * N) // 8", "pid // 8 % N"},
    {"grouped_raster_of_a_group", eq, "(8 * (N * group + n) + row % 8) // (8 * N)", "group"},
    {"grouped_raster_in_the_group", eq, "(8 * (N * group + n) + row % 8) % (8 * N) // 8", "n"},
    {"grouped_raster_by_columns", eq, "pid % (8 * N) // 8", "pid % (8 * N) % 8", no},
    {"cluster_rank", eq, "bm // 2 * 2 + bm % 2", "bm"},
    {"multicast_halves", inj, "(bm % 2) * 32 + row % 32 + stage * 64 + lane * 1024", "lane stage"},
    {"persistent_tile", eq, "(pid + tiles * 132) % 132", "pid % 132"},
    // Attention
    {"causal_tile_below_the_diagonal", holds,
     "not (kv * 128 + 127 <= bq * 128) or kv * 128 + col <= bq * 128 + row", ""},
    {"causal_tile_one_too_late", holds,
     "not (kv * 128 <= bq * 128) or kv * 128 + col <= bq * 128 + row", "", no},
    {"causal_trip_count", eq, "(bq * 128 + 128 + 127) // 128", "bq + 1"},
    {"causal_mask_off_by_one", eq, "select(col <= row, 1, 0)", "select(col < row, 1, 0)", no},
    {"causal_mask_by_difference", eq, "select(kv * 64 + col <= bq * 64 + row, 1, 0)",
     "select((kv - bq) * 64 > row - col, 0, 1)"},
    {"grouped_query_head", eq, "(kvh * 8 + lane % 8) // 8", "kvh"},
    {"wrong_head_of_a_group", eq, "(kvh * 8 + lane % 8) % 8", "kvh", no},
    {"head_and_row_of_an_address", eq, "((kvh * N + n) * 128 + acc) // 128 % N", "n"},
    {"score_fragment_feeds_the_next_product", eq, "(acc // 4 * 8 + lane % 4 * 2 + acc % 2) % 16",
     "acc // 4 % 2 * 8 + lane % 4 * 2 + acc % 2"},
    {"ping_pong_turn", eq, "1 - (k + wg) % 2", "(k + wg + 1) % 2"},
    {"rotary_partner", eq, "acc ^ 64", "(acc + 64) % 128"},
    {"window_begins_inside", holds, "0 <= max(0, bq * 128 - 1024) <= bq * 128", ""},
    // Rows: norms, softmax
    {"vectors_of_a_row_are_injective", inj, "(stage * 256 + wg * 128 + warp * 32 + lane) * 8 + v",
     "stage wg warp lane v"},
    {"vector_index", eq, "((stage * 256 + tid) * 8 + v) // 8", "stage * 256 + tid"},
    {"row_per_warp", eq, "(block * 256 + tid) // 32", "block * 8 + tid // 32"},
    {"tail_vector_is_whole", holds,
     "not (stage * 256 + tid < ld // 8) or (stage * 256 + tid) * 8 + v < ld", ""},
    {"butterfly_partner", eq, "(lane ^ 16) // 16", "1 - lane // 16"},
    {"butterfly_within_a_quad", eq, "(lane ^ 2) // 4", "lane // 4"},
    {"neighbour", eq, "lane ^ 1", "lane + 1 - 2 * (lane % 2)"},
    // Mixtures of experts
    {"gather_by_tiles", eq, "perm[tid // 64 * 64 + tid % 64]", "perm[tid]"},
    {"gather_of_the_row_itself", eq, "perm[tid]", "tid", no},
    {"gathered_row_is_inside", holds, "0 <= perm[tid] < N", ""},
    {"expert_weight", eq, "e * K * N + m * N + n", "(e * K + m) * N + n"},
    {"expert_of_the_next", eq, "(e + 1) * K * N + m * N + n", "e * K * N + m * N + n", no},
    {"expert_padding", holds, "(offsets[e] + 63) // 64 * 64 - offsets[e] < 64", ""},
    {"top_k_slot", eq, "(tid * 2 + stage % 2) // 2", "tid"},
    {"scale_block", eq, "(kt * 128 + acc) // 128", "kt"},
    // Beyond these tiers: products of symbols in an order, an order under a symbolic divisor.
    {"flat_index_is_inside", holds, "not (bm * 128 + row < M) or (bm * 128 + row) * N + n < M * N",
     "", open},
    {"grouped_raster_is_inside", holds, "pid % (8 * N) // 8 * 8 + pid // (8 * N) <= pid * 8", "",
     open},
};

Term parsed(Pool& pool, std::string_view text) {
  Result<Term> t = parse(pool, text);
  if (!t) throw std::logic_error(fmt::format("{}: {}", text, to_text(t.error())));
  return *t;
}

}  // namespace

std::span<const Claim> claims() {
  return table;
}

void declare_symbols(Pool& pool) {
  const auto c = [&](int64_t v) { return pool.constant(v); };
  const auto at_least = [&](int64_t v) { return Bounds{.lower = c(v)}; };
  for (const auto& [name, low] : {std::pair("M", 1),
                                  {"N", 1},
                                  {"K", 0},
                                  {"S", 1},
                                  {"block", 0},
                                  {"tiles", 0},
                                  {"pid", 0},
                                  {"split", 0},
                                  {"group", 0},
                                  {"bq", 0},
                                  {"kv", 0},
                                  {"kvh", 0},
                                  {"e", 0}})
    (void)pool.parameter(name, at_least(low)).value();
  (void)pool.parameter("base", {.lower = c(0), .modulus = 1024}).value();
  (void)pool.parameter("half", {.lower = c(0), .modulus = 512}).value();
  (void)pool.parameter("ld", {.lower = c(64), .modulus = 8}).value();
  (void)pool.parameter("bm", {.lower = c(0), .upper = parsed(pool, "(M + 127) // 128")}).value();
  (void)pool.counter("k", c(0), parsed(pool, "K")).value();
  (void)pool.counter("kt", c(0), parsed(pool, "(K + 63) // 64")).value();
  (void)pool.counter("m", c(0), parsed(pool, "K")).value();
  (void)pool.counter("n", c(0), parsed(pool, "N")).value();
  (void)pool.counter("k8", c(0), c(8)).value();
  for (const auto& [name, extent] : {std::pair("stage", 5),
                                     {"wg", 2},
                                     {"warp", 4},
                                     {"lane", 32},
                                     {"acc", 128},
                                     {"tid", 256},
                                     {"row", 64},
                                     {"col", 64},
                                     {"v", 8}})
    (void)pool.coordinate(name, extent).value();
  (void)pool.memory("perm", 1, {.lower = c(0), .upper = parsed(pool, "N")}).value();
  (void)pool.memory("offsets", 1, {.lower = c(0)}).value();
}

Terms terms_of(Pool& pool, const Claim& claim) {
  Terms out{parsed(pool, claim.left), {}, {}};
  if (claim.kind == Kind::equal) out.right = parsed(pool, claim.right);
  if (claim.kind != Kind::injective) return out;
  for (std::string_view rest = claim.right; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    out.coordinates.push_back(parsed(pool, rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

std::string fault_of_witness(const Claim& claim, const Terms& q, const Verdict& v) {
  std::vector<Term> terms{q.left};
  if (q.right) terms.push_back(q.right);
  const std::vector<Term> symbols = symbols_of(terms);
  const Assignment& second = claim.kind == Kind::injective ? v.other : v.witness;
  for (const Assignment& a : {v.witness, second})
    if (const Status s = admissible(symbols, a); !s) return to_text(s.error());
  const Result<int64_t> value = evaluate(q.left, v.witness);
  if (!value) return to_text(value.error());
  if (claim.kind == Kind::always) return *value == 0 ? "" : "the claim holds at its witness";
  const Result<int64_t> other = evaluate(claim.kind == Kind::equal ? q.right : q.left, second);
  if (!other) return to_text(other.error());
  if (claim.kind == Kind::equal) return *value != *other ? "" : "both sides are equal there";
  if (*value != *other) return "the values at the two points differ";
  for (Term c : q.coordinates)
    if (*evaluate(c, v.witness) != *evaluate(c, v.other)) return "";
  return "the two points are one";
}

}  // namespace tessera::term::testing
