// smt_times [REPEATS]: how long questions about index expressions take, by each tier: the table of
// docs/smt.md. Every question is asked of a claim that is true and of one that is nearly so.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <functional>

#include "smt/search.h"

namespace tessera::smt {
namespace {

using term::Outcome;
using term::Pool;
using term::Term;

struct Case {
  const char* what;
  const char* right;
  const char* wrong;
  const char* coordinates = "";  // of injectivity
};

constexpr Case cases[] = {
    {"128-byte swizzle, two formulas",
     "row * 128 + (2 * col ^ row % 8 * 16) == (row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 "
     "& 7) << 4",
     "row * 128 + (2 * col ^ row % 8 * 16) == (row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 "
     "& 3) << 4"},
    {"fragment of 256 threads x 64 registers",
     "(tm * 64 + tid // 32 % 4 * 16 + tid // 4 % 8 + acc // 2 % 2 * 8) * 64 + acc // 4 * 8 + tid % "
     "4 * 2 + acc % 2 == (tm * 4 + tid % 128 // 32) * 1024 + (tid % 32 // 4 + (acc >> 1 & 1) * 8) "
     "* 64 + (acc >> 2 << 3) + ((tid & 3) << 1 | acc & 1)",
     "(tm * 64 + tid // 32 % 4 * 16 + tid // 4 % 8 + acc // 2 % 2 * 8) * 64 + acc // 4 * 8 + tid % "
     "4 * 2 + acc % 2 == (tm * 4 + tid % 128 // 32) * 1024 + (tid % 32 // 4 + (acc & 1) * 8) * 64 "
     "+ (acc >> 2 << 3) + ((tid & 3) << 1 | acc & 1)"},
    {"the same, stores differ",
     "(tid // 32 % 4 * 16 + tid // 4 % 8 + acc // 2 % 2 * 8) * 64 + acc // 4 * 8 + tid % 4 * 2 + "
     "acc % 2 + tid // 128 * 4096",
     "(tid // 32 % 4 * 16 + tid // 4 % 8 + acc // 2 % 2 * 8) * 56 + acc // 4 * 8 + tid % 4 * 2 + "
     "acc % 2 + tid // 128 * 4096",
     "tid acc"},
    {"row * N + col < M * N", "not (r < M and n < N) or r * N + n < M * N",
     "not (r < M and n <= N) or r * N + n < M * N"},
    {"a ring of 4 slots", "(k + 4) % 4 == k % 4 and (k + 4) // 4 % 2 == 1 - k // 4 % 2",
     "(k + 4) % 4 == k % 4 and (k + 3) // 4 % 2 == 1 - k // 4 % 2"},
    {"a ring of 5 slots", "(k + 5) % 5 == k % 5 and (k + 5) // 5 % 2 == 1 - k // 5 % 2",
     "(k + 5) % 5 == k % 5 and (k + 4) // 5 % 2 == 1 - k // 5 % 2"},
    {"gather and scatter by one permutation",
     "perm[tm * 64 + tid // 4] * 64 + tid % 4 == perm[(tm * 256 + tid) // 4] * 64 + (tid & 3)",
     "perm[tm * 64 + tid // 4] * 64 + tid % 4 == perm[(tm * 256 + tid) // 8] * 64 + (tid & 3)"},
    {"a mask", "not (tm * 64 + r < M) or tm * 64 + r < M",
     "not (tm * 64 + r <= M) or tm * 64 + r < M"},
    {"an address within 32 bits", "e * 4096 * 4096 + r * 4096 < 2147483648 or e >= 64",
     "e * K * N + r * N < 2147483648"},
};

// Bounded, so that both ways of writing numbers fit.
void declare(Pool& pool) {
  for (const auto& [name, extent] : {std::pair("row", 64), {"col", 64}, {"tid", 256}, {"acc", 128}})
    (void)pool.coordinate(name, extent).value();
  const auto between = [&](int64_t low, int64_t end) {
    return term::Bounds{.lower = pool.constant(low), .upper = pool.constant(end)};
  };
  for (const char* name : {"M", "N", "K"}) (void)pool.parameter(name, between(1, 65536)).value();
  for (const char* name : {"tm", "r", "n", "k"})
    (void)pool.parameter(name, between(0, 65536)).value();
  (void)pool.parameter("e", between(0, 64)).value();
  (void)pool.memory("perm", 1, between(0, 65536)).value();
}

std::vector<Term> names(Pool& pool, std::string_view text) {
  std::vector<Term> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    out.push_back(pool.symbol(pool.find(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Of the processor, so that what else the machine does counts little.
double milliseconds() {
  return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// "1.3", in ms: the least of `repeats`; "1.3 open" where the question stayed open.
std::string timed(int repeats, const std::function<bool()>& decided) {
  double best = 1e9;
  bool open = false;
  for (int i = 0; i < repeats; ++i) {
    const double begin = milliseconds();
    open = !decided();
    best = std::min(best, milliseconds() - begin);
  }
  return fmt::format("{}{}", best < 1 ? fmt::format("{:.2f}", best) : fmt::format("{:.1f}", best),
                     open ? " open" : "");
}

std::string by_terms(const Case& c, const char* text, int repeats) {
  return timed(repeats, [&] {
    Pool pool;  // what is known of a term stays in its pool
    declare(pool);
    const Term t = parse(pool, text).value();
    const std::vector<Term> coordinates = names(pool, c.coordinates);
    const term::Verdict v =
        coordinates.empty() ? term::always(t) : term::is_injective(t, coordinates);
    return v.outcome != Outcome::unknown;
  });
}

std::string by_z3(const Case& c, const char* text, Tier by, bool normal, int repeats) {
  return timed(repeats, [&] {
    Pool pool;
    declare(pool);
    const Term t = parse(pool, text).value();
    const std::vector<Term> coordinates = names(pool, c.coordinates);
    const Term claim = coordinates.empty() ? logical_not(t) : t;
    const Problem problem{{claim}, {normal ? simplify(claim) : claim}, coordinates};
    return search(*library(), problem, {20'000'000}, by).answer != Answer::unknown;
  });
}

int print(int repeats) {
  if (!library()) {
    fmt::print(stderr, "{}\n", to_text(library().error()));
    return 3;
  }
  fmt::print("Z3 {}; ms of the processor, true / nearly true\n\n", library()->version);
  fmt::print(
      "| question | index arithmetic | bit vectors | the same, as written | integers | the "
      "same, as written |\n|---|---|---|---|---|---|\n");
  (void)by_z3(cases[0], cases[0].right, Tier::bit_vectors, true, 1);  // the first context is slow
  for (const Case& c : cases) {
    fmt::print("| {} | {} / {}", c.what, by_terms(c, c.right, repeats),
               by_terms(c, c.wrong, repeats));
    for (const Tier by : {Tier::bit_vectors, Tier::integers})
      for (const bool normal : {true, false})
        fmt::print(" | {} / {}", by_z3(c, c.right, by, normal, repeats),
                   by_z3(c, c.wrong, by, normal, repeats));
    fmt::print(" |\n");
  }
  fmt::print("\na session: {} ms\n", timed(20, [] {
               Session session(*library());
               return session.check("QF_BV", {session.truth(true)}, 1000) == Answer::satisfiable;
             }));
  return 0;
}

}  // namespace
}  // namespace tessera::smt

int main(int argc, char** argv) {
  return tessera::smt::print(argc > 1 ? std::atoi(argv[1]) : 5);
}
