#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0001", "input.no_such_file", R"(The path that was given as MODEL.py names no file.)",
     R"(The path is mistyped, or it is relative to another folder than the one the command runs in.
     In `MODEL.py:Class` the path ends at the last colon.)",
     R"(Give the path of a Python file that defines a torch.nn.Module and `get_inputs()`.)",
     R"(
tessera optimize models/mlp.py:Model     # the file models/mlp.py, the class Model in it
)"},
    {"TS0002", "input.import_failed",
     R"(The model's file was found, but Python could not import it.)",
     R"(The file has a syntax error, imports a package that this interpreter lacks, or fails while
     its top level runs. tessera imports it with the interpreter in $TESSERA_PYTHON, else with the
     one that is found first.)",
     R"(Run `python MODEL.py` with that interpreter until it works. `tessera doctor` says which
     interpreter is used.)",
     R"(
error[TS0002]: importing `mlp.py` failed     # ModuleNotFoundError: einops
pip install einops                           # into the interpreter that `tessera doctor` shows
)"},
    {"TS0003", "input.no_such_class",
     R"(The file has no module class of the wanted name, none at all, or several and none called
     `Model`.)",
     R"(Without `:Class` the class `Model` is taken, or the only module class of the file.)",
     R"(Name the class: `MODEL.py:Class`.)",
     R"(
tessera discover blocks.py:Encoder     # blocks.py defines Encoder and Decoder
)"},
    {"TS0004", "input.no_inputs", R"(The file does not say what the module is called with.)",
     R"(Kernels are made for exact shapes, so an example call is needed. The file has no function
     `get_inputs()`.)",
     R"(Add `get_inputs()`, which returns the list of forward's arguments. Constructor arguments
     come from `get_init_inputs()`.)",
     R"(
def get_inputs():
    return [torch.randn(8, 256)]
)"},
    {"TS0005", "input.inputs_failed",
     R"(`get_inputs()` or `get_init_inputs()` raised an exception.)",
     R"(The function is the user's own code; the exception and its line are in the message.)",
     R"(Call the function in Python until it works.)",
     R"(
python -c 'import mlp; mlp.get_inputs()'
)"},
    {"TS0006", "input.construction_failed", R"(The module's constructor raised an exception.)",
     R"(Most often the constructor takes arguments and the file does not give them.)",
     R"(Give the constructor's arguments by `get_init_inputs()`.)",
     R"(
class Mlp(nn.Module):
    def __init__(self, width): ...

def get_init_inputs():
    return [256]
)"},
    {"TS0007", "input.module_fails",
     R"(The module raises an exception on its own inputs in eager PyTorch.)",
     R"(Shapes, dtypes or devices of the inputs do not suit the module. tessera calls the module
     once before it changes anything, so this is no fault of a kernel.)",
     R"(Make `module(*inputs)` run first.)",
     R"(
tessera.optimize(nn.Linear(256, 64), torch.randn(8, 128))   # 128 features where 256 are wanted
tessera.optimize(nn.Linear(256, 64), torch.randn(8, 256))   # right
)"},
    {"TS0008", "input.bad_inputs",
     R"(`inputs` of tessera.optimize has a form that cannot be a call.)",
     R"(It is neither a tensor, a tuple or list of arguments, a dict of keyword arguments, nor a
     pair of both.)",
     R"(Give one of these forms.)",
     R"(
tessera.optimize(m, x)                          # m(x)
tessera.optimize(m, (x, y))                     # m(x, y)
tessera.optimize(m, {"x": x})                   # m(x=x)
tessera.optimize(m, ((x,), {"mask": mask}))     # m(x, mask=mask)
)"},
    {"TS0009", "input.no_module",
     R"(The first argument of tessera.optimize is not a torch.nn.Module.)",
     R"(A function, a scripted object or a pipeline was given.)",
     R"(Wrap the function in a module whose forward calls it, or use
     torch.compile(function, backend="tessera").)",
     R"(
class Wrapped(nn.Module):
    def forward(self, x):
        return my_function(x)
)"},
    {"TS0010", "input.unknown_dtype",
     R"(A graph or a plan names an element type that tessera does not know.)",
     R"(The module holds tensors of a type such as complex64 or an unsigned 16-bit integer.)",
     R"(Convert the tensors, or optimize the submodules that do not use them.)",
     R"(
error[TS0010]: unsupported element type `uint16`
x = x.to(torch.int32)
)"},
    {"TS0011", "input.unknown_precision",
     R"(The precision class that was asked for does not exist.)",
     R"(A precision class says how exact the results have to be; it is one of fp32, tf32, bf16,
     fp16 and fp8. --precision takes auto, fp32, tf32, bf16 and fp16.)",
     R"(Take one of these.)",
     R"(
tessera optimize mlp.py --precision bf16
)"},
    {"TS0012", "input.unknown_effort", R"(The effort that was asked for does not exist.)",
     R"(Efforts say how many configurations a search tries: quick, default or max.)",
     R"(Take one of these; `--seconds` limits the time.)",
     R"(
tessera optimize mlp.py --effort quick
)"},
    {"TS0013", "input.bad_option",
     R"(An option of the Python API has a value that it cannot have here.)",
     R"(A mode is not one of torch.compile's, `leftover` or `runner` is no known word, or two options
     exclude each other: in a mode with CUDA graphs Inductor has to run what no kernel covers, and
     `frozen=True` works with tessera.optimize alone.)",
     R"(Take one of the values that the message lists.)",
     R"(
tessera.optimize(m, x, mode="reduce-overhead", leftover="eager")      # refused
tessera.optimize(m, x, mode="reduce-overhead")                        # right
)"},
    {"TS0014", "input.several_devices",
     R"(Parameters, buffers and inputs lie on more than one device. Tensors without dimensions do not
     count: PyTorch's operators take them from the CPU.)",
     R"(One tensor was left on the CPU, or the model is spread over several GPUs.)",
     R"(Move everything to one device. Of a model on several GPUs, optimize the parts.)",
     R"(
m, x = m.to("cuda"), x.to("cuda")
tessera.optimize(m, x)
)"},
    {"TS0015", "input.hooks", R"(The module, or one inside it, has forward hooks.)",
     R"(A kernel that takes the place of several submodules would skip their hooks. Those of weight norm,
     and those by which Transformers collects outputs, are traced: a module may have them.)",
     R"(Remove the hooks before optimizing. Hooks that are registered later are honoured: the
     original module runs while there are any.)",
     R"(
handle = m.fc1.register_forward_hook(print)
handle.remove()                # then tessera.optimize(m, x)
)"},
    {"TS0020", "input.no_such_arch",
     R"(The architecture that was given with --arch does not exist.)",
     R"(An architecture is what kernels are built for: host (the CPU), sm_80 or sm_90a.)",
     R"(Leave --arch out, which takes the one of the module's device, or name one of the list.)",
     R"(
tessera discover mlp.py --arch sm_90a
)"},
    {"TS0021", "input.no_gpu", R"(A CUDA device was asked for and PyTorch sees none.)",
     R"(The machine has no NVIDIA GPU, the driver is missing, or torch was installed without
     CUDA.)",
     R"(`nvidia-smi` shows whether the driver sees a GPU, `tessera doctor` what torch sees. Without
     a GPU use --device cpu.)",
     R"(
tessera optimize mlp.py --device cpu
)"},
    {"TS0024", "input.no_architecture",
     R"(The GPU is older than every architecture that tessera has kernels for.)",
     R"(Kernels are written for compute capability 8.0 and newer.)",
     R"(Run the module on a newer GPU, or on the CPU with --device cpu.)",
     R"(
error[TS0024]: no architecture of tessera runs on a device of compute capability 7.5
tessera optimize mlp.py --device cpu
)"},
    {"TS0025", "input.wrong_device",
     R"(The architecture and the module's device do not fit together.)",
     R"(Kernels for sm_90a can only be verified and timed where the module runs on such a GPU;
     kernels for host where it runs on the CPU.)",
     R"(Leave --arch out, or move the module with --device. `tessera discover --arch sm_90a` works
     without a GPU, for it only reads the graph.)",
     R"(
tessera optimize mlp.py --arch sm_90a      # on a machine without a GPU: refused
tessera discover mlp.py --arch sm_90a      # works everywhere
)"},
    {"TS0030", "world.system_error",
     R"(The operating system refused something: a file, a folder, a process.)",
     R"(The disk is full, permissions are missing, or too many processes run. The message is the
     system's own.)",
     R"(`tessera doctor` shows the places that tessera writes to and their free space.)",
     R"(
error[TS0030]: filesystem error: cannot create directories: Permission denied
TESSERA_HOME=/data/tessera tessera optimize mlp.py
)"},
    {"TS0031", "input.no_report", R"(There is no report at the path that was given.)",
     R"(`tessera report` takes a report.json, or the folder that `tessera optimize` wrote.)",
     R"(Run `tessera optimize` first; it prints the folder in its last lines.)",
     R"(
tessera optimize mlp.py -o out/mlp
tessera report out/mlp
)"},
    {"TS0032", "input.not_a_report", R"(The file is there, but it is not a report of tessera.)",
     R"(It is not JSON, or its `schema` is not `tessera.report/1`. plan.json and the JSON that
     --json prints have other schemas.)",
     R"(Give the report.json that `tessera optimize` wrote.)",
     R"(
tessera report out/mlp/plan.json       # refused
tessera report out/mlp/report.json     # right
)"},
    {"TS0033", "input.output_not_writable",
     R"(The folder for the results cannot be made or written.)",
     R"(It is checked before the search, so that no result is lost at the end.)",
     R"(Give another folder with -o.)",
     R"(
tessera optimize mlp.py -o /tmp/mlp
)"},
    {"TS0036", "input.no_kernel_file", R"(There is no kernel file at the path that was given.)",
     R"(Commands on kernels take FILE.py, or FILE.py:KERNEL.)", R"(Check the path.)",
     R"(
tessera check kernels/gemm.py
)"},
    {"TS0037", "input.which_kernel",
     R"(The file has no kernel, or several, or none of the name that was given.)",
     R"(A kernel is a function with the decorator `@kernel`.)",
     R"(Name one of those that the message lists.)",
     R"(
tessera check kernels/rows.py          # refused where the file has several
tessera check kernels/rows.py:norm     # right
)"},
    {"TS0038", "input.bad_assignment", R"(A constant or a size was not given as NAME=VALUE.)",
     R"(`--set` and `--size` take one assignment each. The core's own text has no constants.)",
     R"(Write the name, `=` and the value without spaces.)",
     R"(
tessera lower kernels/gemm.py --set BM     # refused
tessera lower kernels/gemm.py --set BM=64  # right
)"},
    {"TS0039", "input.no_size", R"(An integer of the launch is missing, unknown, or no number.)",
     R"(To run a kernel, all of its integers need values.)",
     R"(Give each that the message names with `--size`.)",
     R"(
tessera interpret kernels/gemm.py --size M=64 --size N=64 --size K=128
)"},
    {"TS0041", "input.unknown_argument",
     R"(A command or a function was given an option that it does not have.)",
     R"(The name is mistyped, or belongs to another command. The message names the nearest
     option.)",
     R"(Use the name that the message suggests; `tessera COMMAND --help` lists all.)",
     R"(
tessera.optimize(m, x, retunee=True)     # did you mean `retune`?
)"},
    {"TS0042", "input.missing_argument", R"(A command lacks an argument that it needs.)",
     R"(Commands that work on a model need the model's file.)",
     R"(`tessera COMMAND --help` marks such arguments as REQUIRED.)",
     R"(
tessera optimize              # refused
tessera optimize mlp.py       # right
)"},
    {"TS0043", "input.bad_argument",
     R"(An option has a value of the wrong type, or one that is not among its choices.)",
     R"(Numbers have to be numbers; options with a list of words take only these.)",
     R"(Take a value that the message lists.)",
     R"(
tessera optimize mlp.py --effort quik      # did you mean `quick`?
)"},
    {"TS0044", "input.registry_needs_what",
     R"(The action of `tessera registry` needs to know which entry or file is meant.)",
     R"(show needs a hash, import a file, prune a word that says what goes.)",
     R"(Add it; `tessera registry list` shows the hashes.)",
     R"(
tessera registry prune failed
tessera registry show 3fa2
)"},
    {"TS0045", "input.unreadable_export",
     R"(The file given to `tessera registry import` cannot be read as an export.)",
     R"(There is no such file, it is not JSON, it is nested more than 64 deep, or larger than
     512 MiB.)",
     R"(Make the file with `tessera registry export`; a filter makes it smaller.)",
     R"(
tessera registry export rule=gemm -o gemm.json
tessera registry import gemm.json
)"},
    {"TS0046", "input.negative_option",
     R"(An option that counts seconds or processes is negative.)",
     R"(0 means no limit of its own; less than that means nothing.)", R"(Give 0 or more.)",
     R"(
tessera optimize mlp.py --seconds 30
)"},
    {"TS0047", "input.bad_checkpoints",
     R"(`checkpoints` of tessera.optimize are not positive seconds in ascending order.)",
     R"(Each is a moment of the search at which the best plan so far is kept.)",
     R"(Give positive numbers, the smallest first.)",
     R"(
tessera.optimize(m, x, seconds=60, checkpoints=[15, 30])
)"},
    {"TS0048", "input.unknown_code",
     R"(`tessera explain` was asked for a code that does not exist.)",
     R"(Codes are TS and four digits; the first two of them name the family.)",
     R"(Take the code that the message suggests. `tessera explain` lists all of them.)",
     R"(
tessera explain TS0202
tessera explain TS02        # the family
)"},
    {"TS0049", "input.bad_tunable",
     R"(A line of a kernel's source begins as a tunable does and cannot be read as one, or all tunables
     together make more than 64 combinations.)",
     R"(A line `// tunable: NAME = VALUE, VALUE` (`#` in a kernel file) gives the values that
     `tessera try` sweeps: whole numbers, each name on one line.)",
     R"(Correct the line that is named, or give fewer values.)",
     R"(
// tunable: TILE = 16, 32, 64      the macro TILE; 16 is the default
)"},
    {"TS0050", "input.unknown_source",
     R"(The ending of a kernel's file does not say in which language it is.)",
     R"(`tessera try` takes .py (tile language), .cu (CUDA C++, CUTLASS) and .cpp, .cc, .cxx (C++ for
     the host).)",
     R"(Rename the file.)",
     R"(
tessera try model.py p01 --source gelu.cpp
)"},
    {"TS0051", "input.no_such_pattern", R"(The module has no pattern of this name.)",
     R"(Names are those of `tessera discover` for the same module, precision and architecture; another
     version of the module may number them anew.)",
     R"(Take a name from `tessera discover MODEL.py`.)",
     R"(
tessera discover model.py          # p01, p02, ...
tessera try model.py p02 --skeleton
)"},
    {"TS0052", "input.source_for_other_device",
     R"(The kernel's language is not one of the architecture that the module runs on.)",
     R"(C++ is for the architecture `host`, CUDA C++ and the tile language are for GPUs. A module runs
     where it lies: on the CPU where PyTorch sees no GPU.)",
     R"(Write a source for this device (`--skeleton` does), or choose the other by `--device`.)",
     R"(
tessera try model.py p01 --source gelu.cu --device cuda
)"},
    {"TS0053", "input.no_skeleton", R"(There is no naive kernel to start from for this pattern.)",
     R"(A tensor has an element type that skeletons do not load (fp8, small integers), or nobody has
     written skeletons for the pattern's rule. Ops without a loop are no reason: an `#error` stands
     in the place of each.)",
     R"(Begin with the skeleton of another pattern. The four functions at its end are the same; the
     tensors of a launch are your pattern's inputs and then its outputs, in the order in which
     `tessera discover --json` has them.)",
     R"(
error[TS0053]: a skeleton has no loads of float8_e4m3fn
)"},
    {"TS0054", "input.other_tensors",
     R"(The tensors of a kernel file are not those of the pattern that it was given for.)",
     R"(A kernel's tensors, in their order, are the pattern's inputs and then its outputs, with the same
     element types. Integers of the launch take their values from extents and strides; leading dims of
     a tensor without gaps may be one dim of the kernel.)",
     R"(Compare the signature with the head that `tessera try MODEL.py PATTERN --skeleton` writes.)",
     R"(
error[TS0054]: the kernel's tensor B is not the pattern's %weight: its elements are float16
)"},
    {"TS0055", "input.source_or_skeleton",
     R"(`tessera try` was given neither a source nor --skeleton, or both.)",
     R"(It judges one source, or it writes one to start from.)", R"(Give one of the two.)",
     R"(
tessera try model.py p01 --skeleton --output gelu.cpp
tessera try model.py p01 --source gelu.cpp
)"},
    {"TS0056", "input.no_root", R"(`tessera mcp` was given a --root that is no folder.)",
     R"(Its tools read files of one folder alone, and they are told which.)",
     R"(Give the folder that has the models.)", R"(
tessera mcp --root ~/models
)"},
    {"TS0057", "input.examples_needs_what",
     R"(`tessera examples` was not told what to show or to check, or --shape is no NAME=NUMBER.)",
     R"(`show` takes a path or a configuration's name, `check` a file; extents are positive
     integers.)",
     R"(Take a path or a name from `tessera examples search`.)", R"(
tessera examples search --rule gemm --shape m=4096 --shape n=4096 --shape k=4096
tessera examples show kernels/gemm.py
)"},
    {"TS0058", "input.no_such_example",
     R"(No example has that path, and no configuration that name.)",
     R"(A configuration's name is taken of its content, so it changes with it.)",
     R"(List what there is: `tessera examples search`.)", R"(
tessera examples show 48_hopper_warp_specialized_gemm.cu
)"},
    {"TS0059", "input.bad_configuration",
     R"(The configuration that `tessera examples check` was given cannot be compared.)",
     R"(The file is no JSON object, lacks a field, or names a rule that there is not.)",
     R"(Give `rule`, `precision`, `arch`, `realizer` and `config`; `extents` where the shape
     counts.)",
     R"(
{"rule": "gemm", "precision": "bf16", "arch": "sm_90a", "realizer": "wgmma_gemm",
 "config": {"tile": [128, 256, 64], "cluster": [2, 1], "schedule": "cooperative"},
 "extents": {"m": 4096, "n": 4096, "k": 4096}}
)"},
    {"TS0071", "input.argument_not_data",
     R"(An argument of the reference's call is an object that cannot go to another process.)",
     R"(`tessera judge` runs reference and judged module in processes of their own.)",
     R"(Let get_inputs() return tensors, numbers, texts, and lists or dictionaries of them.)", R"(
def get_inputs():
    return [torch.rand(8, 256), 0.5]
)"},
    {"TS0072", "input.no_reference",
     R"(`tessera judge` was given a folder of files and no reference.)",
     R"(One file may hold both `Model` and `ModelNew`; several are judged beside one reference.)",
     R"(Name it.)", R"(
tessera judge solutions/ --reference problem.py
)"},
};

}  // namespace

std::span<const Explanation> explained_input() {
  return records;
}

}  // namespace tessera
