#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0301", "build.no_compiler",
     R"(There is no compiler for the kernels: nvcc for a GPU, a C++ compiler for everything.)",
     R"(Kernels are written as source text and compiled on this machine. nvcc is looked for in
     $TESSERA_NVCC, on PATH, in /usr/local/cuda and among Python packages; g++ or clang++ in
     $TESSERA_CXX and on PATH.)",
     R"(Install what is missing; `tessera doctor` names the command.)",
     R"(
apt install g++
pip install nvidia-cuda-nvcc nvidia-cuda-cccl
)"},
    {"TS0302", "build.no_cutlass",
     R"(A kernel made with CUTLASS cannot be built, for its headers are missing.)",
     R"(A stored winner uses CUTLASS, and this machine has no CUTLASS tree.)",
     R"(Install the headers. Without them such a winner is not used, and other kernels are.)",
     R"(
pip install nvidia-cutlass==4.2.0.0
)"},
    {"TS0303", "build.compile_failed",
     R"(The compiler refused a kernel's source, or was ended by a signal.)",
     R"(During a search this is one failed trial among many and no error. As an error it means that
     a compiler is broken or has too little memory. A refusal is remembered with the source; an end
     by a signal is not.)",
     R"(The message names the folder with source and log. With `ended by signal 9` memory ran out:
     give --jobs 1.)",
     R"(
tessera optimize mlp.py --jobs 1
)"},
    {"TS0304", "build.timed_out", R"(Compiling a kernel took longer than its limit.)",
     R"(The machine is overloaded, or the compiler hangs on this source. In a search it counts as a
     failed trial.)",
     R"(Nothing has to be done in a search. If all builds time out, give fewer --jobs.)",
     R"(
report: tuning.trials  {"outcome": "timed_out"}
)"},
    {"TS0305", "build.cache_not_writable",
     R"(The folder of built kernels cannot be made or written.)",
     R"(The home folder is read-only, belongs to another user, or its disk is full.)",
     R"(Set TESSERA_HOME to a folder that can be written, or give --cache.)",
     R"(
TESSERA_HOME=/data/$USER/tessera tessera optimize mlp.py
)"},
    {"TS0306", "build.compiler_did_not_start",
     R"(A compiler was found, but the system could not start it.)",
     R"(The file is not executable, is for another machine, or too many processes run.)",
     R"(`tessera doctor` shows which compilers are taken. TESSERA_CXX and TESSERA_NVCC name
     others.)",
     R"(
TESSERA_CXX=/usr/bin/g++-12 tessera optimize mlp.py
)"},
    {"TS0307", "build.cancelled", R"(A build was ended because its result is no longer wanted.)",
     R"(The search's time is over, or Ctrl-C was pressed.)",
     R"(Nothing: the same command goes on from what was found.)",
     R"(
tessera optimize mlp.py --seconds 10     # builds that are under way at 10 s are cancelled
)"},
    {"TS0308", "build.no_headers", R"(The headers that generated kernels include are not found.)",
     R"(They lie in an include folder above the program. The program was copied away from its
     package or source tree.)",
     R"(Install the package again, or set TESSERA_INCLUDE to the `include` folder of the source
     tree.)",
     R"(
TESSERA_INCLUDE=~/tessera/include ./tessera optimize mlp.py
)"},
    {"TS0309", "build.cache_full",
     R"(The disk of the kernel cache has too little room for a search.)",
     R"(It is checked before the search, so that the search does not fail in its middle.)",
     R"(Free space there, clear the cache, or set TESSERA_HOME to another disk.)",
     R"(
tessera registry prune kernels     # kernels are built again when they are wanted
)"},
    {"TS0310", "kernel.not_loadable", R"(A built kernel's shared library cannot be loaded.)",
     R"(The file is damaged, or was built for another machine or another CUDA.)",
     R"(Remove its folder from the cache; it is built again.)",
     R"(
tessera registry prune kernels
)"},
    {"TS0311", "kernel.other_abi",
     R"(A kernel was built with another version of the interface between kernels and tessera.)",
     R"(A folder that `tessera optimize` wrote is older than the installed package.)",
     R"(Optimize the module again.)",
     R"(
tessera optimize mlp.py -o out/mlp
)"},
    {"TS0312", "kernel.wrong_ints",
     R"(A kernel is given another number of run-time integers (extents, strides) than it takes.)",
     R"(The plan and the library belong to different builds.)",
     R"(Optimize again; if a fresh plan is refused, please report it.)",
     R"(
error[TS0312]: tile_row takes 3 run-time integers ['rows', 'columns', 'stride']
)"},
    {"TS0313", "kernel.cannot_launch", R"(A kernel refuses this launch before it runs.)",
     R"(It needs more shared memory or another GPU than this one has, or its extents lie outside
     what it was made for. The message is the kernel's own.)",
     R"(Optimize on the machine that runs the module.)",
     R"(
error[TS0313]: 229376 bytes of shared memory, the device has 101376
)"},
    {"TS0314", "kernel.launch_failed", R"(The launch of a kernel failed on the device.)",
     R"(CUDA reports an error, which may come from earlier work on the same device.)",
     R"(Run with CUDA_LAUNCH_BLOCKING=1 to see whose error it is. In a search it is a failed
     trial.)",
     R"(
CUDA_LAUNCH_BLOCKING=1 python infer.py
)"},
    {"TS0320", "build.no_extension_compiler",
     R"(The small extension through which torch calls kernels cannot be compiled: no C++ compiler,
     or the package's headers are missing.)",
     R"(It is compiled once, at first use. Until then kernels are launched from Python, which takes
     some microseconds more a call.)",
     R"(Install g++.)",
     R"(
fast.status()["launch"]     # {"kind": "python", "reason": "... no C++ compiler ..."}
apt install g++
)"},
    {"TS0321", "build.extension_failed",
     R"(The extension through which torch calls kernels does not compile.)",
     R"(The compiler is too old for C++20, or torch's headers are missing or of another version.)",
     R"(Set CXX to a newer compiler. Until then kernels are launched from Python, which is right
     and slower.)",
     R"(
CXX=g++-12 python infer.py
)"},
    {"TS0322", "build.no_kernel_library",
     R"(A kernel's library is missing or cannot be loaded when a composed module starts.)",
     R"(The cache was cleared, or a folder written by `tessera optimize` was moved in part.)",
     R"(Run the optimization again: it builds what is missing and tunes nothing.)",
     R"(
tessera optimize mlp.py -o out/mlp
)"},
    {"TS0325", "build.cutlass_missing",
     R"(A warning: without the CUTLASS headers some products have no kernel of tessera.)",
     R"(Products in fp8 of operands that do not lie along K, and in tf32 where neither does, are made with CUTLASS. Others may be faster by it.)",
     R"(Install the headers if the module has such products.)",
     R"(
pip install nvidia-cutlass==4.2.0.0
)"},
    {"TS0326", "build.no_disassembler",
     R"(Machine code was asked for, and there is no nvdisasm to print it with.)",
     R"(nvdisasm is a part of the CUDA toolkit of its own. It is looked for beside nvcc and on PATH.)",
     R"(Install it, or print PTX.)",
     R"(
apt install cuda-nvdisasm-13-0
tessera lower kernels/gemm.py --emit ptx
)"},
    {"TS0327", "build.forbidden",
     R"(A source that was given made the compiler do what its sandbox does not allow.)",
     R"(Its text names a file that is none of the compilers', as in `#include "/home/u/.ssh/id_rsa"`,
     or it was ended at a limit of memory, disk or processes. The notes say which.)",
     R"(Put what the source needs into its text.)",
     R"(
error[TS0327]: the compiler of `by_hand` was told to do what is not allowed
  = note: it tried to read /home/u/.ssh/id_rsa
)"},
};

}  // namespace

std::span<const Explanation> explained_build() {
  return records;
}

}  // namespace tessera
