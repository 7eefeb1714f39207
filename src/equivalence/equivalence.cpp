#include "equivalence/equivalence.h"

#include <algorithm>
#include <random>
#include <set>

#include "equivalence/meaning.h"
#include "replay/launches.h"
#include "replay/reference.h"
#include "simulate/simulate.h"

namespace tessera::equivalence {
namespace {

using residue::Value;

/// Numbers of turns of every loop.
std::vector<std::vector<int64_t>> turns_of(std::size_t loops, int64_t slots) {
  std::vector<std::vector<int64_t>> out = {{}};
  for (std::size_t n = 0; n < loops; ++n) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& v : out)
      for (const int64_t turns : std::set<int64_t>{1, 2, 3, slots + 1}) {
        longer.push_back(v);
        longer.back().push_back(turns);
      }
    out = std::move(longer);
  }
  return out;
}

/// Launches in which loops turn once, and launches in which they turn more often, by turns; whole
/// tiles and parts of tiles.
std::vector<simulate::Launch> launches_of(const core::Kernel& kernel,
                                          const std::vector<core::Term>& sizes, int most) {
  int64_t slots = 1;
  for (const core::Barriers& b : kernel.barriers) slots = std::max(slots, b.count);
  const replay::Launches all(kernel, sizes);
  std::vector<std::vector<replay::Small>> found;
  for (const std::vector<int64_t>& turns : turns_of(sizes.size(), slots)) {
    std::vector<replay::Small> some = all.near(turns, 2);
    std::erase_if(some, [](const replay::Small& s) { return !s.exact; });
    if (!some.empty()) found.push_back(std::move(some));
  }
  std::vector<simulate::Launch> out;
  std::set<std::string> known;
  // In many of the others there is one batch, or one head.
  if (std::optional<replay::Small> s = all.several()) {
    known.insert(replay::to_string(kernel, s->launch));
    out.push_back(std::move(s->launch));
  }
  // The last ones have the most turns: half of the launches are of these.
  for (std::size_t n = 0; n < found.size() && static_cast<int>(out.size()) < most; ++n) {
    const std::size_t at = n % 2 == 0 ? n / 2 : found.size() - 1 - n / 2;
    for (replay::Small& s : found[at])
      if (static_cast<int>(out.size()) < most &&
          known.insert(replay::to_string(kernel, s.launch)).second)
        out.push_back(std::move(s.launch));
  }
  // Loops that never turn so often: a loop over elements, of which there are eight at least.
  if (out.size() < 2)
    for (replay::Small& s : all.near({}, most))
      if (known.insert(replay::to_string(kernel, s.launch)).second)
        out.push_back(std::move(s.launch));
  return out;
}

std::map<std::string, std::vector<Value>> drawn(const core::Kernel& kernel,
                                                const simulate::Launch& launch, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<uint64_t> of_p(0, residue::p - 1), of_q(0, residue::q - 1);
  std::map<std::string, std::vector<Value>> out;
  const auto is_truth = [&](const std::string& name) {
    return std::any_of(kernel.tensors.begin(), kernel.tensors.end(), [&](const core::Tensor& t) {
      return t.name == name && t.element == DType::boolean;
    });
  };
  for (const auto& [name, numbers] : launch.inputs) {
    const bool truths = is_truth(name);  // 0 and 1 are what they are
    for (const double n : numbers)
      out[name].push_back(truths ? residue::number(n != 0 ? 1 : 0)
                                 : residue::residues(of_p(random), of_q(random)));
  }
  return out;
}

/// The first element that is not what is meant; empty: none.
std::string differing(const core::Kernel& kernel, const check::Means& means,
                      const simulate::Launch& launch, const simulate::Outcome& found,
                      int64_t* compared) {
  std::string out;
  each_element(kernel, means, launch,
               [&](const std::string& tensor, const std::vector<int64_t>& at,
                   const std::string& name, const Value& value) {
                 Value other = residue::number(0);
                 for (const int64_t i : at)
                   other = residue::add(other,
                                        found.residues.at(tensor).at(static_cast<std::size_t>(i)));
                 // Where what is meant is no number, anything may stand.
                 if (value.is_nothing()) return;
                 ++*compared;
                 if (out.empty() && !same(value, other)) out = name;
               });
  return out;
}

/// Whether a run on numbers differs from what is meant by more than rounding.
std::string seen(const core::Kernel& kernel, const simulate::Launch& launch,
                 const std::string& what) {
  return fmt::format("{} (at {})", what, replay::to_string(kernel, launch));
}
std::string text_of(const Diagnostic& d) {
  return d.code + " " + d.message;
}

/// What numbers show of it; "" for nothing.
std::string in_numbers(const core::Kernel& kernel, const check::Means& means,
                       simulate::Launch launch) {
  launch.residues.reset();
  const Result<simulate::Outcome> o = simulate::simulate(kernel, launch);
  if (!o) return "";
  if (!o->findings.empty()) return seen(kernel, launch, text_of(o->findings.front()));
  const auto wrong = replay::Reference(kernel, means, launch).wrong_element(*o);
  return wrong ? seen(kernel, launch, *wrong) : "";
}

}  // namespace

std::string_view name_of(Verdict v) {
  switch (v) {
    case Verdict::equal:
      return "equal";
    case Verdict::different:
      return "different";
    case Verdict::undecided:
      return "undecided";
  }
  return "";
}

Answer compare(const core::Kernel& kernel, const check::Means& means,
               const std::vector<core::Term>& sizes, const Effort& effort) {
  Answer out;
  out.reason = "no launch is small enough";
  int64_t left = effort.products;
  for (simulate::Launch& launch : launches_of(kernel, sizes, effort.launches)) {
    const int64_t products = products_of(kernel, means, launch);
    if (products > left) continue;
    left -= products;
    launch.residues = drawn(kernel, launch, out.launches.size());
    const Result<simulate::Outcome> o = simulate::simulate(kernel, launch);
    if (!o || !o->findings.empty()) {
      out.verdict = Verdict::undecided;
      out.reason = o ? text_of(o->findings.front()) : o.error().message;
      // A fault may be one of residues alone.
      if (o) out.seen = in_numbers(kernel, means, launch);
      return out;
    }
    out.launches.push_back(replay::to_string(kernel, launch));
    out.element = differing(kernel, means, launch, *o, &out.elements);
    if (!out.element.empty()) {
      out.reason.clear();
      out.verdict = Verdict::different;
      out.seen = in_numbers(kernel, means, launch);
      out.numbers_differ = !out.seen.empty();
      return out;
    }
  }
  if (out.launches.empty()) return out;
  out.reason = "no element of a result is meant to be a number";
  if (out.elements == 0) return out;
  out.verdict = Verdict::equal;
  out.reason.clear();
  out.error = static_cast<double>(degree_of(means)) / static_cast<double>(residue::q);
  return out;
}

std::string to_text(const Answer& a) {
  if (a.verdict == Verdict::undecided) return "equivalence: undecided: " + a.reason;
  const std::string at = a.launches.empty() ? "" : a.launches.back();
  if (a.verdict == Verdict::different)
    return fmt::format("equivalence: different: {} is not what is meant (at {}){}", a.element, at,
                       a.numbers_differ ? "" : "; numbers agree within their rounding");
  return fmt::format(
      "equivalence: equal in {} elements of {} launches, modulo primes; functions that differ "
      "there "
      "would show but for a chance of {:.1g} (the largest: {})",
      a.elements, a.launches.size(), a.error, at);
}

}  // namespace tessera::equivalence
