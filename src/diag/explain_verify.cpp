#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0501", "verify.module_wrong",
     R"(The composed module does not compute what the original does, and dropping single kernels did
     not mend it. Nothing is delivered.)",
     R"(Every composed module is run on several inputs and compared with the original in fp64. A
     kernel, a rewrite or the module itself is at fault: a module whose result differs from call to
     call looks the same.)",
     R"(Try `--use-registry=false` (a stored kernel may be stale) and `--only library`. Check that
     the module gives the same result twice. Please report what is left.)",
     R"(
tessera optimize mlp.py --use-registry=false
)"},
    {"TS0502", "verify.trace_differs",
     R"(The traced graph does not give what the module gives, before any kernel is used.)",
     R"(forward changes from call to call (it counts calls, draws random numbers, reads a global), or
     asks whether it is traced, as nn.TransformerEncoder does: in eager it gives zeros where a
     padding mask hides. Or a plan was given with another module. tessera.optimize then leaves the
     module to eager PyTorch, and `status()` has the reason.)",
     R"(Make forward a function of its inputs and parameters, for instance by .eval(); give
     nn.TransformerEncoder enable_nested_tensor=False.)",
     R"(
m.eval()                          # no dropout, no update of running statistics
tessera.optimize(m, x)
)"},
    {"TS0503", "verify.resize_wrong",
     R"(A warning: optimized again at another size, the module is not right there.)",
     R"(After the search tessera tries the winning configurations at two other sizes, as a test of
     the kernels. The module at the traced size is verified and right.)",
     R"(Use the module at the traced size, and please report it.)",
     R"(
tessera optimize mlp.py --resizes false     # without this test
)"},
    {"TS0504", "verify.rewrite_wrong",
     R"(A warning: a family of graph rewrites is wrong on this module and was switched off.)",
     R"(The rewritten graph was run beside the traced one in fp64 and differed. The result does
     without these rewrites and is right.)",
     R"(Nothing has to be done; please report the module.)",
     R"(
report: verification.rewrites.off  ["attention"]
)"},
    {"TS0505", "verify.not_checked",
     R"(A warning: something was checked in a cheaper form than fp64, or not at all.)",
     R"(The reference in fp64 did not fit into memory. Or an op of the module, a custom one most often,
     does not know fp64, and was run in its own types.)",
     R"(Free memory on the device, or optimize at a smaller batch first. Of an op that does not know
     fp64 nothing has to be done.)",
     R"(
warning[TS0505]: the module was checked in a cheaper form, fp32
)"},
    {"TS0506", "verify.kernel_wrong",
     R"(A warning: a kernel that passed alone is wrong inside the module, and was dropped.)",
     R"(The module is run as a whole after it is composed. The kernel's mark stays in the registry,
     so that no later search takes it again.)",
     R"(Nothing has to be done: the rest is delivered. Please report it.)",
     R"(
warning[TS0506]: p3 gemm: the kernel wgmma_gemm/128x128 is wrong in the module, and dropped
)"},
    {"TS0507", "verify.compiler_wrong",
     R"(A warning: what Inductor makes of the ops without a kernel is wrong, so they run eagerly.)",
     R"(The ops between the kernels were compiled by Inductor and the module's result differed; with
     eager ops it is right.)",
     R"(Compare torch.compile(module) alone with the module: it may be wrong too, which is worth a
     report to PyTorch.)",
     R"(
torch.testing.assert_close(torch.compile(m)(x), m(x))
)"},
    {"TS0510", "verify.no_such_value", R"(A pattern names a value that its graph does not have.)",
     R"(Graph and pattern are of different traces; a fault of tessera.)",
     R"(Please report it with the module.)",
     R"(
error[TS0510]: the graph has no value ['gelu_1'] of the pattern
)"},
    {"TS0511", "verify.shape", R"(A pattern's output has another shape than the graph says.)",
     R"(Running the pattern's ops alone gave another shape than tracing the whole module did; a fault
     of tessera or of an op's shape function.)",
     R"(Please report it with the module.)",
     R"(
error[TS0511]: the pattern's output y has another shape than the graph says
)"},
    {"TS0512", "evaluate.no_way_to_run",
     R"(A candidate is neither a built kernel nor a library's call, so it cannot be run.)",
     R"(Program and Python package are of different versions.)",
     R"(Install both from the same version.)",
     R"(
tessera doctor     # shows which program, which Python and which headers are used
)"},
    {"TS0513", "verify.reference_out_of_memory",
     R"(The fp64 reference of a pattern does not fit into memory.)",
     R"(fp64 takes two to four times the memory of the module's own types, and other processes may
     hold part of the device.)",
     R"(Free memory, or optimize at a smaller batch.)",
     R"(
nvidia-smi     # who holds the memory
)"},
    {"TS0519", "evaluate.no_graph",
     R"(An evaluator was asked about a pattern before it was given the graph.)",
     R"(A message of the protocol is missing; only programs that speak it themselves meet this.)",
     R"(Send `open` with the graph first (docs/protocol.md).)",
     R"(
error[TS0519]: no open before named the graph
)"},
    {"TS0520", "evaluate.not_right", R"(A stored winner no longer passes its check.)",
     R"(Driver, library or GPU changed since it was stored, or its times came from another state of
     the machine.)",
     R"(Drop the entry; the pattern is then tuned anew.)",
     R"(
tessera registry prune hash:3fa2
)"},
    {"TS0521", "compose.inactive", R"(With strict=True: a kernel of the plan cannot be active.)",
     R"(Its library is missing, was built for another machine, or a fact about the module that the
     plan relies on no longer holds.)",
     R"(Optimize again. With strict=False the ops run in PyTorch, and status() says why.)",
     R"(
fast.status()["lost"]     # [{"id": "p0", "rule": "gemm", "reason": "..."}]
)"},
    {"TS0522", "compose.guard",
     R"(With strict=True: a call does not fit what the composed module was made for.)",
     R"(Another shape, dtype, device or grad mode, a changed attribute or precision flag.)",
     R"(Call it as it was traced, or optimize for the new call too. With strict=False the original
     runs instead, and status() counts it.)",
     R"(
with torch.no_grad():
    fast(x)              # kernels have no backward
)"},
    {"TS0530", "measure.inactive",
     R"(What was measured is not what the plan claims: a kernel was not active during the timing.)",
     R"(A guard missed or a kernel was lost between the search and the measurement.)",
     R"(Run the command again; if it comes back, please report it.)",
     R"(
error[TS0530]: what was measured is not what the plan claims: ['p1']
)"},
    {"TS0531", "measure.wrong_result",
     R"(A timed run gave a wrong result, so its time is not reported.)",
     R"(Results are compared during the measurement too. The module is random (dropout in training
     mode), keeps a state, or has hardware with errors under it.)",
     R"(Check that the module gives the same result twice; use .eval().)",
     R"(
m.eval()
)"},
    {"TS0540", "judge.random",
     R"(The reference of `tessera judge` draws random numbers, so no other module can be compared with
     it.)",
     R"(Dropout in training mode, most often: KernelBench's harness never calls eval().)",
     R"(Set the probability to 0, or call .eval() in the reference's constructor.)", R"(
self.drop = nn.Dropout(0.0)
)"},
    {"TS0541", "judge.unsteady",
     R"(The reference of `tessera judge` is another graph when it is built from another seed.)",
     R"(Its constructor decides by random numbers what forward does.)",
     R"(Decide that by get_init_inputs().)", R"(
def get_init_inputs():
    return [256, True]
)"},
    {"TS0542", "judge.no_reference",
     R"(The state of the reference could not be handed to the judge.)",
     R"(The disk is full, or the process that made it was ended.)",
     R"(Free some room where temporary files lie (TMPDIR) and run it again.)", R"(
TMPDIR=/data/tmp tessera judge solution.py
)"},
    {"TS0543", "judge.no_results", R"(The reference of `tessera judge` returns no tensor.)",
     R"(There is nothing to compare.)", R"(Let forward return what it computes.)", R"(
def forward(self, x):
    return self.linear(x)
)"},
};

}  // namespace

std::span<const Explanation> explained_verify() {
  return records;
}

}  // namespace tessera
