#include <fmt/format.h>

#include "base/files.h"
#include "commands/common/model.h"
#include "pipeline/propose.h"

namespace tessera::commands {
namespace {

inline constexpr Code no_such_file{"TS0001", "input.no_such_file"};

Result<std::vector<rules::Proposal>> proposals_in(const std::string& file) {
  if (!std::filesystem::is_regular_file(file))
    return error(
        fail(no_such_file, "there is no file `{}`", file).expect("a JSON file of proposals"));
  return rules::proposals_from_json(try_parse_json(read_file(file)));
}

void tell(const pipeline::Discovered& found, const std::vector<pipeline::Proposed>& proposed,
          Outcome& out) {
  out.data["proposals"] = Json::array();
  out.text += "\nproposed:\n";
  for (const pipeline::Proposed& p : proposed) {
    Json row = {{"name", p.proposal.name},
                {"nodes", p.proposal.nodes},
                {"rationale", p.proposal.rationale},
                {"legal", !p.refused}};
    if (p.refused) {
      row["diagnostic"] = to_json(*p.refused);
      out.diagnostics.push_back(*p.refused);
      out.exit = Exit::undecided;
      out.text += fmt::format("  {}: no pattern, {}: {}\n", p.proposal.name, p.refused->code,
                              p.refused->message);
      for (const std::string& help : p.refused->helps) out.text += "    " + help + "\n";
    } else if (const rules::Pattern* pattern = pipeline::pattern_of(found, p)) {
      row["pattern"] = pattern->id;
      out.text +=
          fmt::format("  {}: {}, stored; `tessera try MODEL.py {} --skeleton` begins a kernel\n",
                      p.proposal.name, pattern->id, pattern->id);
    }
    out.data["proposals"].push_back(std::move(row));
  }
}

Result<Outcome> run(const Json& arguments, Context& context) {
  const std::string file = arguments.value("propose", "");
  const auto withdrawn = arguments.value("withdraw", std::vector<std::string>());
  std::vector<rules::Proposal> proposals;
  if (!file.empty()) {
    TESSERA_TRY(read, proposals_in(file));
    proposals = std::move(read);
  }
  TESSERA_TRY(model, load_model(arguments, context));
  const pipeline::Options options = pipeline::options_from(arguments);
  if (!withdrawn.empty()) TESSERA_CHECK(pipeline::withdraw(withdrawn, options));
  TESSERA_TRY(found, pipeline::discover(model.traced, options));
  std::vector<pipeline::Proposed> proposed;
  if (!proposals.empty()) {
    TESSERA_TRY(judged, pipeline::propose(found, proposals, options));
    proposed = std::move(judged);
    TESSERA_TRY(again, pipeline::discover(model.traced, options));
    found = std::move(again);
  }
  pipeline::ask_realizers(found);
  TESSERA_TRY(warnings, pipeline::ask_registry(found, options));
  Outcome out;
  out.diagnostics = std::move(warnings);
  out.data = rules::to_json(found.graph, found.discovery);
  out.text = rules::to_table(found.graph, found.discovery);
  if (!proposals.empty()) tell(found, proposed, out);
  return out;
}

}  // namespace

extern const Command discover = {
    .name = "discover",
    .doc = "find the subgraphs worth a kernel of their own, with headroom and reasons",
    .details =
        "--propose FILE takes subgraphs that no rule knows: {\"proposals\": [{\"name\": \"gate\", "
        "\"nodes\": [\"cumsum\", \"mul\"], \"rationale\": \"...\"}]}, nodes as --json names them. "
        "Each is told whether it can run as one step, and why not; exit code 2: one cannot. What "
        "can "
        "is a pattern for `try` and later runs of any module. --withdraw NAME takes one back "
        "first; "
        "kernels stored for it stay. Column `registry`: what `tune` at --effort begins with.",
    .parameters = model_parameters({{.type = Parameter::Type::text,
                                     .name = "propose",
                                     .doc = "a JSON file of subgraphs to take as patterns",
                                     .names = Parameter::Names::input},
                                    {.type = Parameter::Type::list,
                                     .name = "withdraw",
                                     .doc = "an earlier proposal's name; may be repeated"},
                                    {.type = Parameter::Type::text,
                                     .name = "effort",
                                     .doc = "the effort of that search",
                                     .preset = "default",
                                     .choices = {"quick", "default", "max"}}}),
    .run = run,
    .schemas = {"tessera.discovery/1"},
};

}  // namespace tessera::commands
