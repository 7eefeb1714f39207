// What a run may spend on a language model: tokens, money, calls, seconds. A call that might go
// beyond is not made.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "diag/result.h"

#include "llm/message.h"

namespace tessera::llm {

/// Dollars for a million tokens.
struct Price {
  std::string model;  // as the table names it; `*` at its end stands for any more letters
  double input = 0;
  double output = 0;
};

/// The table of prices: a file of schema "tessera.prices/1".
class Prices {
 public:
  /// Error TS0738: it is none. `name` is said there.
  static Result<Prices> read(const std::string& text, const std::string& name);
  /// Of the row that says most of the model's name; none where no row fits.
  [[nodiscard]] std::optional<Price> of(const std::string& model) const;

 private:
  std::vector<Price> rows_;
};

/// 0: no limit.
struct Limits {
  int64_t tokens = 0;  // read and written together
  double money = 0;    // dollars
  int64_t calls = 0;
  double seconds = 0;  // of the whole loop, judging included
};

struct Spent {
  int64_t calls = 0;
  Usage usage;
  double model_seconds = 0;     // that the model took
  double seconds = 0;           // of the loop
  std::optional<double> money;  // none: the model has no price
};

class Budget {
 public:
  /// Error TS0737: there is a limit on money, and no price.
  static Result<Budget> make(const Limits& limits, const std::optional<Price>& price,
                             const std::string& model);

  /// Why this call is not made, as words that follow "the budget is reached: "; none where it may.
  [[nodiscard]] std::optional<std::string> reached(const Request& request) const;
  /// The tokens that its reply may have, `request.max_tokens` at most.
  [[nodiscard]] int64_t room_for(const Request& request) const;
  void take(const Reply& reply);
  /// Seconds that earlier parts of this run took.
  void add_seconds(double seconds) { before_ += seconds; }
  [[nodiscard]] Spent spent() const;

 private:
  Budget(const Limits& limits, const std::optional<Price>& price)
      : limits_(limits), price_(price) {}
  [[nodiscard]] double cost(int64_t input, int64_t output) const;

  Limits limits_;
  std::optional<Price> price_;
  Spent spent_;
  double before_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tessera::llm
