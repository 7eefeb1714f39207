#include "pipeline/last_reason.h"

#include <algorithm>
#include <fmt/format.h>

namespace tessera::pipeline {
namespace {

const composer::Option& option(const Chosen& chosen, int i) {
  return chosen.options[static_cast<std::size_t>(i)];
}

bool holds(const std::vector<int>& these, int i) {
  return std::find(these.begin(), these.end(), i) != these.end();
}

/// By which of these an option is displaced; -1 for none.
int displaced_by(const Chosen& chosen, const std::vector<int>& these, int i) {
  const auto by = std::find_if(these.begin(), these.end(), [&](int other) {
    return composer::overlap(option(chosen, i), option(chosen, other));
  });
  return by == these.end() ? -1 : *by;
}

}  // namespace

void settle_on(Chosen& chosen, const std::vector<int>& these, const std::string& why,
               const std::set<int>& timed) {
  composer::Choice& choice = chosen.choice;
  std::erase_if(choice.left_out, [&](const auto& row) { return holds(these, row.first); });
  const auto id = [&](int i) { return option(chosen, i).pattern->id; };
  for (auto& [o, reason] : choice.left_out) {
    const auto known = choice.displaced.find(o);
    if (known == choice.displaced.end()) continue;
    if (holds(these, known->second) && !timed.contains(o)) continue;
    if (const int by = displaced_by(chosen, these, o); by >= 0) {
      reason = fmt::format("overlaps {}, with which the whole module is faster", id(by));
    } else if (timed.contains(o)) {
      reason = fmt::format("in place of {} it was timed on the whole module: {}", id(known->second),
                           why);
    } else {
      reason = fmt::format("overlaps {}, which promises more and is not placed either: {}",
                           id(known->second), why);
    }
  }
  for (const int o : choice.chosen) {
    if (holds(these, o)) continue;
    const int by = displaced_by(chosen, these, o);
    choice.left_out.emplace_back(
        o,
        by < 0 ? why : fmt::format("overlaps {}, with which the whole module is faster", id(by)));
  }
  choice.chosen = these;
}

}  // namespace tessera::pipeline
