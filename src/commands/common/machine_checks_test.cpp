#include "commands/common/machine_checks.h"

#include <gtest/gtest.h>

namespace tessera::commands {
namespace {

using State = Check::State;

MachineFacts host() {
  MachineFacts f;
  f.processor = "8 threads";
  f.tools.cxx = "/usr/bin/g++";
  f.tools.cxx_version = "12.2";
  f.tools.own_include = "/opt/tessera/include";
  f.python = "/usr/bin/python3";
  f.packages = {{"python", "3.11.2"}, {"torch", "2.11.0"}, {"plotly", "6.0"}};
  f.places = {{"cache", "/home/me/.cache/tessera", true, 50}};
  f.solver = "5.4.1 (/venv/z3/lib/libz3.so)";
  return f;
}

State state_of(const MachineFacts& f, const std::string& name) {
  for (const Check& c : judge(f)) {
    if (c.name != name) continue;
    EXPECT_EQ(c.how.empty(), c.state == State::ok)
        << "advice is given exactly when something is absent";
    EXPECT_FALSE(c.found.empty());
    return c.state;
  }
  ADD_FAILURE() << "no check " << name;
  return State::ok;
}

TEST(Judge, AMachineWithoutAGpuNeedsNoCudaTools) {
  for (const char* name : {"gpu", "nvcc", "cutlass", "torch on the gpu"}) {
    EXPECT_EQ(state_of(host(), name), State::optional) << name;
  }
  for (const char* name :
       {"processor", "c++ compiler", "python", "torch", "plotly", "z3", "cache"}) {
    EXPECT_EQ(state_of(host(), name), State::ok) << name;
  }
}

TEST(Judge, AGpuNeedsThem) {
  MachineFacts f = host();
  f.gpus = {"NVIDIA H200"};
  for (const char* name : {"nvcc", "cutlass", "torch on the gpu"})
    EXPECT_EQ(state_of(f, name), State::missing) << name;
  f.tools.nvcc = "/usr/local/cuda/bin/nvcc";
  f.tools.cutlass = "/cutlass";
  f.packages["gpu"] = "NVIDIA H200";
  for (const char* name : {"nvcc", "cutlass", "torch on the gpu"})
    EXPECT_EQ(state_of(f, name), State::ok) << name;
}

TEST(Judge, WhatTheMainJobNeedsIsMissing) {
  MachineFacts f = host();
  f.tools.cxx.clear();
  f.tools.own_include.clear();
  f.packages.erase("torch");
  f.packages.erase("plotly");
  f.places[0].free_gib = 0.2;
  for (const char* name : {"c++ compiler", "headers", "torch", "cache"})
    EXPECT_EQ(state_of(f, name), State::missing) << name;
  EXPECT_EQ(state_of(f, "plotly"), State::optional);
  f.solver.clear();
  f.solver_fault = "Z3 4.8.12";
  EXPECT_EQ(state_of(f, "z3"), State::optional);
  f = host();
  f.packages = {{"error", "exit 1"}};
  EXPECT_EQ(state_of(f, "python"), State::missing);
}

TEST(Judge, SaysWhyHostSidesAreCompiledByNvcc) {
  MachineFacts f = host();
  f.tools.nvcc = "/usr/bin/nvcc";
  f.tools.nvcc_version = "12.4";
  f.tools.together_because = "its runtime cannot load a cubin, CUDA 12.8 can";
  for (const Check& c : judge(f)) {
    if (c.name != "nvcc") continue;
    EXPECT_NE(c.found.find("cannot load a cubin"), std::string::npos) << c.found;
  }
}

}  // namespace
}  // namespace tessera::commands
