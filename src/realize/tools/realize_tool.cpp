// realize_tool DIR ARCH < problems.json
// realize_tool flags ARCH
// realize_tool commands ARCH < source.cu
//
// For each problem of the JSON list and each realizer of its rule: the sources of its candidates
// under DIR (by content, so that equal ones are written once) and DIR/index.json with their
// configurations and launches. For checks on a GPU without the rest of the pipeline. A problem's
// own keys "realizers" (names) and "limit" (candidates a realizer) narrow it. The second form
// prints the compiler's flags for any CUDA source, a JSON list; a candidate has its own in "flags".
// The third prints the commands that build this source where a recent toolkit is, a JSON list of
// lists, with places {nvcc}, {cxx}, {cuda}, {own}, {cutlass}, {source} and {output}; a candidate
// has its own in "commands".
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/hash.h"
#include "realize/common/programmatic_launch.h"
#include "realize/realize.h"
#include "realize/testing/problem_json.h"
#include "toolchain/flags.h"

using namespace tessera;

namespace {

/// The commands of a machine with everything.
Json commands_of(const toolchain::Source& source) {
  toolchain::Toolchain tools;
  tools.nvcc = "{nvcc}";
  tools.cxx = "{cxx}";
  tools.cutlass = "{cutlass}";
  tools.own_include = "{own}";
  tools.host_includes = {"{cuda}/include", "{cuda}/include/cccl"};
  tools.host_runtime = "{cuda}/lib64";
  return toolchain::compile_commands(tools, source, "{source}", "{output}");
}

Json describe(const realize::Candidate& c, const std::string& dir) {
  Json j = {{"realizer", c.realizer},
            {"label", c.label()},
            {"config", c.config},
            {"predicted_ms", c.predicted_ms}};
  if (c.source) {
    const std::string file = content_hash(c.source->text) + ".cu";
    std::ofstream(dir + "/" + file) << c.source->text;
    j["file"] = file;
    std::vector<std::string> flags = toolchain::common_flags(*c.source);
    flags.insert(flags.end(), c.source->flags.begin(), c.source->flags.end());
    j["flags"] = std::move(flags);
    j["links"] = c.source->links;
    j["commands"] = commands_of(*c.source);
  }
  j["launches"] = Json::array();
  for (const auto& l : c.launches) j["launches"].push_back({{"knobs", l.knobs}, {"ints", l.ints}});
  return j;
}

bool wanted(const Json& problem, std::string_view realizer) {
  if (!problem.contains("realizers")) return true;
  const auto& names = problem["realizers"];
  return std::find(names.begin(), names.end(), realizer) != names.end();
}

Json realize_all(const Json& problem, const arch::Arch& arch, const std::string& dir) {
  const rules::Pattern pattern = realize::testing::pattern_of(problem);
  Json out = {{"problem", problem},
              {"candidates", Json::array()},
              {"unsupported", Json::object()},
              {"pruned", Json::object()}};
  const std::size_t limit = problem.value("limit", 1000);
  for (const realize::Realizer* r : realize::all()) {
    if (r->rule != pattern.rule || !wanted(problem, r->name)) continue;
    const auto space = r->realize(pattern, graph::Graph{}, arch);
    if (!space) {
      out["unsupported"][std::string(r->name)] = space.error().message;
      continue;
    }
    for (std::size_t i = 0; i < std::min(limit, space->candidates.size()); ++i) {
      out["candidates"].push_back(describe(space->candidates[i], dir));
    }
    Json pruned = Json::object();
    for (const auto& [reason, count] : space->pruned) pruned[reason] = count;
    out["pruned"][std::string(r->name)] = pruned;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr
        << "usage: realize_tool DIR ARCH < problems.json, or realize_tool flags|commands ARCH\n";
    return 3;
  }
  const std::string dir = argv[1];
  const auto arch = arch::find(argv[2]);
  if (!arch) {
    std::cerr << to_text(arch.error());
    return 3;
  }
  if (dir == "flags") {
    const toolchain::Source plain{.name = "", .arch = std::string((*arch)->name)};
    std::cout << Json(toolchain::common_flags(plain)).dump() << "\n";
    return 0;
  }
  if (dir == "commands") {
    toolchain::Source source{.name = "", .arch = std::string((*arch)->name)};
    source.text = {std::istreambuf_iterator<char>(std::cin), {}};
    realize::add_programmatic_launch(**arch, source);
    std::cout << commands_of(source).dump() << "\n";
    return 0;
  }
  const Json problems = Json::parse(std::cin);
  Json index = Json::array();
  for (const Json& problem : problems) index.push_back(realize_all(problem, **arch, dir));
  std::ofstream(dir + "/index.json") << index.dump(1) << "\n";
  return 0;
}
