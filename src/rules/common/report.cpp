// A discovery as JSON (schema tessera.discovery/1) and as a table.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/clock.h"
#include "base/text.h"
#include "rules/common/flow.h"
#include "rules/proposed.h"
#include "rules/rules.h"

namespace tessera::rules {
namespace {

std::string_view strategy_of(Reuse r) {
  switch (r) {
    case Reuse::fresh:
      return "NEW";
    case Reuse::adapt:
      return "ADAPT";
    case Reuse::reuse:
      return "REUSE";
  }
  return "";
}

std::vector<std::string> value_names(const graph::Graph& g, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (ValueId v : values) names.push_back(g.value(v).name);
  return names;
}

std::vector<std::string> node_names(const graph::Graph& g, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (NodeId n : nodes) names.push_back(g.node(n).name);
  return names;
}

/// What a pattern is worth for ordering: what fusing saves, and a little for what tuning alone may
/// save.
double worth(const Pattern& p) {
  return p.priority + 0.05 * p.unfused_ms;
}

/// A proposed pattern waits for a kernel by hand, and is not left to a library for good.
bool nothing_of_ours(const Pattern& p) {
  return p.makers && p.makers->synthesized.empty() && p.rule != proposed_rule;
}

/// "low" too where no realizer writes a kernel: a library's is seldom better than PyTorch's.
std::string_view level_of(const Discovery& d, const Pattern& p) {
  if (nothing_of_ours(p)) return "low";
  double best = 0;
  for (const Pattern& other : d.patterns)
    if (!nothing_of_ours(other)) best = std::max(best, worth(other));
  if (worth(p) >= 0.25 * best) return "high";
  return worth(p) >= 0.05 * best ? "medium" : "low";
}

Json to_json(const Makers& m) {
  Json refused = Json::array();
  for (const auto& [realizer, reason] : m.refused)
    refused.push_back({{"realizer", realizer}, {"reason", reason}});
  return {{"synthesized", m.synthesized}, {"library", m.library}, {"refused", refused}};
}

std::string kernels_of(const Pattern& p) {
  if (!p.makers) return "";
  if (!p.makers->synthesized.empty()) return "ours";
  if (p.rule == proposed_rule) return "by hand";
  return p.makers->library.empty() ? "none" : "library";
}

/// Patterns that no realizer writes a kernel for, with the reasons: the same ones are said once.
std::string without_kernels(const Discovery& d) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> patterns;
  for (const Pattern& p : d.patterns) {
    if (!nothing_of_ours(p)) continue;
    std::string why;
    for (const std::string& line : by_reason(p.makers->refused)) why += "  " + line + "\n";
    if (why.empty()) why = "  no realizer takes its rule\n";
    if (!patterns.contains(why)) order.push_back(why);
    patterns[why].push_back(p.id);
  }
  std::string text;
  for (const std::string& why : order)
    text += fmt::format("\nno kernel of ours on {} for {}:\n{}", d.arch, join(patterns[why], ", "),
                        why);
  return text;
}

/// The nodes of each pattern by the names that `discover --propose` takes, where they are few.
std::string nodes_of(const graph::Graph& g, const Discovery& d) {
  constexpr std::size_t most_patterns = 16, most_nodes = 24;
  if (d.patterns.size() > most_patterns) return "";
  std::string text = "\nnodes:\n";
  for (const Pattern& p : d.patterns) {
    const std::vector<std::string> names = node_names(g, p.computing);
    if (names.size() <= most_nodes) text += fmt::format("  {}: %{}\n", p.id, join(names, " %"));
  }
  return d.patterns.empty() ? "" : text;
}

/// Of the columns of times and of `priority`.
constexpr std::string_view estimates =
    "Times are the least that the machine's peak rates allow, op by op (unfused) and as one kernel "
    "(floor); nothing has run, and PyTorch may take several times as long. `priority` ranks this "
    "module's patterns among themselves by the gain; it is low where only a library has a kernel.";

/// What `discover --propose` would take, as a file of it has it.
std::string suggestions(const graph::Graph& g, const Discovery& d) {
  std::string text;
  for (const std::vector<NodeId>& group : d.proposable) {
    Json names = node_names(g, group);
    text += fmt::format("  {}\n", names.dump());
  }
  if (text.empty()) return "";
  return "one kernel by hand could take these together; `tessera discover MODEL.py --propose FILE` "
         "makes a pattern of their \"nodes\":\n" +
         text;
}

/// The name that people read: rule, id and where the first covered op was called.
std::string display_name(const graph::Graph& g, const Pattern& p) {
  for (NodeId n : p.computing)
    if (!g.node(n).module.empty()) return fmt::format("{} @ {}", p.rule, g.node(n).module);
  return p.rule;
}

std::string rationale(const Pattern& p) {
  return fmt::format(
      "op by op about {:.4f} ms ({:.1f} MB moved), fused at least {:.4f} ms ({:.1f} MB, {:.2f} "
      "GFLOP)",
      p.unfused_ms, p.unfused_bytes / 1e6, p.floor_ms, p.min_bytes / 1e6, p.flops / 1e9);
}

}  // namespace

std::vector<std::string> by_reason(
    const std::vector<std::pair<std::string, std::string>>& refused) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const auto& [realizer, reason] : refused) {
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& r) { return r.first == reason; });
    if (known == reasons.end())
      reasons.push_back({reason, {realizer}});
    else
      known->second.push_back(realizer);
  }
  std::vector<std::string> out;
  for (const auto& [reason, realizers] : reasons)
    out.push_back(fmt::format("{}: {}", join(realizers, ", "), reason));
  return out;
}

namespace {

/// Why patterns that the registry knows something of are searched again.
std::string why_again(const Discovery& d) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const Pattern& p : d.patterns)
    if (p.reuse == Reuse::adapt) reasons.emplace_back(p.id, p.reuse_detail);
  std::string text;
  for (const std::string& reason : by_reason(reasons)) text += fmt::format("\nADAPT of {}", reason);
  return text;
}

}  // namespace

Json to_json(const graph::Graph& g, const Pattern& p) {
  Json j;
  j["id"] = p.id;
  j["name"] = display_name(g, p);
  j["rule"] = p.rule;
  j["summary"] = p.summary;
  j["subgraph"] = node_names(g, p.nodes);
  j["computing"] = node_names(g, p.computing);
  j["operations"] = Json::array();
  for (NodeId n : p.nodes) j["operations"].push_back(g.node(n).op);
  j["dtype"] = p.inputs.empty() ? "" : name_of(g.value(p.inputs[0]).type.dtype);
  j["precision"] = name_of(p.precision);
  j["inputs"] = value_names(g, p.inputs);
  j["constants"] = value_names(g, p.constants);
  j["outputs"] = value_names(g, p.outputs);
  j["roles"] = p.roles.to_json();
  j["input_shapes"] = Json::array();
  for (ValueId v : p.inputs) j["input_shapes"].push_back(graph::to_string(g.value(v).type));
  j["reuse"] = {
      {"strategy", strategy_of(p.reuse)},
      {"existing", p.reuse == Reuse::fresh ? "" : p.reuse_detail},
      {"adaptations", p.reuse == Reuse::adapt ? "tuned again at this size, its winners first" : ""},
      {"detail", p.reuse_detail}};
  j["examples"] = p.examples;
  j["expected_challenges"] = p.challenges;
  j["rationale"] = rationale(p);
  j["flops"] = p.flops;
  j["min_bytes"] = p.min_bytes;
  j["unfused_bytes"] = p.unfused_bytes;
  j["floor_ms"] = p.floor_ms;
  j["unfused_ms"] = p.unfused_ms;
  j["gain_ms"] = p.priority;
  if (p.makers) j["makers"] = to_json(*p.makers);
  j["signature"] = p.signature();
  j["body"] = p.body ? p.body->to_json() : Json::object();
  return j;
}

Json to_json(const graph::Graph& g, const Discovery& d) {
  Json j;
  j["schema"] = "tessera.discovery/1";
  j["model"] = g.name;
  j["arch"] = d.arch;
  j["device"] = g.device;
  j["created"] = now_utc();
  j["patterns"] = Json::array();
  j["order"] = Json::array();
  for (const Pattern& p : d.patterns) {
    Json entry = to_json(g, p);
    entry["priority"] = level_of(d, p);
    j["patterns"].push_back(std::move(entry));
    j["order"].push_back(p.id);
  }
  j["rejections"] = Json::array();
  for (const Rejection& r : d.rejections)
    j["rejections"].push_back(
        {{"rule", r.rule}, {"subgraph", node_names(g, r.nodes)}, {"reason", r.reason}});
  j["uncovered"] = Json::array();
  for (const auto& [n, reason] : d.uncovered)
    j["uncovered"].push_back({{"node", g.node(n).name},
                              {"op", g.node(n).op},
                              {"kind", graph::name_of(graph::kind_of(g.node(n)))},
                              {"place", g.node(n).place},
                              {"reason", reason}});
  j["proposable"] = Json::array();
  for (const std::vector<NodeId>& group : d.proposable)
    j["proposable"].push_back(node_names(g, group));
  j["estimates"] = estimates;
  j["notes"] = d.notes;
  return j;
}

std::string to_table(const graph::Graph& g, const Discovery& d) {
  std::vector<std::vector<std::string>> rows;
  for (const Pattern& p : d.patterns)
    rows.push_back({p.id, p.rule, std::string(level_of(d, p)), fmt::format("{:.4f}", p.unfused_ms),
                    fmt::format("{:.4f}", p.floor_ms), fmt::format("{:.4f}", p.priority),
                    kernels_of(p), std::string(strategy_of(p.reuse)),
                    std::to_string(p.examples.size()), g.node(p.computing.front()).name,
                    p.summary});
  std::string text = render_table({"id", "rule", "priority", "unfused ms", "floor ms", "gain ms",
                                   "kernels", "registry", "examples", "at", "what"},
                                  rows);
  if (!d.patterns.empty()) text += fmt::format("\n{}\n", estimates);
  for (const Pattern& p : d.patterns)
    for (const std::string& c : p.challenges) text += fmt::format("\n{}: {}", p.id, c);
  text += why_again(d) + nodes_of(g, d) + without_kernels(d);
  if (!d.uncovered.empty()) text += "\n\nleft to PyTorch:\n";
  for (const auto& [n, reason] : d.uncovered)
    text += fmt::format("  %{} {}: {}\n", g.node(n).name, g.node(n).op, reason);
  text += suggestions(g, d);
  if (!d.rejections.empty()) text += "\nnot taken:\n";
  for (const Rejection& r : d.rejections)
    text += fmt::format("  {} at %{}: {}\n", r.rule, join(node_names(g, r.nodes), " %"), r.reason);
  if (!text.ends_with('\n')) text += "\n";
  for (const std::string& note : d.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace tessera::rules
