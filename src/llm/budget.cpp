#include "llm/budget.h"

#include <algorithm>

#include "base/clock.h"

namespace tessera::llm {
namespace {

inline constexpr Code no_price{"TS0737", "mind.no_price"};
inline constexpr Code bad_prices{"TS0738", "mind.bad_prices"};

/// A reply of fewer tokens holds no kernel: a call for it is not made.
constexpr int64_t least_reply = 512;
constexpr double a_million = 1e6;

Diagnostic unreadable(const std::string& name, const std::string& why) {
  return fail(bad_prices, "the table of prices `{}` cannot be read", name)
      .expect(
          R"({{"schema": "tessera.prices/1", "prices": [{{"model": "NAME*", "input": 3, "output": 15}}]}})")
      .but_found("{}", why)
      .help("docs/mind.md says what is in it");
}

}  // namespace

Result<Prices> Prices::read(const std::string& text, const std::string& name) {
  Prices out;
  try {
    const Json j = parse_json(text);
    if (j.at("schema") != "tessera.prices/1") return error(unreadable(name, j.at("schema").dump()));
    for (const Json& row : j.at("prices"))
      out.rows_.push_back(
          {.model = row.at("model"), .input = row.at("input"), .output = row.at("output")});
  } catch (const Json::exception& e) {
    return error(unreadable(name, e.what()));
  }
  return out;
}

std::optional<Price> Prices::of(const std::string& model) const {
  const Price* best = nullptr;
  for (const Price& row : rows_) {
    const bool open = row.model.ends_with('*');
    const std::string stem = open ? row.model.substr(0, row.model.size() - 1) : row.model;
    const bool fits = open ? model.starts_with(stem) : model == stem;
    if (fits && (best == nullptr || row.model.size() > best->model.size())) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

Result<Budget> Budget::make(const Limits& limits, const std::optional<Price>& price,
                            const std::string& model) {
  if (limits.money > 0 && !price) {
    return error(fail(no_price, "a budget in money needs a price, and `{}` has none", model)
                     .expect("a row for it in knowledge/prices.json, or in --prices FILE")
                     .help("give --prices FILE with what your provider asks, or --budget-tokens in "
                           "place of --budget-money"));
  }
  return Budget(limits, price);
}

double Budget::cost(int64_t input, int64_t output) const {
  if (!price_) return 0;
  return (static_cast<double>(input) * price_->input +
          static_cast<double>(output) * price_->output) /
         a_million;
}

int64_t Budget::room_for(const Request& r) const {
  int64_t room = r.max_tokens;
  const int64_t input = estimated_tokens(r.system) + estimated_tokens(r.view);
  if (limits_.tokens > 0)
    room = std::min(room, limits_.tokens - spent_.usage.input - spent_.usage.output - input);
  if (limits_.money > 0 && price_ && price_->output > 0) {
    const double left = limits_.money - cost(spent_.usage.input + input, spent_.usage.output);
    room = std::min(room, static_cast<int64_t>(left / price_->output * a_million));
  }
  return room;
}

std::optional<std::string> Budget::reached(const Request& r) const {
  const Spent now = spent();
  if (limits_.calls > 0 && now.calls >= limits_.calls)
    return fmt::format("{} of {} calls are made (--budget-calls)", now.calls, limits_.calls);
  if (limits_.seconds > 0 && now.seconds >= limits_.seconds)
    return fmt::format("{:.0f} of {:.0f} s are spent (--budget-seconds)", now.seconds,
                       limits_.seconds);
  if (room_for(r) >= std::min(least_reply, r.max_tokens)) return std::nullopt;
  if (limits_.money > 0 && now.money) {
    Budget without = *this;
    without.limits_.money = 0;
    if (without.room_for(r) >= std::min(least_reply, r.max_tokens))
      return fmt::format(
          "${:.4f} of ${:.4f} are spent, and another call may take the rest "
          "(--budget-money)",
          *now.money, limits_.money);
  }
  return fmt::format(
      "{} of {} tokens are spent, and another call may take the rest (--budget-tokens)",
      now.usage.input + now.usage.output, limits_.tokens);
}

void Budget::take(const Reply& reply) {
  ++spent_.calls;
  spent_.usage.input += reply.usage.input;
  spent_.usage.output += reply.usage.output;
  spent_.usage.exact = spent_.usage.exact && reply.usage.exact;
  spent_.model_seconds += reply.seconds;
}

Spent Budget::spent() const {
  Spent out = spent_;
  out.seconds = before_ + seconds_since(begin_);
  if (price_) out.money = cost(out.usage.input, out.usage.output);
  return out;
}

}  // namespace tessera::llm
