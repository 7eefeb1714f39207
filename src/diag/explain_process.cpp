#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0701", "peer.did_not_start",
     R"(The Python process that holds the module, or one that runs kernels, did not start.)",
     R"(There is no Python, $TESSERA_PYTHON names none, or the system refuses another process.)",
     R"(Set TESSERA_PYTHON to an interpreter that has torch; `tessera doctor` checks it.)",
     R"(
TESSERA_PYTHON=~/venv/bin/python tessera optimize mlp.py
)"},
    {"TS0702", "peer.died", R"(A Python process ended before it answered.)",
     R"(torch is not installed there, memory ran out, or a kernel crashed it. The notes are its last
     words. A process that dies while it tries a kernel costs only that candidate and is started
     anew.)",
     R"(`tessera doctor` checks Python and its packages. When the system ended it for memory, give
     --jobs 1 or a smaller batch.)",
     R"(
error[TS0702]: the process that ran `trace` died     # No module named 'torch'
pip install torch
)"},
    {"TS0703", "peer.timed_out", R"(A Python process took longer than its limit and was ended.)",
     R"(The machine is overloaded, or a kernel never ends; in a search that kernel is a failed
     trial.)",
     R"(Run the command again on a quieter machine; what was found is kept.)",
     R"(
error[TS0703]: `measure_module` took more than 600 s; its process was ended
)"},
    {"TS0704", "peer.broke_protocol",
     R"(A Python process wrote something else than a JSON line to its answers.)",
     R"(Program and Python package are of different versions. What the model prints goes to stderr and
     does no harm.)",
     R"(Install both from the same version, and unset TESSERA_BINARY and PYTHONPATH.)",
     R"(
tessera doctor     # shows which of them are used
)"},
    {"TS0705", "peer.unknown_method", R"(A process was asked for a method that it does not have.)",
     R"(Program and Python package are of different versions.)",
     R"(Install both from the same version, and unset TESSERA_BINARY and PYTHONPATH.)",
     R"(
tessera doctor     # shows which of them are used
)"},
    {"TS0706", "peer.nothing_traced",
     R"(The tracer was asked about a module before one was traced.)",
     R"(Only programs that speak the protocol themselves meet this.)",
     R"(Send `trace` first (docs/protocol.md).)",
     R"(
error[TS0706]: no module is held: `trace` comes first
)"},
    {"TS0708", "report.schema", R"(The JSON that was to be rendered is no report.)",
     R"(Its schema is not tessera.report/1.)",
     R"(Give the report.json that `tessera optimize` wrote.)",
     R"(
python -m tessera.report out/mlp/report.json report.html
)"},
    {"TS0709", "report.no_plotly", R"(A warning: the HTML report has tables in place of plots.)",
     R"(plotly draws the plots, and the Python that renders the page does not have it. plotly is
     optional: only the page uses it.)",
     R"(Install it into that Python, which the message names and `tessera doctor` shows, and render the
     report again; or name another Python by TESSERA_PYTHON.)",
     R"(
python3 -m pip install plotly
tessera report out/mlp --html out/mlp/report.html
)"},
    {"TS0710", "report.no_html",
     R"(A warning: the module was optimized and written, but the HTML page was not.)",
     R"(The target cannot be written, or Python could not run. The message has the reason.)",
     R"(Mend that and render the stored report.)",
     R"(
tessera report out/mlp --html out/mlp/report.html
)"},
    {"TS0711", "report.cannot_render", R"(`tessera report --html` could not write the page.)",
     R"(The target cannot be written, or Python could not run. The message has the reason.)",
     R"(Give a file that can be written; `tessera doctor` shows which Python is used.)",
     R"(
tessera report out/mlp --html /tmp/mlp.html
)"},
    {"TS0712", "process.died", R"(The program behind tessera.optimize ended before it answered.)",
     R"(It was killed (often for memory), or has a fault. The notes are its last lines.)",
     R"(Call it again: what was tuned is kept. If it comes back without a signal, please report
     it.)",
     R"(
error[TS0712]: the engine ended before it answered (signal SIGKILL)     # dmesg shows the reason
)"},
    {"TS0713", "evaluate.no_device",
     R"(Kernels for a GPU were to be run and torch sees no CUDA device.)",
     R"(The driver is missing, CUDA_VISIBLE_DEVICES is empty, or torch was built without CUDA.)",
     R"(`tessera doctor` says what is missing; --device cpu runs without a GPU.)",
     R"(
unset CUDA_VISIBLE_DEVICES
)"},
    {"TS0714", "evaluate.no_such_handle",
     R"(An evaluator was asked about a problem that it does not hold.)",
     R"(The problem was closed, or the process was started anew. Only programs that speak the
     protocol themselves meet this.)",
     R"(Send `open` again (docs/protocol.md).)",
     R"(
error[TS0714]: no open problem has the handle 7
)"},
    {"TS0715", "process.no_binary", R"(The Python package does not find the program `tessera`.)",
     R"($TESSERA_BINARY names a file that cannot be run, or the package was not installed and no
     build folder lies beside it.)",
     R"(Install the package with pip, build the program, or unset TESSERA_BINARY.)",
     R"(
./dev build
PYTHONPATH=python python infer.py
)"},
    {"TS0716", "process.no_mcp",
     R"(`tessera mcp` was started with a Python that has no package mcp.)",
     R"(The protocol is spoken by its own package, which is optional.)",
     R"(Install it into the Python that the message names.)", R"(
pip install 'tessera[mcp]'
)"},
    {"TS0717", "sandbox.none",
     R"(Code that was given is not run, as nothing on this machine confines it.)",
     R"(What `tessera try` builds and runs is somebody else's text. It runs where it reads and writes
     its own folder alone, by namespaces of the kernel or by Landlock; here neither works. Containers
     often forbid the first, and kernels before 5.13 have no second.)",
     R"(`tessera doctor` says what fails. Allow user namespaces, or run on a kernel with Landlock. For
     code that you trust as your own there is --unsandboxed.)",
     R"(
tessera try mlp.py p01 --source k.cpp --unsandboxed     # with all that you may do yourself
)"},
    {"TS0720", "protocol.unknown_method",
     R"(`tessera serve` was asked for something else than `optimize`.)",
     R"(The Python package is newer than the program.)", R"(Install both from the same version.)",
     R"(
tessera --version
)"},
    {"TS0900", "bug.exception", R"(A fault in tessera: an exception that nothing expected.)",
     R"(This is never the user's fault.)",
     R"(Please report it with the command and the model. --effort quick or --only library may avoid
     it.)",
     R"(
error[TS0900]: fault in tessera: map::at
)"},
    {"TS0901", "internal.exception",
     R"(A fault in tessera's Python processes: an exception that nothing expected.)",
     R"(It is tessera's own fault, unless the last lines of the notes lie in the model's code.)",
     R"(Please report it with the notes.)",
     R"(
error[TS0901]: KeyError: 'outputs'
)"},
    {"TS0902", "bug.plan_has_no_order",
     R"(A fault in tessera: the chosen patterns need each other's results.)",
     R"(The choice of patterns let a cycle through.)",
     R"(Please report it with the model. --only library may avoid it.)",
     R"(
error[TS0902]: the plan needs `add_3` to compute itself
)"},
    {"TS0960", "store.bad_statement", R"(A fault in tessera: SQLite refused a statement.)",
     R"(A statement and the registry's tables do not fit together.)",
     R"(Please report it. --use-registry=false avoids it.)",
     R"(
tessera optimize mlp.py --use-registry=false
)"},
};

}  // namespace

std::span<const Explanation> explained_process() {
  return records;
}

}  // namespace tessera
