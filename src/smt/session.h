// One context of Z3 with its expressions, and checks of conjunctions in it.
//
// A session serves one question: what a solver does depends on what its context has seen before,
// and a verdict must not. It also depends on the order in which expressions are made. So no call
// here has two arguments that make one: C++ leaves their order to the compiler.
#pragma once

#include <string>
#include <vector>

#include "smt/library.h"

namespace tessera::smt {

enum class Answer : uint8_t { satisfiable, unsatisfiable, unknown };

class Session {
 public:
  explicit Session(const Library& library);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// A function of the table on this context. An error of Z3's is a fault of ours: it throws
  /// std::logic_error.
  template <auto function, class... Args>
  auto call(Args... args) {
    if constexpr (std::is_void_v<decltype((z3_.*function)(context_, args...))>) {
      (z3_.*function)(context_, args...);
      complain();
    } else {
      auto out = (z3_.*function)(context_, args...);
      complain();
      return out;
    }
  }
  Expr truth(bool value);
  Expr negation(Expr a) { return call<&Functions::mk_not>(a); }
  Expr equal(Expr a, Expr b) { return call<&Functions::mk_eq>(a, b); }
  Expr choice(Expr p, Expr a, Expr b) { return call<&Functions::mk_ite>(p, a, b); }
  Expr all(const std::vector<Expr>& of);
  Expr any(const std::vector<Expr>& of);
  Expr named(const std::string& name, Sort sort);
  /// `name` of `arguments`, a function of which nothing is known; the arguments and the value have
  /// the sort.
  Expr applied(const std::string& name, const std::vector<Expr>& arguments, Sort sort);

  /// Whether all of `conditions` can hold together. `logic` is a name of SMT-LIB. After `work`
  /// units of Z3's own count (its rlimit), which does not depend on the machine, the answer is
  /// unknown.
  Answer check(const char* logic, const std::vector<Expr>& conditions, unsigned work);
  /// Why the last answer is unknown.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// Units that all checks took.
  [[nodiscard]] int64_t work() const { return work_; }
  /// The value of `e` in the model of the last check, which was satisfiable: a constant expression.
  Expr value(Expr e);

 private:
  void complain();
  int64_t units(Z3Solver solver);

  const Functions& z3_;
  Z3Context context_ = nullptr;
  Z3Model model_ = nullptr;
  std::string reason_;
  int64_t work_ = 0;
};

}  // namespace tessera::smt
