// A session for tests over a small graph on the host: real compilers, the real evaluator process, a
// cache and a registry of its own.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <utility>

#include "base/files.h"
#include "base/source_folder.h"
#include "pipeline/stages.h"

namespace tessera::pipeline::testing {

class OnHost : public ::testing::Test {
 protected:
  /// The graph (tessera.graph/1) discovered, tools opened, works grouped.
  void open(const char* graph_text) {
    const std::filesystem::path source = source_folder();
    ::setenv("TESSERA_PYTHONPATH", (source / "python").c_str(), 1);
    options.cache = folder.path() / "cache";
    options.registry = folder.path() / "registry.sqlite";
    options.parallel_builds = 2;
    context.stop = &stop;
    auto found = discover(parse_json(graph_text), options);
    ASSERT_TRUE(found) << to_text(found.error());
    s.found = std::move(*found);
    auto tools = open_tools(s);
    ASSERT_TRUE(tools) << to_text(tools.error());
    s.tools = std::move(*tools);
    s.tools.evaluation.tools.own_include = source / "include";
    beside_the_clock(false);
    s.work = group_by_signature(s);
    ASSERT_FALSE(s.work.empty());
  }

  /// Another evaluator, whose compilers may run beside the clock as on a GPU, or not.
  void beside_the_clock(bool may) {
    s.tools.evaluation.always_ahead = may;
    s.tools.evaluator =
        std::make_unique<evaluate::Evaluator>(s.tools.evaluation, s.found.graph, *s.found.arch);
  }

  TemporaryFolder folder;
  std::atomic<bool> stop = false;
  Options options;
  Context context;
  Session s{.options = options, .context = context};
};

}  // namespace tessera::pipeline::testing
