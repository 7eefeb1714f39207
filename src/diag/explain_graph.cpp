#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0201", "graph.malformed",
     R"(The JSON of a traced graph does not follow the schema tessera.graph/1.)",
     R"(The tracer and the program are of different versions, or the file was edited.)",
     R"(Trace the module again with the Python package that belongs to the program.)",
     R"(
TESSERA_BINARY=/old/tessera python train.py     # an old program with a new package
unset TESSERA_BINARY
)"},
    {"TS0202", "graph.untraceable", R"(The module cannot be taken as one graph of ATen ops.)",
     R"(tessera traces with torch.export, which follows one call of forward. It stops at code that
     it cannot follow: calls of other libraries, objects that are changed beside tensors, a cache
     object among the inputs, ops on complex tensors. A call that changes something in Python each
     time is no graph of tensors either, and tracing is given up after a minute. The message names
     the place. tessera.optimize captures such a module in parts, unless strict=True.)",
     R"(Three ways out, in this order: change the place that the message names; optimize the
     submodules that do not contain it; or use torch.compile(module, backend="tessera"), which
     leaves such a place to Python and optimizes the graphs around it.)",
     R"(
class Head(nn.Module):
    def forward(self, x):
        return torch.from_numpy(scipy_filter(self.body(x).numpy()))    # no ATen ops

head.body = tessera.optimize(head.body, x)                 # the part that can be traced
head = torch.compile(head, backend="tessera")              # or all around that line
)"},
    {"TS0203", "graph.data_dependent",
     R"(What the module computes depends on the values of a tensor, not only on its shape.)",
     R"(A Python `if` or loop asks for a value, or an op such as nonzero gives a result whose size
     only the values tell. One graph cannot hold both outcomes.)",
     R"(Write the choice with torch.where or a mask. Or optimize the submodules that do not depend
     on values, or use torch.compile(module, backend="tessera").)",
     R"(
return x if x.sum() > 0 else -x                  # refused
return torch.where(x.sum() > 0, x, -x)           # right
)"},
    {"TS0204", "graph.dynamic_shape",
     R"(The graph has sizes as inputs; kernels are made for fixed sizes.)",
     R"(torch.compile made the graph for varying sizes, as it does by itself after a second
     shape.)",
     R"(Call torch.compile with dynamic=False: every shape then gets a graph of its own.)",
     R"(
torch.compile(m, backend="tessera", dynamic=False)
)"},
    {"TS0205", "graph.unsupported_dtype",
     R"(A tensor has a type or a layout that a graph of tessera cannot hold.)",
     R"(Complex tensors enter or leave the module, or a tensor is sparse or quantized. Complex
     numbers inside the module are taken apart where their ops allow it.)",
     R"(Take and return complex tensors as torch.view_as_real(z); convert the others; or optimize
     the submodules without them.)",
     R"(
def forward(self, z):                    # z: [..., 2], real
    z = torch.view_as_complex(z)
    return torch.view_as_real(z * self.phase)
)"},
    {"TS0206", "graph.shared_memory",
     R"(The module writes to memory that several of its inputs share.)",
     R"(One tensor, or overlapping views of one, were given as several arguments, or a buffer is a
     view of another one, and forward changes one of them in place. A graph of values cannot say
     what the others hold then. torch.compile can: such a module is captured in parts.)",
     R"(Give what is written to memory of its own; tensors that are only read may overlap.)",
     R"(
tessera.optimize(model, (x, x.clone()))  # forward changes its first argument
)"},
    {"TS0210", "graph.unsupported_pointwise",
     R"(An op works element by element, but tessera has no expression for it.)",
     R"(The op, or one of its arguments, has no line in the table of pointwise functions. A pattern
     ends in front of it.)",
     R"(Nothing has to be done: the op stays in PyTorch. CONTRIBUTING.md says how to add a pointwise
     function.)",
     R"(
discovery.rejections: pointwise  `aten.lgamma` is not taken as a pointwise expression
)"},
    {"TS0211", "rules.not_expressible",
     R"(A place in the graph looked like a pattern, but cannot be written as one kernel.)",
     R"(The rule found the right ops with something that its kernels cannot read or write: a view
     that is no strided layout, a reduction over a middle dim, a concatenation across rows. The
     reason stands in the report under `rejections`.)",
     R"(Nothing has to be done: the ops stay in PyTorch. Where the reason is a copy or a view in the
     model, writing it differently may help.)",
     R"(
rejections: gemm  a concatenation cuts the rows or columns
)"},
    {"TS0212", "rules.unsupported_type",
     R"(A pattern computes in an element type that has no kernels.)",
     R"(Kernels exist for float32, bfloat16, float16 and the 8-bit floats; this one is float64 or an
     integer type.)",
     R"(Give --precision, or convert the module.)",
     R"(
tessera.optimize(m.float(), x.float())     # instead of .double()
)"},
    {"TS0213", "graph.unknown_dtype",
     R"(A plan names an element type that this torch does not have.)",
     R"(The plan was made with a newer torch, for instance with another 8-bit float.)",
     R"(Load it with the torch that made it, or optimize again.)",
     R"(
error[TS0213]: no element type `float8_e8m0fnu` in this torch
)"},
    {"TS0214", "plan.malformed",
     R"(A plan does not hold together: a step needs a value that no step before it makes, or its
     kind is unknown.)",
     R"(plan.json was edited, cut short, or comes from another version of tessera.)",
     R"(Optimize the module again; the registry makes this short. If a fresh plan is refused, please
     report it.)",
     R"(
error[TS0214]: the plan needs the value `gelu`, which nothing produces
)"},
    {"TS0215", "plan.unknown_tensor",
     R"(The plan reads a parameter or buffer that the module does not have.)",
     R"(`load` was given another module than the one that was optimized, or its parameters were
     renamed.)",
     R"(Give `load` a module of the same class and sizes, or optimize this one.)",
     R"(
error[TS0215]: the module has no parameter `fc9.weight`
)"},
    {"TS0220", "graph.unknown_op", R"(This PyTorch has no op of the name that the graph holds.)",
     R"(The graph or plan was made with another version of torch, or the op belongs to a package
     that is not imported here.)",
     R"(Import the package that registers the op, or trace again with this torch.)",
     R"(
import torchvision            # registers torchvision::nms
)"},
    {"TS0221", "graph.no_such_value",
     R"(A part of a graph was asked for a value that it neither makes nor is given.)",
     R"(The pattern and the graph belong to different traces. A user meets it only where files of
     two runs were mixed.)",
     R"(Run the command again from the model's file; if it comes back, please report it.)",
     R"(
error[TS0221]: the nodes neither make nor are given `view_3`
)"},
    {"TS0222", "graph.no_meaning",
     R"(An 8-bit product has a scale on its result, whose fp64 meaning is not defined here.)",
     R"(torch._scaled_mm was called with scale_result and an 8-bit output.)",
     R"(Let the product give bfloat16, and convert with a scale of its own.)",
     R"(
y = torch._scaled_mm(a, b, sa, sb, out_dtype=torch.bfloat16)
)"},
    {"TS0230", "propose.no_such_node",
     R"(A proposal of `tessera discover --propose` names a node that the graph has not.)",
     R"(Names are those of the traced graph, or of the graph after its rewrites. A node that nobody
     needs is in neither.)",
     R"(Take names from `tessera discover MODEL.py --json` (`subgraph`, `uncovered`).)", R"(
{"proposals": [{"name": "gate", "nodes": ["cumsum", "mul"]}]}
)"},
    {"TS0231", "propose.not_convex",
     R"(A proposed subgraph cannot run as one step: a node outside needs its results and gives it
     inputs.)",
     R"(A kernel starts when all its inputs are there and ends with all its results.)",
     R"(Take the node that is named in, or leave out what needs it.)", R"(
{"nodes": ["exp", "add"]}            # refused where add also reads sum, and sum reads exp
{"nodes": ["exp", "sum", "add"]}
)"},
    {"TS0232", "propose.effects",
     R"(A proposed subgraph holds an op that changes what it is given, or is not computed by a call.)",
     R"(A pattern means its ops as functions. Ops in place have effects; what is made of parameters alone
     is computed once and kept.)",
     R"(Leave the node out; its result is an input.)", R"(
{"nodes": ["mul", "sum"]}            # without copy_
)"},
    {"TS0233", "propose.random", R"(A proposed subgraph holds an op that draws random numbers.)",
     R"(Its results could be compared with nothing.)",
     R"(Propose what comes before it, and what comes behind it, as two.)", R"(
{"proposals": [{"nodes": ["mul"]}, {"nodes": ["add", "sum"]}]}     # dropout lies between
)"},
    {"TS0234", "propose.devices", R"(A proposed subgraph has tensors of several devices.)",
     R"(A kernel reads and writes tensors of the device that it runs on.)",
     R"(Leave out what moves a tensor, or what reads one that lies elsewhere.)", R"(
model.cuda()     # with all its buffers
)"},
    {"TS0235", "propose.computes_nothing",
     R"(A proposal names no node that computes, or nothing of it is needed.)",
     R"(The list is empty, or a rewrite took the node away.)",
     R"(Name nodes as `tessera discover MODEL.py --json` has them.)", R"(
{"proposals": [{"name": "gate", "nodes": ["cumsum", "mul"]}]}
)"},
    {"TS0236", "propose.not_aten", R"(A proposed subgraph holds an op that is not ATen's.)",
     R"(Results are held against the ops in fp64, and an operator of somebody else's may know one type
     alone.)",
     R"(Leave it out.)", R"(
{"nodes": ["mul", "sum"]}            # without my_library.fused
)"},
    {"TS0237", "propose.aliasing",
     R"(A proposed subgraph only looks at memory of others, so that its result would be memory of its
     input.)",
     R"(Views move nothing: a kernel in their place would copy, and writes to the one would no longer
     show in the other.)",
     R"(Propose nodes that compute. A pattern reads through views between them.)", R"(
{"nodes": ["roll", "mul"]}           # and not ["transpose"]
)"},
    {"TS0238", "propose.bad_file", R"(A file of proposals cannot be read.)",
     R"(It is no JSON, or lacks the lists that it must have.)",
     R"(Write it as below; `name` and `rationale` may be left out.)", R"(
{"proposals": [{"name": "gate", "nodes": ["cumsum", "mul"], "rationale": "one pass instead of two"}]}
)"},
    {"TS0239", "propose.no_registry",
     R"(Something is proposed, and the registry that would keep it is not used.)",
     R"(A pattern that was proposed is found again by its form, which the registry has.)",
     R"(Leave --use-registry at true; --registry names another file.)", R"(
tessera discover model.py --propose gate.json --registry trial.sqlite
)"},
    {"TS0260", "propose.no_proposal",
     R"(`tessera discover --withdraw` names a proposal that the registry does not have.)",
     R"(A proposal is taken back by the name that it was proposed with.)",
     R"(The diagnostic lists the names that are kept.)", R"(
tessera discover model.py --withdraw gate
)"},
};

}  // namespace

std::span<const Explanation> explained_graph() {
  return records;
}

}  // namespace tessera
