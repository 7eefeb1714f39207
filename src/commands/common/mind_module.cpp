#include "commands/common/mind_module.h"

#include <set>

#include "pipeline/propose.h"

#include "skeleton/skeleton.h"

namespace tessera::commands {
namespace {

/// The comment that a skeleton begins with.
std::string head_of(const std::string& skeleton) {
  std::size_t end = 0;
  while (skeleton.compare(end, 2, "//") == 0) end = skeleton.find('\n', end) + 1;
  return skeleton.substr(0, end);
}

/// Meaning and tensors of a pattern that no skeleton can be written for.
std::string facts_of(const rules::Pattern& p, const graph::Graph& g) {
  std::string out = "Meaning, as ATen nodes:\n";
  for (const graph::NodeId n : p.nodes) out += "  " + graph::to_text(g, n);
  out += "Tensors of a launch, in order:";
  for (const graph::ValueId id : p.inputs) out += " %" + g.value(id).name;
  out += " ->";
  for (const graph::ValueId id : p.outputs) out += " %" + g.value(id).name;
  return out + "\n";
}

std::vector<agent::Subject> subjects_of(const pipeline::Discovered& found) {
  std::vector<agent::Subject> out;
  for (const rules::Pattern& p : found.discovery.patterns) {
    agent::Subject s{.id = p.id,
                     .rule = p.rule,
                     .summary = p.summary,
                     .floor_ms = p.floor_ms,
                     .unfused_ms = p.unfused_ms,
                     .gain_ms = p.priority,
                     .ending = found.arch->device == "cuda" ? ".cu" : ".cpp"};
    if (const auto written = skeleton::write(p, found.graph, *found.arch)) {
      s.facts = head_of(written->text);
      s.skeleton = written->text.substr(s.facts.size());
      s.ending = written->ending;
    } else {
      s.facts = facts_of(p, found.graph);
    }
    out.push_back(std::move(s));
  }
  return out;
}

/// The nodes, a line each, `*` before those that compute and that no pattern has. Of a large graph
/// those alone, with what they read and what reads them.
void add_nodes(const pipeline::Discovered& found, agent::Module& out) {
  constexpr std::size_t most_nodes = 120;
  const graph::Graph& g = found.graph;
  const rules::Flow flow(g);
  std::set<graph::NodeId> taken, bare, shown;
  for (const rules::Pattern& p : found.discovery.patterns)
    taken.insert(p.nodes.begin(), p.nodes.end());
  const std::vector<graph::NodeId>& order = g.order;
  for (const graph::NodeId n : order) {
    if (!flow.computes(n) || taken.contains(n)) continue;
    bare.insert(n);
    shown.insert(n);
    shown.insert(flow.before(n).begin(), flow.before(n).end());
    shown.insert(flow.after(n).begin(), flow.after(n).end());
  }
  for (const graph::NodeId n : order)
    if (order.size() <= most_nodes || shown.contains(n))
      out.nodes += (bare.contains(n) ? "* " : "  ") + graph::to_text(g, n);
  out.without_pattern = static_cast<int>(bare.size());
}

std::string refusal(const pipeline::Proposed& p) {
  std::string out = fmt::format("{}: no pattern, {}", p.proposal.name, p.refused->message);
  for (const std::string& help : p.refused->helps) out += "; " + help;
  return out;
}

}  // namespace

Result<agent::Module> mind_module(const Json& traced, const pipeline::Options& options) {
  pipeline::Options by_rules = options;
  by_rules.use_registry = false;
  TESSERA_TRY(found, pipeline::discover(traced, options));
  TESSERA_TRY(ruled, pipeline::discover(traced, by_rules));
  agent::Module out{.arch = std::string(found.arch->name),
                    .device = found.graph.meta.value("device_name", found.graph.device),
                    .precision = std::string(name_of(found.graph.precision)),
                    .patterns = subjects_of(found)};
  out.ruled = subjects_of(ruled);
  add_nodes(ruled, out);
  return out;
}

Result<agent::Judged> judge_proposals(const std::vector<agent::Proposal>& proposals,
                                      const Json& traced, const pipeline::Options& options) {
  TESSERA_TRY(before, pipeline::discover(traced, options));
  std::vector<rules::Proposal> all;
  for (const agent::Proposal& p : proposals)
    all.push_back({.name = p.name, .nodes = p.nodes, .rationale = p.rationale});
  TESSERA_TRY(judged, pipeline::propose(before, all, options));
  TESSERA_TRY(found, pipeline::discover(traced, options));
  agent::Judged out{.patterns = subjects_of(found)};
  for (const pipeline::Proposed& p : judged) {
    const rules::Pattern* pattern = pipeline::pattern_of(found, p);
    out.legal += pattern != nullptr ? 1 : 0;
    out.told.push_back(pattern != nullptr ? fmt::format("{}: {}", p.proposal.name, pattern->id)
                       : p.refused        ? refusal(p)
                                          : fmt::format("{}: not found again", p.proposal.name));
  }
  return out;
}

}  // namespace tessera::commands
