// One elaboration of a kernel: names, the threads that are here, and the ops written so far. Only
// the files of this folder include it.
#pragma once

#include <set>

#include "base/text.h"

#include "core/builder.h"
#include "language/builtin.h"
#include "language/language.h"

namespace tessera::language {

/// What is known only when a kernel has been elaborated to its end, and needed at its beginning:
/// every kernel is elaborated twice, and the first time measures it.
struct Measured {
  int threads = 1024;
  int64_t rest = 24;                    // registers a thread that other roles leave
  std::map<int32_t, int64_t> arrivals;  // of a phase, by BarriersId
  std::size_t maps = 0;                 // tensor maps, which are fetched before they are used
  // Names that the kernel's text uses; others of its integers are no parameters of the launch.
  std::optional<std::set<std::string>> named = {};
};

/// In the place of a role's registers: what the other roles leave.
inline constexpr int64_t rest_of_registers = -1;

/// The threads that execute what is being written.
struct Threads {
  enum class Who : uint8_t { all, one_of_warp, one_of_warpgroup, one };
  std::string role;  // empty: the block
  int warps = 0;     // of the role
  Term warp;         // the warp's place among them
  Who who = Who::all;
  bool apart = false;  // a condition on the thread's coordinates holds
  int barrier_id = 0;  // named barriers of the role, 0: none yet
  int group_barrier_id = 0;
  [[nodiscard]] int warpgroups() const { return warps / 4; }
  /// How many run it; nothing where a condition chooses them.
  [[nodiscard]] std::optional<int64_t> count() const;
  [[nodiscard]] std::string text() const;  // "256 threads", "one thread"
};

/// A loop of the core that is being written.
struct Turn {
  Term index, trips;
  bool of_tiles = false;
};

class Elaborator {
 public:
  Elaborator(std::shared_ptr<const Source> source, const syntax::Module& module,
             const syntax::Function& kernel, const Options& options, const Measured& measured);

  Result<core::Kernel> run();
  /// Of what run has made.
  [[nodiscard]] Result<Measured> measure(const core::Kernel& draft);

  // elaborate.cpp
  [[nodiscard]] Label label(Span s, std::string text = "") const {
    return source_->label(s, std::move(text));
  }
  [[nodiscard]] const Source& source() const { return *source_; }
  /// For storages and terms.
  [[nodiscard]] core::Builder& builder() { return *builder_; }
  /// For ops: barriers are made before the first one, and the op has this place in the text.
  Result<core::Builder*> emit(Span span);
  /// What the builder could not make, at this place.
  Status builder_failure(Span span);
  /// A name that is not used yet among the kernel's storages.
  std::string fresh(const std::string& name);
  /// A name for a counter over [lower, upper) that no loop around has.
  std::string counter_name(const std::string& wanted, Term lower, Term upper);

  // statement.cpp
  Status block(const syntax::Block& body);
  /// The body with names of its own, which the machine may run several times or not at all.
  Status machine_block(const std::function<Status()>& body);
  Status bind(const std::string& name, Value value, Span span);

  // expression.cpp
  Result<Value> evaluate(const syntax::Expr& e);
  Result<Value> attribute(const Value& of, std::string_view name, Span span);
  /// All names that mean something here.
  [[nodiscard]] std::vector<std::string> names() const;
  // subscript.cpp
  Result<Value> subscript(const Value& of, const syntax::Subscript& s, Span span);

  // operators.cpp
  Result<Value> unary(std::string_view op, const Value& v, Span span);
  Result<Value> binary(std::string_view op, const Value& a, const Value& b, Span span);
  Result<Value> compare(std::string_view op, const Value& a, const Value& b, Span span);
  /// A function of single elements.
  Result<Value> apply(std::string_view function, const std::vector<const Value*>& operands,
                      Span span);
  /// A condition: known, or the machine's.
  Result<std::variant<bool, Term>> condition(const syntax::Expr& e);
  Result<Term> number(const Value& v, Span span);

  // call.cpp
  Result<Value> call(const syntax::Call& c, Span span);
  Result<Value> invoke(const Builtin& b, std::shared_ptr<const Value> self,
                       std::vector<Call::Bound> given, Span span);

  // instruction.cpp
  /// Issues a form with values for its operands, in order or by name, and for its modifiers.
  Status issue(const arch::Form& form, const std::vector<Call::Bound>& given, Span span);
  /// Fails unless the threads that are here may issue it.
  Status may_issue(const arch::Form& form, Span span);

  // fragment.cpp
  Result<Layout> layout_of(const Fragment& f, Span span);
  [[nodiscard]] bool laid(core::RegistersId id) const { return unlaid_.count(id.index) == 0; }
  void lay(core::RegistersId id, Layout layout);
  Result<Fragment> registers(DType element, std::vector<int64_t> tile, std::optional<Layout> layout,
                             Span span);
  Result<Elementwise> elementwise(const Value& v, Span span);
  Status compute(const Fragment& to, const Elementwise& e, Span span);
  /// The elements in registers of their own, or the fragment itself.
  Result<Fragment> keep(const Value& v, Span span);
  void wrote(core::RegistersId id) { ++versions_[id.index]; }
  /// Slots of a thread; fails where the tile does not go into the threads that are here.
  Result<int64_t> slots_of(const Fragment& f, Span span);
  Result<Fragment> part_of(const Fragment& f, const std::vector<std::optional<Position>>& parts,
                           Span span);
  /// The index of each element along a dimension of its tile: an integer of the thread and of the
  /// element that is being computed, for computations of registers that lie as these do.
  Result<Term> index_of_elements(const Fragment& f, int dim, Span span);
  /// Whether the integer is another one for each element of a tile.
  [[nodiscard]] bool of_elements(Term t) const;
  /// Where slots begin, and how they go on.
  Result<core::Run> run_of(const Fragment& f, Span span);

  /// The coordinate of the elements in `t`, where it has one, becomes that of the computation.
  Status name_element(core::Compute& c, Term t, const Fragment& to, Span span);
  Diagnostic apart(const Fragment& f, const Fragment& to, const Layout& from, const Layout& there,
                   Span span);

  // tags.cpp
  using Said = std::variant<core::Tag, core::AssertTag>;
  /// An op here for what an author says of tags. Its terms are made when all others are, with the
  /// names and threads that are here: what the machine does is not written otherwise for it.
  void say_later(Span span, std::function<Result<Said>()> make);
  /// The number that a lambda is of these.
  Result<Term> value_of(const LambdaRef& l, const std::vector<Value>& arguments);
  /// A symbol with values from 0 below `extent`, called `wanted` where nothing else is.
  Result<Term> symbol_below(const std::string& wanted, Term extent, Span span);
  /// The coordinate of a thread's slots, for registers that lie so.
  Result<Term> element_of(const Fragment& f, Span span);

  // setup.cpp
  Status role(const std::string& name, int64_t warps, std::optional<int64_t> registers, Span span,
              const std::function<Status()>& body);
  Status one_thread(const std::string& of, Span span, const std::function<Status()>& body);
  Status made_barriers(core::BarriersId id, std::optional<int64_t> arrivals, bool complete,
                       Span span);
  /// Loops over tiles say how many blocks there are; all have to say the same.
  Status set_grid(Term grid, Span span);
  /// An `arrive` or `expect` at this place of the text, which `blocks` of the cluster execute for
  /// each barrier.
  Status arrives(core::BarriersId id, Term slot, Span span, int64_t blocks = 1);
  [[nodiscard]] std::optional<int64_t> warps_of_slot(Term slot) const;
  [[nodiscard]] bool complete_at_start(core::BarriersId id) const;
  Result<int> barrier_id(bool of_warpgroup, Span span);
  /// The first of `count` named barriers that nobody else has.
  Result<int> named_barriers(int64_t count, Span span);
  [[nodiscard]] Threads& threads() { return threads_; }

  // tma.cpp in builtins
  std::map<std::string, core::MapId> maps;

  std::vector<Turn> turns;  // the loops around, the outermost first
  std::string naming;       // what the value that is being made will be called

 private:
  struct Bound {
    Value value;
    Span span;
  };
  struct Frame {
    std::map<std::string, Bound> names;
    enum class Of : uint8_t { module, function, machine } of = Of::function;
  };
  struct BarrierFacts {
    std::optional<int64_t> declared;
    bool complete = false;
    Span span;
    struct Site {
      std::string role;
      std::optional<int64_t> arrivals;
      Span span;
    };
    std::vector<Site> sites;
  };

  // elaborate.cpp
  Status module_names();
  // signature.cpp
  Status decorators();
  Status signature();
  /// What the launch gives, of these parameters: the integers first.
  Result<std::map<std::string, Value>> launch_parameters(
      const std::vector<const syntax::Parameter*>& all, std::string_view of);
  Status function_parameters();
  [[nodiscard]] bool unused(const syntax::Parameter& p) const;
  Status constant_parameter(const syntax::Parameter& p);
  [[nodiscard]] Value of_constant(const Value& v) const;
  Result<Value> index_parameter(const syntax::Parameter& p, const IndexType& t);
  Result<Value> tensor_parameter(const syntax::Parameter& p, const TensorType& t);
  Result<Value> override_of(const syntax::Parameter& p, const Constant& c);
  Term extent(const std::variant<std::string, int64_t>& e);
  // statement.cpp
  Status statement(const syntax::Statement& s);
  Status assign(const syntax::Assign& a, Span span);
  Status assign_to(const syntax::Expr& target, Value value, Span span);
  Status augmented(const syntax::Assign& a, Span span);
  Status store_part(const syntax::Subscript& s, const Value& value, Span span);
  Status loop(const syntax::For& f, Span span);
  Status branch(const syntax::If& i, Span span);
  Status with(const syntax::With& w, std::size_t item, Span span);
  Status check(const syntax::Assert& a);
  Status give_back(const syntax::Return& r, Span span);
  /// Values that are still to be computed are, before a loop that may change what they read.
  Status settle(Span span);
  // expression.cpp
  const Bound* find(const std::string& name) const;
  std::optional<std::string> path_of(const syntax::Expr& e) const;
  std::optional<Value> named(const std::string& path) const;
  Diagnostic unknown(const std::string& name, Span span) const;
  Result<Value> operation(const syntax::Binary& b, Span span);
  Result<Value> logical(const syntax::Binary& b, Span span);
  Result<Value> comparison(const syntax::Compare& c, Span span);
  Result<Value> conditional(const syntax::Conditional& c, Span span);
  // subscript.cpp
  struct Index {
    Term start;
    int64_t extent = 1;
    bool kept = true;    // false: one element, no dimension of what comes out
    bool whole = false;  // `:`
    std::optional<Position> position = {};
  };
  /// `extent`: of what is taken apart; 0: not known.
  Result<Index> index(const syntax::Expr& e, int64_t extent);
  Status dimensions(const syntax::Subscript& s, std::size_t have, std::string_view what, Span span);
  Status fits(const Index& at, int64_t extent, Span span);
  Result<Term> ring_slot(const Position& p, int64_t slots, std::string_view of, Span span);
  Result<Value> box(const TensorRef& t, const syntax::Subscript& s, Span span);
  Result<Value> part(const Position& p, const syntax::Subscript& s, Span span);
  Result<Value> part(const BoxRef& b, const syntax::Subscript& s, Span span);
  Result<Value> part(const SharedRef& b, const syntax::Subscript& s, Span span);
  Result<Value> slot(const BarriersRef& b, const syntax::Subscript& s, Span span);
  Result<Value> place(const NamedRef& n, const syntax::Subscript& s, Span span);
  Result<Value> part(const Fragment& f, const syntax::Subscript& s, Span span);
  // tensor_type.cpp
  Result<Value> tensor_type(const syntax::Subscript& s, Span span);
  Status tensor_part(const syntax::Expr& e, TensorType& type);
  /// Of `x if CONSTANT == 1 else y` the one that holds; else the expression itself.
  Result<const syntax::Expr*> chosen(const syntax::Expr& e);
  // operators.cpp
  Result<Value> terms(std::string_view op, Term a, Term b, Span span);
  /// The node of `to`'s DAG that has e's elements.
  static int append(Elementwise& to, const Elementwise& e);
  // call.cpp
  /// `lambdas`: what is called may take some.
  Result<std::vector<Call::Bound>> arguments(const syntax::Call& c, bool lambdas);
  Result<Value> call_user(const UserFunction& f, std::vector<Call::Bound> given, Span span);
  Result<Value> call_pointwise(const pointwise::Function& f, const std::vector<Call::Bound>& given,
                               Span span);
  // instruction.cpp
  Result<core::Argument> argument(const arch::Form& form, const arch::Operand& operand,
                                  const Call::Bound& given);
  // setup.cpp
  void make_barriers();
  Result<int64_t> arrivals_of(const BarrierFacts& facts, const std::string& name);

  std::shared_ptr<const Source> source_;
  const syntax::Module& module_;
  const syntax::Function& kernel_;
  const Options& options_;
  Measured measured_;
  std::unique_ptr<core::Builder> builder_;
  std::vector<Frame> frames_;
  std::vector<const syntax::Function*> calls_;  // that are being inlined
  std::optional<Value> returned_;
  int machine_depth_ = 0;    // loops and branches of the machine around, in this function
  int machine_around_ = 0;   // and around its call
  bool some_turns_ = false;  // a condition around chooses turns of a loop over tiles
  Threads threads_;
  int warps_used_ = 0;
  int roles_ = 0;
  int64_t fixed_warps_ = 0, rest_warps_ = 0;  // of roles that say their registers, or take the rest
  int64_t fixed_registers_ = 0;               // of one lane of each such warp
  int next_barrier_id_ = 1;
  int threads_asked_ = 0;  // by @kernel(threads=)
  Span grid_span_;
  int cluster_ = 1, min_blocks_ = 1;
  std::string means_;
  std::map<std::string, std::string> numbers_;  // of constants, as text: for means_
  bool in_body_ = false;                        // the signature has been read
  bool begun_ = false;                          // the first op has been written
  std::map<int32_t, BarrierFacts> barriers_;
  std::set<int32_t> unlaid_;
  std::map<int32_t, Span> registers_span_;
  std::map<int32_t, int> versions_;
  struct Indexed {
    Term element;  // a coordinate of a thread's slots
    std::vector<int64_t> tile;
    Layout layout;
  };
  std::vector<Indexed> indexed_;
  struct Later {
    std::vector<Frame> frames;
    std::vector<std::string> counters;
    Threads threads;
    std::function<Result<Said>()> make;
  };
  std::vector<Later> later_;
  Result<std::vector<Said>> said();
  std::set<std::string> used_names_;
  std::vector<std::string> active_counters_;
  mutable std::set<std::string> named_;  // what has been looked up

  friend class CounterScope;
};

/// Makes a loop of the core: its counter has the name while it is written.
Status machine_loop(Elaborator& e, const std::string& counter, Term upper, bool unroll, Span span,
                    const std::function<Status(Term)>& body);

}  // namespace tessera::language
