#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0730", "mind.no_key", R"(The provider of a language model wants a key, and there is none.)",
     R"(Neither the environment nor a keyring has it. A server on this machine needs none.)",
     R"(Set the variable that the message names, or store the key in a keyring under the service
     `tessera`. The key is sent to the provider alone and stands in no log and no archive.)",
     R"(
export ANTHROPIC_API_KEY=...
keyring set tessera ANTHROPIC_API_KEY     # or so: pip install keyring
)"},
    {"TS0731", "mind.unknown_provider", R"(It is not clear whose model is meant.)",
     R"(--provider names none that there is, or is `auto` and the model's name says nothing.)",
     R"(Give --provider. Servers that speak OpenAI's protocol are `openai` with --endpoint.)",
     R"(
tessera optimize mlp.py --mind llm --model llama-4 --provider openai --endpoint http://127.0.0.1:8000/v1
)"},
    {"TS0732", "mind.no_package",
     R"(The provider's own package is not in the Python that tessera uses.)",
     R"(The packages of providers are optional.)",
     R"(Install it into the Python that the message names.)", R"(
pip install 'tessera[llm]'
)"},
    {"TS0733", "mind.unknown_model", R"(The provider knows no model of this name.)",
     R"(The name is misspelled, the key has no right to it, or --endpoint is not the address that the
     package expects.)",
     R"(Give the name as the provider's documentation has it. An endpoint ends with /v1 for openai, and
     has no such end for anthropic.)",
     R"(
error[TS0733]: the provider openai has no model `gpt-55`
)"},
    {"TS0734", "mind.refused", R"(The provider refuses the request.)",
     R"(The key is wrong or not paid for, or the request is beyond the model's limits. `found` is what
     the provider says.)",
     R"(Mend the key; or lower --view-tokens and --reply-tokens. Other attempts would be refused
     too, so none is made.)",
     R"(
error[TS0734]: the provider openai refuses the request     # max_tokens is too large
tessera optimize mlp.py --mind llm --model gpt-4o --reply-tokens 4000
)"},
    {"TS0735", "mind.provider_down",
     R"(The provider did not answer, whatever was tried. What was found before is kept.)",
     R"(It cannot be reached, is too busy, or breaks off its replies. tessera waits between attempts,
     as long as the server asks, and gives up after --mind-retries or where one wait would be longer
     than two minutes.)",
     R"(Run the same command again: it goes on behind the last reply that is archived.)",
     R"(
error[TS0735]: the provider did not answer in 6 attempts     # found: anthropic answers 529
)"},
    {"TS0736", "mind.ended_early",
     R"(A warning: the language model's part ended before it was done. The best so far is kept and
     composed.)",
     R"(The budget in tokens, money, calls or seconds is reached, a person stopped it, or Ctrl-C did.)",
     R"(The same command goes on from there. With the same budget that is the end again: give
     more.)",
     R"(
tessera optimize mlp.py --mind llm --model gpt-4o --budget-calls 20
tessera optimize mlp.py --mind llm --model gpt-4o --budget-calls 40     # goes on with the 21st
)"},
    {"TS0737", "mind.no_price",
     R"(There is a budget in money, and it is not known what the model costs.)",
     R"(The table of prices has no row for its name. A budget that cannot be kept is refused.)",
     R"(Give --prices FILE with a row for it, or --budget-tokens in place of --budget-money.)",
     R"(
{"schema": "tessera.prices/1", "prices": [{"model": "my-model*", "input": 0.5, "output": 1.5}]}
)"},
    {"TS0738", "mind.bad_prices", R"(The table of prices cannot be read.)",
     R"(The file is no JSON, or a field is missing or of another type.)",
     R"(Write it as knowledge/prices.json is written: dollars for a million tokens.)",
     R"(
{"schema": "tessera.prices/1", "prices": [{"model": "my-model*", "input": 0.5, "output": 1.5}]}
)"},
    {"TS0739", "mind.bad_archive", R"(The archive of a run does not fit to what was asked.)",
     R"(It is of another model, module or option, or of other prompts; a line is damaged; or, for a
     replay, there is no run in the folder. The message names the first difference.)",
     R"(Give another folder with --archive, or the command as it was.)",
     R"(
tessera optimize mlp.py --mind llm --model gpt-4o --archive runs/second
tessera optimize mlp.py --mind replay:out/mlp/mind
)"},
    {"TS0740", "mind.bad_prompt", R"(A prompt is missing or does not say what it is.)",
     R"(A file of knowledge/prompts was moved or edited.)",
     R"(Take the files as they came. Who changes a prompt raises the version in its first line.)",
     R"(
<!-- tessera.prompt/1 write 2 -->
)"},
    {"TS0741", "mind.bad_script", R"(A script of replies has none for what was asked.)",
     R"(The file is no script, or no reply's conditions fit.)",
     R"(Add a reply without `when` at the end, or mend the conditions (docs/mind.md).)",
     R"(
{"schema": "tessera.script/1", "replies": [{"when": ["p01"], "text": "DONE: nothing"}]}
)"},
    {"TS0742", "mind.bad_option", R"(What --mind and its options ask for does not go together.)",
     R"(There is no such mind, no model is named, a number leaves nothing to do, or the registry,
     by which kernels reach the module, is switched off.)",
     R"(Give what the message expects.)", R"(
tessera optimize mlp.py --mind llm --model gpt-4o
)"},
    {"TS0743", "mind.stopped",
     R"(The run was stopped while the model was asked or a kernel judged.)",
     R"(Ctrl-C, or `s` at a checkpoint.)",
     R"(Nothing: the best so far is kept, and the same command goes on from there.)", R"(
tessera optimize mlp.py --mind llm --model gpt-4o     # again
)"},
    {"TS0744", "mind.no_answer", R"(A person was to decide, and nobody answered.)",
     R"(--approve asks on the terminal, and stdin is at its end.)",
     R"(Run it in a terminal, or give --approve none. What was decided before is archived.)",
     R"(
tessera optimize mlp.py --mind llm --model gpt-4o --approve none
)"},
};

}  // namespace

std::span<const Explanation> explained_mind() {
  return records;
}

}  // namespace tessera
