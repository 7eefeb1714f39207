#include "attempt/symptoms.h"

#include <algorithm>
#include <initializer_list>

namespace tessera::attempt {
namespace {

constexpr std::size_t most = 3;

using Words = std::initializer_list<std::string_view>;

bool is_of(std::string_view word, Words words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool related(const Verdict& v, Words relations) {
  return v.wrong && is_of(v.wrong->relation, relations);
}

bool lies(const Verdict& v, Words shapes) {
  return v.wrong && is_of(v.wrong->lies, shapes);
}

/// How the wrong elements lie is all that is known of them.
bool unrelated(const Verdict& v, Words shapes) {
  return lies(v, shapes) && v.wrong->relation.empty();
}

bool tail(const Verdict& v) {
  return v.wrong && v.wrong->lies.starts_with("tail of");
}

/// Whether the verdict's words hold one of these texts: cause, diagnostics, warnings, notes of
/// gates.
bool says(const Verdict& v, Words texts) {
  const auto in = [&](const std::string& words) {
    return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
      return words.find(text) != std::string::npos;
    });
  };
  return in(v.cause) || std::any_of(v.warnings.begin(), v.warnings.end(), in) ||
         std::any_of(v.gates.begin(), v.gates.end(),
                     [&](const GateResult& g) { return in(g.note); }) ||
         std::any_of(v.diagnostics.begin(), v.diagnostics.end(), [&](const Diagnostic& d) {
           return in(d.message) || in(d.code) || std::any_of(d.notes.begin(), d.notes.end(), in);
         });
}

/// What `depends` of a wrong result comes to.
struct Dependence {
  bool foreign = false;  // on elements that it must not depend on
  bool missing = false;  // not on elements that it must depend on
  bool counted = false;  // on some elements of a dim more, or less, than on the others
  bool uneven = false;   // on whole inputs, on each another number of times what it must
};

Dependence dependence_of(const Verdict& v) {
  Dependence out;
  if (!v.wrong) return out;
  for (const Json& d : v.wrong->depends) {
    const Json& weight = d.at("weight");
    if (d.at("dim").get<int>() < 0) {
      out.uneven = v.wrong->depends.size() > 1;
    } else if (weight.is_null()) {
      out.foreign = true;
    } else if (weight.get<double>() == 0) {
      out.missing = true;
    } else {
      out.counted = true;
    }
  }
  return out;
}

/// Whether peak rates would take less than half of the time, and the launch alone does not bound
/// it.
bool far_from_peak(const Verdict& v) {
  return v.measured && v.measured->ms > 0 && v.measured->bound != "launch" &&
         v.measured->floor_ms < 0.5 * v.measured->ms;
}

bool swept(const Verdict& v) {
  return v.variants.size() >= 2;
}

bool slower_than_eager(const Verdict& v) {
  return v.measured &&
         std::any_of(v.measured->peers.begin(), v.measured->peers.end(), [&](const Peer& p) {
           return p.name == "eager" && p.ms > 0 && p.ms < v.measured->ms;
         });
}

// Of rows that weigh the same, the one that stands first is named first.
constexpr Symptom table[] = {
    {.name = "the result is zero",
     .shows = [](const Verdict& v) { return related(v, {"zero"}); },
     .cause = "What is computed is never stored, or the accumulator is reset after the sum, or a "
              "branch is never taken.",
     .where = "the way of the accumulator from its last addition to the store",
     .remedy = "Store the accumulator's value after the last addition.",
     .weight = 8},
    {.name = "the launch takes most of the time",
     .shows =
         [](const Verdict& v) {
           return v.measured && v.measured->bound == "launch" &&
                  v.measured->ms > 2 * v.measured->floor_ms;
         },
     .cause = "The work is so small that starting a kernel takes longer; several launches of one "
              "call add up.",
     .where = "the number of launches in tessera_run, and memsets or copies before them",
     .remedy = "Do all of it in one launch. A larger pattern that includes its neighbours gains "
               "more than a faster kernel.",
     .weight = 3},
    {.name = "the compiler does not come to an end",
     .shows = [](const Verdict& v) { return v.failure == Failure::compiler_hangs; },
     .cause = "A loop over a large constant is unrolled whole, or templates are instantiated "
              "without end.",
     .where = "`#pragma unroll` over long loops, recursion in templates, large constexpr tables",
     .remedy = "Unroll a fixed small number of trips (`#pragma unroll 4`).",
     .weight = 7},
    {.name = "every element of the result is the same",
     .shows = [](const Verdict& v) { return related(v, {"constant"}); },
     .cause = "The store does not depend on its place: an index that never moves, or one value "
              "that is broadcast.",
     .where = "the index of the loads inside the loop",
     .remedy = "Let the loads use the same coordinates as the store.",
     .weight = 9},
    {.name = "some elements count another number of times than the others",
     .shows =
         [](const Verdict& v) {
           const Dependence d = dependence_of(v);
           return d.counted && !d.foreign && !d.missing;
         },
     .cause = "A part of the sum is added twice, or with another factor: blocks that overlap, a "
              "rest that begins before the blocks end, an accumulator that is added again.",
     .where =
         "the first and the last index of each block of the sum, and of the loop over the rest",
     .remedy =
         "Let each block begin where the one before it ends, so that each element counts once.",
     .weight = 9},
    {.name = "the process died",
     .shows = [](const Verdict& v) { return v.failure == Failure::crash; },
     .cause = "A pointer is wild: an index far out of bounds, a null workspace, an array on the "
              "stack that is too large.",
     .where = "the line that the sanitizer names, where there is one; else the largest index of "
              "each access",
     .remedy = "Ask for scratch memory by tessera_workspace_size, and check each index against the "
               "extents.",
     .weight = 5},
    {.name = "two inputs are exchanged",
     .shows = [](const Verdict& v) { return related(v, {"exchanged_inputs"}); },
     .cause = "Each of two inputs stands where the other one must: their pointers, or the operands "
              "of a function that is not symmetric.",
     .where = "the order of launch->tensors, and each line that reads one of the two",
     .remedy = "Exchange the two inputs that are named, in both places.",
     .weight = 10},
    {.name = "far from the arithmetic's rate",
     .shows =
         [](const Verdict& v) {
           return far_from_peak(v) && v.measured->bound == "arithmetic" && !swept(v);
         },
     .cause = "The machine could do all operations in less than half of the time: its units wait "
              "for operands, or the fast ones are not used.",
     .where = "the innermost loop: loads an operation, branches, the type of the sums",
     .remedy =
         "Make a tile of results at once, so that each loaded value is used many times from "
         "registers. On a GPU use tensor cores where the element type has them; on host keep the "
         "innermost loop contiguous and free of branches, so that it is vectorized. When the loops "
         "are so, declare tunables (tile sizes, unrolling): all combinations are timed.",
     .weight = 2},
    {.name = "far from the memory's rate",
     .shows =
         [](const Verdict& v) {
           return far_from_peak(v) && v.measured->bound == "memory" && !swept(v);
         },
     .cause = "The memory could move all tensors in less than half of the time: what the kernel "
              "does besides, or the way in which it asks for them, takes the rest.",
     .where = "the innermost loop: the order and width of its accesses, and what is computed again "
              "for each element",
     .remedy = "Read each element once, in the order in which it lies. Keep what several results "
               "need (sums, the overlap of windows) instead of computing it again. Let enough "
               "threads work that many accesses are in flight. When the loops are so, declare "
               "tunables (rows a thread, unrolling): all combinations are timed.",
     .weight = 2},
    {.name = "far from the roofline with all choices of tunables",
     .shows = [](const Verdict& v) { return far_from_peak(v) && swept(v); },
     .cause =
         "The roofline is of peak rates. What keeps a kernel from them is seldom a tile's size: "
         "too few accesses in flight, loops that are not vectorized, functions as exp and log, "
         "threads that wait for each other, or results that are written through the cache.",
     .where = "the innermost loop, and what each thread does before and after it",
     .remedy = "Put one part at a time behind a tunable, in two ways that are both right (another "
               "formula of the function, stores past the cache or not, more or fewer elements at "
               "once): what moves the time most is what bounds it. Without a part a kernel is "
               "wrong, and is not timed.",
     .weight = 2},
    {.name = "the first part of an input is taken for all",
     .shows = [](const Verdict& v) { return related(v, {"first_for_all"}); },
     .cause = "The index of a load lacks a coordinate: a batch, a head or a row is left out.",
     .where = "the index of each load of the input that is named, and pointers that are made once",
     .remedy = "Add the coordinate of dim 0 times its stride.",
     .weight = 10},
    {.name = "it tried what the sandbox does not allow",
     .shows = [](const Verdict& v) { return v.failure == Failure::forbidden; },
     .cause = "The source, or the compiler told by it, opened a file of somebody else, a socket or "
              "another process, or it passed a limit of memory, disk or processes.",
     .where = "includes by absolute paths; constructors that run when the library is loaded",
     .remedy = "Compute the pattern from its tensors alone, in memory that the launch names.",
     .weight = 10},
    {.name = "the kernel does not end",
     .shows = [](const Verdict& v) { return v.failure == Failure::hang; },
     .cause = "A loop's condition never becomes false (an unsigned counter that runs below 0, a "
              "step of 0), threads wait for each other, or the kernel is slower than the limit.",
     .where =
         "the step and the end of each loop; waits in a loop; barriers that not all threads reach",
     .remedy = "Correct the loop; or give more time by --limit.",
     .weight = 6},
    {.name = "the sanitizer names an invalid access",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::invalid_access ||
                  (v.failure == Failure::crash && v.place.line > 0);
         },
     .cause = "At the line that is named, an access leaves the tensor, or a value is undefined.",
     .where = "that line: its index at the last iteration",
     .remedy = "Correct the bound or the index there.",
     .weight = 8},
    {.name = "the launch was refused",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::not_loadable &&
                  says(v, {"too many resources", "invalid configuration", "invalid argument",
                           "cluster"});
         },
     .cause = "Threads, registers times threads, shared memory or the cluster are beyond what a "
              "block may have, or a tensor map was given a stride or box that it does not take.",
     .where = "the grid, the block and the bytes of shared memory in tessera_run; "
              "cudaFuncSetAttribute before it",
     .remedy = "At most 1024 threads and 65536 registers a block. Set MaxDynamicSharedMemorySize "
               "above 48 KiB. TMA wants strides that are multiples of 16 bytes.",
     .weight = 8},
    {.name = "an input is left out",
     .shows = [](const Verdict& v) { return related(v, {"left_out"}); },
     .cause = "An operand is never read, or what is computed of it is not used.",
     .where = "the addends and factors of the meaning, against the lines that read the input",
     .remedy = "Add or multiply the input that is named where the meaning has it.",
     .weight = 10},
    {.name = "an access is not aligned",
     .shows = [](const Verdict& v) { return says(v, {"misaligned"}); },
     .cause = "A load or store of 4, 8 or 16 bytes begins at an address that is no multiple of its "
              "size: a row whose stride is odd, or a view with an offset.",
     .where = "casts to float4, uint4 and the like, and the strides in the skeleton's head",
     .remedy = "Use the wide access only where strides and offset are multiples of it; read the "
               "rest element by element.",
     .weight = 8},
    {.name = "part of the end is missing or wrong",
     .shows = tail,
     .cause = "The extent is not a multiple of the tile, of the vector or of the share of a "
              "thread, and what is left over is handled wrongly.",
     .where = "the bound of the loop over that dim, and how the number of tiles is rounded",
     .remedy = "Round the number of tiles up, and mask or clamp the last one; or take the "
               "left-over elements in a loop of their own.",
     .weight = 6},
    {.name = "the sign of an input is wrong",
     .shows = [](const Verdict& v) { return related(v, {"negated_input"}); },
     .cause =
         "It is subtracted where it must be added, or the operands of a difference are exchanged.",
     .where = "the sign before each use of the input that is named",
     .remedy = "Turn the sign around.",
     .weight = 10},
    {.name = "the library has not the contract's functions",
     .shows = [](const Verdict& v) { return v.failure == Failure::not_loadable; },
     .cause = "One of tessera_describe, tessera_workspace_size, tessera_run, tessera_last_error is "
              "missing or not extern \"C\", or it refused the launch.",
     .where =
         "the end of the source, where they are defined, and the message of tessera_last_error",
     .remedy = "Begin with `tessera try ... --skeleton`: it defines all four.",
     .weight = 7},
    {.name = "there was not enough memory",
     .shows = [](const Verdict& v) { return v.failure == Failure::out_of_memory; },
     .cause = "The scratch memory that tessera_workspace_size asks for, or what the kernel "
              "allocates itself, is more than there is.",
     .where = "tessera_workspace_size, and allocations in tessera_run",
     .remedy = "Keep partial results in registers or shared memory, or split the work so that less "
               "of it is under way.",
     .weight = 7},
    {.name = "infinities or NaN differ from PyTorch's",
     .shows = [](const Verdict& v) { return v.failure == Failure::non_finite; },
     .cause = "A maximum drops NaN, a masked value is multiplied by zero, exp overflows before the "
              "maximum is taken off, or memory outside of the tensor (which is NaN here) is read.",
     .where = "max, min and where; the maximum of a softmax; loads of the last tile",
     .remedy = "Take off the row's maximum before exp; use functions that keep NaN; do not read "
               "past the extent even where the value is not used in the sum.",
     .weight = 7},
    {.name = "the result differs by one constant",
     .shows = [](const Verdict& v) { return related(v, {"offset"}); },
     .cause = "Something is added that the pattern has not, or left out: a bias, an epsilon, the "
              "start value of a sum, a mean that is not taken off.",
     .where = "the start value of each accumulator, and the addends in the pattern's meaning",
     .remedy = "Compare each addend of the meaning with the source.",
     .weight = 9},
    {.name = "a single element is wrong",
     .shows = [](const Verdict& v) { return unrelated(v, {"one element"}); },
     .cause = "A bound is off by one at a corner, two threads write the element, or it is written "
              "before its sum is whole.",
     .where = "the first and the last index of each loop, and who else writes this element",
     .remedy = "Follow the one thread that writes the element, from its index to its store.",
     .weight = 5},
    {.name = "the errors all go one way",
     .shows = [](const Verdict& v) { return related(v, {"one_way"}); },
     .cause = "Rounding goes up as often as down, so it is not that: a constant or an epsilon is a "
              "little off, a small term is missing, or values are cut instead of rounded.",
     .where = "constants and epsilons against those of the meaning; small addends; conversions to "
              "narrower types that drop bits",
     .remedy = "Compare each constant with the meaning first; then round where the source cuts.",
     .weight = 7},
    {.name = "the output holds another element type",
     .shows = [](const Verdict& v) { return related(v, {"other_type"}); },
     .cause = "The pointer of the output is cast to a type that is not the tensor's.",
     .where = "the casts of launch->tensors[...]",
     .remedy =
         "Take the element types from the head of the skeleton (`tessera try ... --skeleton`).",
     .weight = 9},
    {.name = "it depends on other elements than it must",
     .shows =
         [](const Verdict& v) {
           const Dependence d = dependence_of(v);
           return d.missing && d.foreign;
         },
     .cause = "An index is wrong: its coordinate, its stride or its offset.",
     .where = "the index of each load of the tensor that `depends` names: the coordinate of the "
              "dim, its stride, and pointers that are made of it",
     .remedy = "Compare the indices that `depends` names with those that the meaning has for this "
               "element, and take the stride from the extents of this very tensor.",
     .weight = 9},
    {.name = "the kernel takes other tensors than the pattern has",
     .shows = [](const Verdict& v) { return v.failure == Failure::not_the_pattern; },
     .cause = "Number, order, element type or extents of the kernel's tensors differ from the "
              "pattern's inputs and outputs.",
     .where = "the kernel's parameters, beside the list of tensors in the skeleton's head",
     .remedy = "Take inputs first and outputs last, in the head's order; constants such as a "
               "tile's size do not count.",
     .weight = 7},
    {.name = "an input was modified",
     .shows = [](const Verdict& v) { return v.failure == Failure::input_modified; },
     .cause = "A store goes to an input: the order of tensors is mistaken, or the kernel works in "
              "place.",
     .where = "the indices of launch->tensors[...]: inputs in order first, then outputs",
     .remedy = "Write to the outputs alone. The skeleton's head lists the tensors in their order.",
     .weight = 6},
    {.name = "NaN comes from outside of a tensor",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::non_finite && (tail(v) || lies(v, {"one element"}));
         },
     .cause = "What surrounds every input is NaN while a kernel is verified: the last tile reads "
              "beyond the extent.",
     .where = "the loads of the last rows and columns",
     .remedy = "Clamp the index or give 0 for elements outside.",
     .weight = 8},
    {.name = "the checker shows a wrong schedule",
     .shows = [](const Verdict& v) { return v.failure == Failure::refuted; },
     .cause = "There is an order of the threads in which a value is read before it is there, or "
              "after it was overwritten, or waited for for ever.",
     .where = "the two accesses of the counterexample, in the author's lines",
     .remedy = "Order them: a barrier or a wait between the two, in the place that the "
               "counterexample names.",
     .weight = 6},
    {.name = "an input is rounded",
     .shows = [](const Verdict& v) { return related(v, {"rounded_input"}); },
     .cause = "What is read of the input is kept in a narrower type before it is used: where it is "
              "packed, copied or converted.",
     .where = "conversions and packing of the input that is named; not the accumulator",
     .remedy = "Keep its elements in their own type until they are multiplied.",
     .weight = 10},
    {.name = "the result is a multiple of what it must be",
     .shows = [](const Verdict& v) { return related(v, {"scaled"}); },
     .cause = "A factor is missing or applied twice: the scale of attention, 1/n of a mean, a sum "
              "that is reduced twice.",
     .where = "what follows the reduction, and the factors in the pattern's meaning",
     .remedy = "Compare each factor of the meaning with the source.",
     .weight = 9},
    {.name = "each row is a multiple of what it must be",
     .shows = [](const Verdict& v) { return related(v, {"scaled_rows"}); },
     .cause =
         "What is computed once a row (a total, a maximum, a mean of squares) is wrong, and each "
         "element is multiplied or divided by it: the start value of the reduction is not its "
         "identity, a term is missing or counts twice, or the number of terms is another.",
     .where = "the start value of the accumulator of the row, the bounds of its loop, and what it "
              "is divided by",
     .remedy = "Start a sum at 0 and a maximum at -infinity; take each element of the row once.",
     .weight = 9},
    {.name = "wrong elements lie without an order",
     .shows = [](const Verdict& v) { return unrelated(v, {"scattered"}); },
     .cause = "A race: what is read was not yet written, or was written again. Or a function that "
              "is wrong for some values alone.",
     .where = "barriers between writing and reading shared memory; accumulation by several "
              "threads; the branches of the function",
     .remedy = "Run it twice: places that change are a race. Places that stay depend on the "
               "values: look at the inputs there.",
     .weight = 5},
    {.name = "the result is shifted",
     .shows = [](const Verdict& v) { return related(v, {"shifted"}); },
     .cause = "An index is off by one or by a constant: a loop starts at 1, or an offset is added "
              "that is none.",
     .where = "the start of the loops and the constants in the index of loads and stores",
     .remedy = "Start at element 0 of the view: its offset is already in the pointer, or stands in "
               "the skeleton's head.",
     .weight = 9},
    {.name = "slower than PyTorch",
     .shows = slower_than_eager,
     .cause = "The kernel moves more bytes or keeps fewer units at work than PyTorch's own.",
     .where = "the innermost loop: strides, vectorization, reuse; and how many threads work",
     .remedy = "Bound by memory: one pass over each tensor, contiguous in the innermost loop. "
               "Bound by arithmetic: tiles that are reused from registers, `#pragma omp parallel "
               "for` on host, tensor cores on a GPU.",
     .weight = 3},
    {.name = "registers spill",
     .shows = [](const Verdict& v) { return v.resources.value("spill_bytes", 0) > 0; },
     .cause = "A thread needs more registers than it has; values go to memory and back.",
     .where = "the size of the tile that one thread holds, and __launch_bounds__",
     .remedy = "Make the tile smaller, or give it more threads.",
     .weight = 4},
    {.name = "a template was given what it does not take",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::does_not_compile &&
                  says(v, {"static assertion failed", "static_assert", "no instance of",
                           "no matching function", "incomplete type"});
         },
     .cause = "Element types, layouts, alignments, tile or cluster of a CUTLASS template exclude "
              "each other, or a function is called with other types than it has.",
     .where = "the assertion's own text, and the header that it stands in; the arguments at the "
              "author's line",
     .remedy = "Hold the arguments against a configuration that is known to be good: `tessera "
               "examples search --rule RULE`. Change one of them at a time.",
     .weight = 8},
    {.name = "elements have no part in the result that must have one",
     .shows =
         [](const Verdict& v) {
           const Dependence d = dependence_of(v);
           return d.missing && !d.foreign;
         },
     .cause = "A loop ends early or starts late, a condition is too strict, or an index stays "
              "where it is.",
     .where = "the bounds and conditions around the loads of the tensor that `depends` names, "
              "along the dim that it names",
     .remedy = "Let the loop run over the elements that `depends` names as well.",
     .weight = 9},
    {.name = "the errors are those of a coarser type",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::wrong_result && related(v, {"rounded"});
         },
     .cause = "Sums are accumulated, or operands rounded, in a narrower type than the precision "
              "class allows.",
     .where = "the type of the accumulator and of what is kept between the loops",
     .remedy = "Accumulate in float (fp32), and round once, at the store.",
     .weight = 7},
    {.name = "it depends on elements that it must not depend on",
     .shows =
         [](const Verdict& v) {
           const Dependence d = dependence_of(v);
           return d.foreign && !d.missing;
         },
     .cause =
         "A mask or a condition is missing or turned around, or a bound lets too many elements in.",
     .where = "the conditions and bounds around the loads of the tensor that `depends` names, "
              "along the dim that it names",
     .remedy = "Hide the elements that `depends` names: a mask sets a score to -infinity before "
               "the maximum, not to 0; a bound ends before them.",
     .weight = 9},
    {.name = "a block asks for too much shared memory",
     .shows =
         [](const Verdict& v) {
           return says(v, {"too much shared data", "exceeds shared memory"});
         },
     .cause = "The stages of the ring, the tiles and the epilogue's buffer together are larger "
              "than a block's shared memory.",
     .where = "the sizes in the compiler's message; the number of stages times the bytes of one",
     .remedy = "Take fewer stages or a smaller tile. Above 48 KiB the memory must be dynamic "
               "(`extern __shared__`), with the launch's attribute set.",
     .weight = 8},
    {.name = "an input is transposed",
     .shows = [](const Verdict& v) { return related(v, {"transposed_input"}); },
     .cause = "The index of a load has its two coordinates exchanged: a row-major matrix is read "
              "as column-major.",
     .where = "the index of each load of the input that is named",
     .remedy = "Exchange the two coordinates in that index: the stride goes with the other one.",
     .weight = 10},
    {.name = "the result is transposed",
     .shows = [](const Verdict& v) { return related(v, {"transposed"}); },
     .cause = "Two dims change places: a row-major tensor is read or written as column-major, or m "
              "and n of a product are swapped.",
     .where = "the strides in the index of the output and of each operand",
     .remedy = "Exchange the two strides. Each view in the skeleton's head is shape:stride.",
     .weight = 9},
    {.name = "inputs weigh unevenly against each other",
     .shows =
         [](const Verdict& v) {
           const Dependence d = dependence_of(v);
           return d.uneven;
         },
     .cause = "The steps of the epilogue stand in another order than the meaning has: an addend or "
              "a factor comes behind the function instead of before it. Or one input has a factor "
              "that the meaning has not.",
     .where = "the line where the inputs that weigh otherwise meet, and the order of functions, "
              "factors and addends there",
     .remedy = "Follow the meaning from the inside out: what is added before a function stands in "
               "its argument.",
     .weight = 9},
    {.name = "the compiler does not know a name",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::does_not_compile &&
                  says(v, {"was not declared", "is undefined", "does not name a type"});
         },
     .cause = "A function or type of another header, or of the other target, is used.",
     .where = "the line that is named, and the includes",
     .remedy = "Include its header, or write the function out. What a kernel is given is "
               "tessera/kernel.h.",
     .weight = 7},
    {.name = "elements were never written",
     .shows = [](const Verdict& v) { return v.failure == Failure::incomplete; },
     .cause = "No thread or iteration writes them: a loop ends early, a number of blocks is "
              "rounded down, or a condition keeps a store back.",
     .where =
         "the bounds of the outermost loops or of the grid, and every condition around a store",
     .remedy = "Cover every element: round up the number of tiles, and check that each output of "
               "the pattern has a store.",
     .weight = 6},
    {.name = "bytes beside a tensor were written",
     .shows = [](const Verdict& v) { return v.failure == Failure::out_of_bounds; },
     .cause = "An index goes past the extent: an inclusive bound, a last tile without a mask, "
              "strides of another dim, or stores of a wider element type than the tensor's.",
     .where = "the index of each store: its bound, its strides, the type of its pointer",
     .remedy = "Compare the index with the extents in the head of the skeleton; mask the last "
               "tile; use the element type that the contract names.",
     .weight = 6},
    {.name = "a block of the result is wrong",
     .shows = [](const Verdict& v) { return unrelated(v, {"a block", "tail of block"}); },
     .cause = "One tile's coordinates, its first loop trip or its stage differ from the others': "
              "the last tile, a tile that two blocks take, or none.",
     .where = "the map from blocks to tiles, and what the first and the last trip of the loop do",
     .remedy = "Compare the box of the wrong elements with the tile's extents: an equal size says "
               "which tile it is.",
     .weight = 5},
    {.name = "whole columns are wrong",
     .shows = [](const Verdict& v) { return unrelated(v, {"columns"}); },
     .cause = "What belongs to a column (a bias, a scale, a column of the second operand) is read "
              "at another place for these, or a lane's share of a fragment goes to another column.",
     .where = "the index of what is broadcast along the rows, and the map from lanes to columns",
     .remedy = "Read a value of a column by the column's index alone. Compare the first wrong "
               "column with the width of a vector, a fragment and a tile.",
     .weight = 5},
    {.name = "a constant is wrong",
     .shows = [](const Verdict& v) { return related(v, {"wrong_constant", "nearly_scaled"}); },
     .cause = "A number of the source is not the one of the meaning: the 1 of a complement such as "
              "1 - s, a factor, a coefficient. By how much it is off stands before what it is "
              "multiplied with.",
     .where = "the numbers of the source where the value that is named is multiplied or added, "
              "against those of the ATen nodes in the skeleton's head",
     .remedy = "Write each constant with all digits of the meaning. Types and accumulators are "
               "right: leave them.",
     .weight = 10},
    {.name = "wrong elements lie along a diagonal",
     .shows = [](const Verdict& v) { return lies(v, {"a diagonal", "a triangle", "a band"}); },
     .cause = "A comparison of two indices (a causal mask, a triangle, a window) is off by one or "
              "by an offset, turns the other way, or is left out.",
     .where = "each comparison of a row's index with a column's, and the blocks that are passed "
              "over because of it",
     .remedy = "Compare the bounds that the verdict names with those of the meaning: `<` for `<=`, "
               "the diagonal's offset, the indices of the whole tensor rather than of the tile.",
     .weight = 9},
    {.name = "each row has a factor near 1",
     .shows = [](const Verdict& v) { return related(v, {"nearly_scaled_rows"}); },
     .cause = "What each row is divided or multiplied by is a little off: an epsilon of another "
              "size or in another place (within the root or outside of it), n for n - 1, a "
              "constant under the root.",
     .where = "the epsilon and the count that go into the norm, the variance or the total of a row",
     .remedy = "Take epsilon and count as the meaning has them, at their place. Types and "
               "accumulators are right: leave them.",
     .weight = 10},
    {.name = "everything is wrong by different amounts",
     .shows = [](const Verdict& v) { return unrelated(v, {"everywhere"}); },
     .cause =
         "The sum or the function itself is another one: a bound of the reduction, an operand that "
         "is left out, an epilogue in another order, a biased variance for an unbiased one.",
     .where = "the innermost loop's bounds, then the epilogue against the pattern's meaning",
     .remedy = "Recompute the first wrong element by hand from the meaning in the skeleton's head, "
               "and compare the terms.",
     .weight = 4},
    {.name = "whole rows are wrong",
     .shows = [](const Verdict& v) { return unrelated(v, {"rows", "every n-th"}); },
     .cause = "What is computed once a row (a maximum, a sum, a mean) is wrong for these rows, or "
              "one stage or thread of a repeating schedule does it wrongly.",
     .where = "the reduction over the row, and what depends on the row's number modulo the period",
     .remedy = "Check the start value of the reduction and its bounds; with a period, what is "
               "reused before it is read.",
     .weight = 5},
    {.name = "the architecture has no such instruction",
     .shows =
         [](const Verdict& v) {
           return v.failure == Failure::does_not_compile &&
                  says(v,
                       {"not supported on .target", "requires .target", "target-specific option"});
         },
     .cause = "The source uses an instruction of another generation: tcgen05 on Hopper, wgmma "
              "before it, or one that needs the `a` of sm_90a.",
     .where = "the instruction that the assembler names",
     .remedy = "Use the architecture's own: docs/instructions.md lists those of Hopper.",
     .weight = 9},
};

}  // namespace

std::span<const Symptom> symptoms() {
  return table;
}

std::vector<Advice> advice_for(const Verdict& v) {
  std::vector<const Symptom*> fitting;
  for (const Symptom& s : table) {
    if (s.shows(v)) fitting.push_back(&s);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Symptom* a, const Symptom* b) { return a->weight > b->weight; });
  std::vector<Advice> out;
  for (const Symptom* s : fitting) {
    if (out.size() == most) break;
    out.push_back({.symptom = std::string(s->name),
                   .cause = std::string(s->cause),
                   .where = std::string(s->where),
                   .remedy = std::string(s->remedy)});
  }
  return out;
}

}  // namespace tessera::attempt
