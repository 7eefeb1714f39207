#include "registry/wrong.h"

#include <algorithm>

namespace tessera::registry {

Json wrong_trial(const Wrong& wrong) {
  return {{"label", wrong.label},       {"outcome", "wrong_result"}, {"reason", wrong.reason},
          {"realizer", wrong.realizer}, {"config", wrong.config},    {"in_module", true}};
}

bool is_wrong_trial(const Json& trial) {
  return trial.is_object() && trial.contains("in_module") && trial.at("in_module") == true &&
         trial.contains("realizer") && trial.contains("config");
}

void drop_wrong(Entry& e) {
  std::erase_if(e.winners, [&](const kernel::Winner& w) {
    return std::any_of(e.negative.begin(), e.negative.end(), [&](const Json& t) {
      return is_wrong_trial(t) && t.at("realizer") == w.candidate.realizer &&
             t.at("config") == w.candidate.config;
    });
  });
}

}  // namespace tessera::registry
