// What --mind asks for, before the long way to the module.
#include "base/files.h"
#include "base/text.h"
#include "commands/common/mind.h"
#include "rules/common/examples.h"

namespace tessera::commands {
namespace fs = std::filesystem;
namespace {

inline constexpr Code bad_mind{"TS0742", "mind.bad_option"};
inline constexpr Code no_such_file{"TS0001", "input.no_such_file"};
constexpr std::string_view replay = "replay:";

Diagnostic no_such_mind(const std::string& mind) {
  Diagnostic d = fail(bad_mind, "--mind cannot be `{}`", mind)
                     .expect("search, llm, or replay:DIR with an archived run");
  if (const std::string near = nearest(mind, {"search", "llm", "replay:DIR"}); !near.empty())
    d.helps.push_back(fmt::format("did you mean `{}`?", near));
  return d;
}

Status check_figures(const Json& a) {
  constexpr int64_t least_view = 2000;
  if (a.at("view-tokens").get<int64_t>() < least_view) {
    return error(fail(bad_mind, "a view of {} tokens shows no pattern whole",
                      a.at("view-tokens").get<int64_t>())
                     .expect("--view-tokens {} or more", least_view));
  }
  for (const char* name : {"mind-patterns", "mind-attempts", "reply-tokens"}) {
    if (a.at(name).get<int64_t>() < 1)
      return error(fail(bad_mind, "--{} leaves nothing to do", name).expect("1 or more"));
  }
  return {};
}

Result<std::optional<llm::Price>> price_of(const Json& a) {
  const std::string own = a.value("prices", "");
  const fs::path file = own.empty()
                            ? rules::knowledge_folder("prompts").parent_path() / "prices.json"
                            : fs::path(own);
  if (!fs::is_regular_file(file)) {
    return error(fail(no_such_file, "there is no table of prices `{}`", file.string())
                     .expect("a file as knowledge/prices.json is one"));
  }
  TESSERA_TRY(prices, llm::Prices::read(read_file(file), file.string()));
  return prices.of(a.at("llm"));
}

}  // namespace

llm::Limits limits_of(const Json& a) {
  return {.tokens = a.at("budget-tokens"),
          .money = a.at("budget-money"),
          .calls = a.at("budget-calls"),
          .seconds = a.at("budget-seconds")};
}

Result<std::optional<Mind>> mind_of(const Json& a, Context& context) {
  const std::string asked = a.at("mind");
  if (asked == "search") return std::optional<Mind>();
  if (a.at("use-registry") == "false") {
    return error(fail(bad_mind,
                      "what the model writes reaches the module by the registry, which "
                      "is switched off")
                     .help("leave --use-registry out, or give a --registry FILE of its own"));
  }
  Mind mind;
  if (asked.starts_with(replay) && asked.size() > replay.size()) {
    mind.archive = asked.substr(replay.size());
    TESSERA_TRY(of, llm::Archive::run_of(mind.archive));
    TESSERA_TRY(price, price_of({{"llm", of.at("model")}, {"prices", a.value("prices", "")}}));
    mind.price = price;
    return std::optional<Mind>(std::move(mind));
  }
  if (asked != "llm") return error(no_such_mind(asked));
  if (a.value("llm", "").empty()) {
    return error(fail(bad_mind, "no language model is named")
                     .expect("--model NAME beside --mind llm")
                     .help("--model takes the name that the provider has for it; --provider and "
                           "--endpoint say where it is (docs/mind.md)"));
  }
  TESSERA_CHECK(check_figures(a));
  TESSERA_TRY(price, price_of(a));
  mind.price = price;
  TESSERA_CHECK(llm::Budget::make(limits_of(a), price, a.at("llm")));
  mind.archive = a.value("archive", "");
  TESSERA_TRY(provider, Provider::open(a, context));
  mind.provider = std::move(provider);
  return std::optional<Mind>(std::move(mind));
}

}  // namespace tessera::commands
