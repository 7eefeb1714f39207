#include "pipeline/searches.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <set>

#include "pipeline/best_plan.h"

namespace tessera::pipeline {
namespace {

/// Of a pattern's best: what finals are taken to gain, which settle differences of that order.
constexpr double gain_of_finals = 0.01;
constexpr double opening_guess = 0.5;     // seconds
constexpr std::size_t told_at_once = 64;  // builds that compilers are told of

const std::atomic<bool> never{false};

}  // namespace

/// The search of one work.
class Searches::One : public tune::Journey {
 public:
  One(Searches& all, Realized realized)
      : all_(all),
        s_(all.s_),
        at_(realized.work),
        offered_(std::move(realized.offers)),
        offering_(realized.seconds) {
    const Work& w = s_.work[at_];
    if (!w.own || !w.own->accepted()) return;
    const kernel::Candidate& best = w.own->winners.front().candidate;
    takes_own_ = offered(offered_.candidates, best.realizer, best.config) != nullptr;
  }

  std::optional<tune::Offer> offer(double seconds_left) override;
  void advance(double seconds) override;
  [[nodiscard]] double settle_seconds() const override {
    return journey_ ? journey_->settle_seconds() : 0;
  }
  [[nodiscard]] double saved_ms() const override { return all_.standing().saved_ms(at_); }
  void settle(double seconds) override { journey_->settle(seconds); }

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] Work& work() const { return s_.work[at_]; }
  [[nodiscard]] evaluate::Journey* journey() const { return journey_.get(); }
  [[nodiscard]] bool is_open() const { return open_ && work().skipped.empty(); }
  [[nodiscard]] Price price() const {
    return journey_ ? Price{journey_->eager_ms(), journey_->best_ms()} : Price{};
  }
  void begin();
  [[nodiscard]] tune::Offer priced(const tune::Step& step) const;
  [[nodiscard]] evaluate::Tuned tuned(bool whole) const;
  Status end();
  [[nodiscard]] double bar() const { return std::max(1e-9, all_.standing().bar(at_)); }
  /// Even at its roofline it would not save more than the kernels that are there. Nothing is said
  /// of what was not timed: the roofline is no estimate of that.
  [[nodiscard]] bool beaten() const {
    constexpr double off = 0.9;  // what a roofline may be off by
    return open_ && bar() <= off * pattern().floor_ms;
  }

 private:
  [[nodiscard]] const rules::Pattern& pattern() const {
    return s_.pattern(work().patterns.front());
  }
  /// The part of a gain at one place that is one over PyTorch's best plan.
  [[nodiscard]] double over_plan(double gain, double from, double eager) const {
    if (s_.options.effort == "max" || is_of_products(s_.found.graph, pattern())) return gain;
    return gain_over_plan(gain, from, eager * s_.baseline.fused_share);
  }
  void open(double seconds);
  void give_up(const Diagnostic& why);
  void advance_open(double seconds);
  Status store(const Work& w);

  Searches& all_;
  Session& s_;
  const std::size_t at_;
  evaluate::Offers offered_;  // without the candidates once it began
  double offering_;           // seconds
  std::unique_ptr<evaluate::Journey> journey_;
  std::optional<tune::Step> next_;
  bool takes_own_ = false;  // the best of the registry's own entry is among its candidates
  bool hopeful_ = false;    // it has candidates other than its own ops
  bool open_ = false;
  bool stored_ = false;  // as it is
};

std::optional<tune::Offer> Searches::One::offer(double seconds_left) {
  next_.reset();
  if (!journey_ || !work().skipped.empty()) return std::nullopt;
  if (!open_) {
    // What the roofline leaves to gain, where there is more than eager to be timed; a part of the
    // time at least, for eager seldom reaches the roofline.
    constexpr double least = 0.1;
    const double left = all_.anticipated().bar(at_);
    const double each = hopeful_ ? std::max({0.0, least * left, left - pattern().floor_ms}) : 0;
    const double gain = over_plan(each, left, left) * static_cast<double>(work().patterns.size());
    const double seconds = all_.seconds_to_open();
    if (seconds_left > 0 && seconds > seconds_left) return std::nullopt;
    return tune::Offer{.round = tune::Round::free, .gain_ms = gain, .seconds = seconds};
  }
  if (beaten()) return std::nullopt;
  next_ = journey_->next(bar(), seconds_left);
  if (next_) return priced(*next_);
  const double seconds = journey_->finals_seconds() + journey_->settle_seconds();
  if (!journey_->finals_due() || (seconds_left > 0 && seconds > seconds_left)) return std::nullopt;
  const double best = journey_->best_ms() > 0 ? journey_->best_ms() : journey_->eager_ms();
  return tune::Offer{.round = tune::Round::finals,
                     .gain_ms = gain_of_finals * best * all_.standing().places_above(at_, best),
                     .seconds = seconds};
}

// What it would gain now; for a build, if all others come to what is expected of them, so that an
// alternative waits until the better version was tried.
tune::Offer Searches::One::priced(const tune::Step& step) const {
  const double best = journey_->best_ms();
  const double reached = best > 0 ? std::min(best, bar()) : bar();
  double gain =
      over_plan(step.gain_ms, reached, bar()) * all_.standing().places_above(at_, reached);
  if (step.build_seconds > 0 && step.expected_ms > 0) {
    const double to_come = all_.anticipated().bar(at_) - step.expected_ms;
    constexpr double least_share = 0.02;
    const double share = to_come / std::max(1e-9, reached - step.expected_ms);
    if (to_come < reached - step.expected_ms) gain *= std::clamp(share, least_share, 1.0);
  }
  return {.round = step.round,
          .first = step.first,
          .gain_ms = gain,
          .seconds = step.build_seconds + step.measure_seconds,
          .waiting = step.waiting};
}

// Before it is opened: compilers can have its sources while the evaluator process starts.
void Searches::One::begin() {
  hopeful_ = std::any_of(offered_.candidates.begin(), offered_.candidates.end(),
                         [](const kernel::Candidate& c) { return !c.is_eager(); });
  auto known = known_trials(s_, work(), offered_.candidates);
  if (!known) return give_up(known.error());
  const rules::Pattern& p = pattern();
  const auto hear = [this, &p](const Json& event) {
    Json more = event;
    more["pattern"] = p.id;
    more["summary"] = p.summary;
    if (event.contains("trial")) note_trial(s_, work(), event.at("trial"));
    s_.say("tune", event.value("message", ""), more);
  };
  auto journey =
      s_.tools.evaluator->begin(p, std::move(offered_.candidates), *known,
                                s_.context.stop != nullptr ? *s_.context.stop : never, hear);
  if (!journey) return give_up(journey.error());
  journey_ = std::move(*journey);
}

void Searches::One::advance(double seconds) {
  const double before = journey_->best_ms();
  if (open_) {
    advance_open(seconds);
  } else {
    open(seconds);
  }
  all_.forget();
  if (journey_->best_ms() != before) all_.improved(at_);
}

void Searches::One::open(double seconds) {
  const double begun = all_.now_();
  s_.say("tune", s_.place_of(at_));
  open_ = true;
  if (auto status = journey_->open(); !status) {
    give_up(status.error());
    return;
  }
  next_ = journey_->next(bar(), seconds);
  if (next_ && next_->round == tune::Round::free) journey_->advance(*next_, seconds);
  all_.opening_ += all_.now_() - begun;
  ++all_.opened_;
}

// One pattern that cannot be evaluated costs itself alone.
void Searches::One::give_up(const Diagnostic& why) {
  work().skipped = "could not be evaluated: " + why.message;
  s_.diagnostics.push_back(why);
}

void Searches::One::advance_open(double seconds) {
  if (next_) {
    journey_->advance(*next_, seconds);
    stored_ = false;
    return;
  }
  journey_->finals();
  if (s_.stopped()) return;
  Work so_far = work();
  so_far.tuned = tuned(true);
  if (auto status = store(so_far); !status) s_.diagnostics.push_back(status.error());
}

// A time that is no figure decides nothing in a later run: its trials are kept, the search goes on.
Status Searches::One::store(const Work& w) {
  if (!w.tuned->winners.empty() && w.tuned->winners.front().evidence.unreliable) return {};
  // Nor does one that stands against a figure of another moment alone.
  if (takes_own_ && !w.beside_own) return {};
  stored_ = true;
  return remember(s_, w);
}

evaluate::Tuned Searches::One::tuned(bool whole) const {
  evaluate::Tuned out = journey_->so_far(whole);
  out.rounds["offers"] = offering_;
  out.unsupported = offered_.unsupported;
  out.pruned = offered_.pruned;
  return out;
}

Searches::Searches(Session& s, std::vector<Realized> realized, std::function<double()> now)
    : s_(s), now_(std::move(now)) {
  for (Realized& of_one : realized) {
    all_.push_back(std::make_unique<One>(*this, std::move(of_one)));
    journeys_.push_back(all_.back().get());
  }
  if (all_.empty() || s.stopped()) return;
  for (const auto& one : all_) one->begin();
  told_ = true;
  const Options& o = s.options;
  const double seconds = o.seconds == 0 ? 0 : std::max(1.0, o.seconds - o.spent);
  if (auto status = s.tools.evaluator->start(wanted(seconds), seconds); !status)
    s.diagnostics.push_back(status.error());
}

Searches::~Searches() = default;

double Searches::seconds_to_open() const {
  return opened_ > 0 ? opening_ / opened_ : opening_guess;
}

std::vector<Price> Searches::prices() const {
  std::vector<Price> out;
  for (const Work& w : s_.work) out.push_back(price_of(s_, w));
  for (const auto& one : all_) {
    if (one->journey() != nullptr) out[one->at()] = one->price();
  }
  return out;
}

const Standing& Searches::standing() {
  if (!standing_) standing_.emplace(s_, prices());
  return *standing_;
}

const Standing& Searches::anticipated() {
  if (!anticipated_) {
    std::vector<Price> all = prices();
    for (const auto& one : all_) {
      const bool open = one->journey() != nullptr && one->work().skipped.empty();
      if (open) all[one->at()].best_ms = one->journey()->expected_ms();
    }
    anticipated_.emplace(s_, std::move(all));
  }
  return *anticipated_;
}

// After every step.
void Searches::forget() {
  standing_.reset();
  anticipated_.reset();
  told_ = false;
}

void Searches::improved(std::size_t work) {
  if (s_.on_improved) s_.on_improved(now_(), work);
}

std::vector<const toolchain::Source*> Searches::wanted(double seconds_left) {
  std::vector<std::pair<tune::Offer, const toolchain::Source*>> all;
  for (const auto& one : all_) {
    if (one->journey() == nullptr || !one->work().skipped.empty() || one->beaten()) continue;
    for (auto& w : one->journey()->to_build(one->bar(), seconds_left, told_at_once)) {
      w.step.waiting = false;
      all.emplace_back(one->priced(w.step), w.source);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return tune::before(a.first, b.first); });
  std::vector<const toolchain::Source*> sources;
  for (const auto& [offer, source] : all) {
    if (sources.size() < told_at_once) sources.push_back(source);
  }
  return sources;
}

void Searches::build_ahead(double seconds_left) {
  if (told_ || !s_.tools.evaluator->builds_ahead()) return;
  told_ = true;
  s_.tools.evaluator->expect(wanted(seconds_left), seconds_left);
}

void Searches::crown_so_far() {
  for (const auto& one : all_) {
    if (one->is_open()) one->work().tuned = one->tuned(false);
  }
}

void Searches::uncrown() {
  for (const auto& one : all_) one->work().tuned.reset();
}

Status Searches::One::end() {
  Work& w = work();
  if (!w.skipped.empty()) return {};
  if (!open_) {
    w.skipped = s_.stopped() ? "stopped before it was reached"
                             : fmt::format("the budget of {:.0f} s was spent before it was reached",
                                           s_.options.seconds);
    return {};
  }
  const bool over = !s_.stopped() && !offer(0);
  if (!over) {
    journey_->cut(s_.stopped() ? "interrupted"
                               : fmt::format("budget of {:g} s", s_.options.seconds));
  }
  w.tuned = tuned(true);
  w.tuned->cut = !over;
  const bool known = over || !w.tuned->winners.empty();
  return stored_ || !known || s_.stopped() ? Status{} : store(w);
}

Status Searches::end() {
  for (const auto& one : all_) TESSERA_CHECK(one->end());
  return {};
}

}  // namespace tessera::pipeline
