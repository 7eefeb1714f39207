#include "smt/session.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace tessera::smt {
namespace {

using F = Functions;
constexpr int yes = 1, no = -1;  // Z3_L_TRUE, Z3_L_FALSE

}  // namespace

Session::Session(const Library& library) : z3_(library.functions) {
  Z3Config config = z3_.mk_config();
  context_ = z3_.mk_context(config);
  z3_.del_config(config);
  // Z3's own handler ends the program; without one, errors are codes.
  z3_.set_error_handler(context_, nullptr);
}

Session::~Session() {
  if (model_ != nullptr) z3_.model_dec_ref(context_, model_);
  z3_.del_context(context_);
}

void Session::complain() {
  const int code = z3_.get_error_code(context_);
  if (code != 0)
    throw std::logic_error(std::string("smt: Z3 says: ") + z3_.get_error_msg(context_, code));
}

Expr Session::truth(bool value) {
  return value ? call<&F::mk_true>() : call<&F::mk_false>();
}

Expr Session::all(const std::vector<Expr>& of) {
  if (of.empty()) return truth(true);
  return of.size() == 1 ? of[0] : call<&F::mk_and>(static_cast<unsigned>(of.size()), of.data());
}

Expr Session::any(const std::vector<Expr>& of) {
  if (of.empty()) return truth(false);
  return of.size() == 1 ? of[0] : call<&F::mk_or>(static_cast<unsigned>(of.size()), of.data());
}

Expr Session::named(const std::string& name, Sort sort) {
  return call<&F::mk_const>(call<&F::mk_string_symbol>(name.c_str()), sort);
}

Expr Session::applied(const std::string& name, const std::vector<Expr>& arguments, Sort sort) {
  const auto count = static_cast<unsigned>(arguments.size());
  const std::vector<Sort> domain(arguments.size(), sort);
  Z3Function function =
      call<&F::mk_func_decl>(call<&F::mk_string_symbol>(name.c_str()), count, domain.data(), sort);
  return call<&F::mk_app>(function, count, arguments.data());
}

Answer Session::check(const char* logic, const std::vector<Expr>& conditions, unsigned work) {
  if (model_ != nullptr) z3_.model_dec_ref(context_, model_);
  model_ = nullptr;
  Z3Solver solver = call<&F::mk_solver_for_logic>(call<&F::mk_string_symbol>(logic));
  call<&F::solver_inc_ref>(solver);
  Z3Params params = call<&F::mk_params>();
  call<&F::params_inc_ref>(params);
  call<&F::params_set_uint>(params, call<&F::mk_string_symbol>("rlimit"),
                            std::max(work, 1U));  // 0 would be no limit
  call<&F::solver_set_params>(solver, params);
  call<&F::params_dec_ref>(params);
  for (Expr c : conditions) call<&F::solver_assert>(solver, c);
  // Not by call(): Z3 notes an interruption as an error, and it is an answer.
  const int answer = z3_.solver_check(context_, solver);
  work_ += units(solver);
  if (answer == yes) {
    model_ = call<&F::solver_get_model>(solver);
    call<&F::model_inc_ref>(model_);
  } else if (answer != no) {
    const std::string_view why = call<&F::solver_get_reason_unknown>(solver);
    const bool ended = why.find("resource limit") != std::string_view::npos || why == "canceled";
    reason_ = ended ? fmt::format("Z3 found no answer in {} units of its work", work)
                    : fmt::format("Z3 gave up: {}", why);
  }
  z3_.solver_dec_ref(context_, solver);
  return answer == yes  ? Answer::satisfiable
         : answer == no ? Answer::unsatisfiable
                        : Answer::unknown;
}

int64_t Session::units(Z3Solver solver) {
  Z3Stats stats = call<&F::solver_get_statistics>(solver);
  call<&F::stats_inc_ref>(stats);
  int64_t out = 0;
  for (unsigned i = 0; i < call<&F::stats_size>(stats); ++i) {
    if (std::string_view(call<&F::stats_get_key>(stats, i)) == "rlimit count" &&
        call<&F::stats_is_uint>(stats, i))
      out = call<&F::stats_get_uint_value>(stats, i);
  }
  z3_.stats_dec_ref(context_, stats);
  return out;
}

Expr Session::value(Expr e) {
  Expr out = nullptr;
  if (model_ == nullptr || !call<&F::model_eval>(model_, e, true, &out))
    throw std::logic_error("smt: there is no model to evaluate in");
  return out;
}

}  // namespace tessera::smt
