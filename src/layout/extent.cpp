#include "layout/extent.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <stdexcept>

namespace tessera {
namespace {

constexpr Code bad_extent{"TS0113", "layout.bad_extent"};

}  // namespace

Extent::Extent(int64_t constant) {
  add({}, constant);
}

Extent Extent::parameter(const std::string& name, int64_t divisor) {
  if (divisor < 1) throw std::logic_error("the divisor of a parameter is at least 1");
  Extent e;
  e.add({{name, divisor, true}}, divisor);
  return e;
}

void Extent::add(Product product, int64_t coefficient) {
  std::sort(product.begin(), product.end());
  const auto at = terms_.try_emplace(std::move(product), 0).first;
  at->second += coefficient;
  if (at->second == 0) terms_.erase(at);
}

Extent operator+(const Extent& a, const Extent& b) {
  Extent sum = a;
  for (const auto& [product, coefficient] : b.terms_) sum.add(product, coefficient);
  return sum;
}

Extent operator*(const Extent& a, const Extent& b) {
  Extent out;
  for (const auto& [x, p] : a.terms_)
    for (const auto& [y, q] : b.terms_) {
      Extent::Product both = x;
      both.insert(both.end(), y.begin(), y.end());
      out.add(std::move(both), p * q);
    }
  return out;
}

bool Extent::is_constant() const {
  return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty());
}

int64_t Extent::constant() const {
  if (!is_constant()) throw std::logic_error(to_string(*this) + " is not constant");
  return terms_.empty() ? 0 : terms_.begin()->second;
}

int64_t Extent::divisor() const {
  int64_t out = 0;
  for (const auto& [product, coefficient] : terms_) out = std::gcd(out, coefficient);
  return out;
}

Result<int64_t> Extent::evaluate(const std::map<std::string, int64_t>& parameters) const {
  int64_t sum = 0;
  for (const auto& [product, coefficient] : terms_) {
    int64_t value = coefficient;
    for (const Unknown& u : product) {
      const auto given = parameters.find(u.name);
      if (given == parameters.end()) {
        return error(fail(bad_extent, "the parameter {} is not given", u.name)
                         .but_found("{}", to_string(*this)));
      }
      if (given->second < 1 || (u.exact && given->second % u.by != 0)) {
        return error(fail(bad_extent, "the parameter {} is not what it was said to be", u.name)
                         .expect("a multiple of {} above 0", u.exact ? u.by : 1)
                         .but_found("{}", given->second));
      }
      value *= (given->second + u.by - 1) / u.by;
    }
    sum += value;
  }
  return sum;
}

Result<Extent> Extent::divide(int64_t by) const {
  if (by < 1) throw std::logic_error("an extent is divided by less than 1");
  Extent out;
  for (const auto& [product, coefficient] : terms_) {
    if (coefficient % by != 0) {
      return error(fail(bad_extent, "{} is not known to be a multiple of {}", to_string(*this), by)
                       .help("declare its parameters as multiples of {}, or round up", by));
    }
    out.add(product, coefficient / by);
  }
  return out;
}

Result<Extent> Extent::divide_up(int64_t by) const {
  if (by >= 1 && divisor() % by == 0) return divide(by);
  if (by >= 1 && is_constant() && constant() >= 0) return Extent((constant() + by - 1) / by);
  // ceil(ceil(M / a) / b) is ceil(M / (a * b)); of a multiple c * {M/c} it is ceil(M / by).
  if (by >= 1 && terms_.size() == 1 && terms_.begin()->first.size() == 1) {
    const auto& [product, coefficient] = *terms_.begin();
    const Unknown& u = product.front();
    Extent out;
    if (u.exact && coefficient == u.by) {
      out.add({{u.name, by, false}}, 1);
      return out;
    }
    if (coefficient == 1) {
      out.add({{u.name, u.by * by, false}}, 1);
      return out;
    }
  }
  return error(fail(bad_extent, "{} cannot be divided by {} and rounded up", to_string(*this), by)
                   .expect("a constant or one parameter"));
}

std::string to_string(const Extent& e) {
  std::string s;
  // Parameters first, the constant last.
  for (const auto& [product, whole] : std::ranges::reverse_view(e.terms_)) {
    std::string factors;
    int64_t coefficient = whole;
    for (const Extent::Unknown& u : product) {
      factors += factors.empty() ? "" : "*";
      // A factor that stands whole is written as the parameter that it is.
      if (u.exact && coefficient % u.by == 0) {
        coefficient /= u.by;
        factors += u.name;
      } else {
        factors += fmt::format("{{{}{}{}}}", u.name, u.exact ? "/" : "^", u.by);
      }
    }
    s += s.empty() ? "" : " + ";
    if (factors.empty()) {
      s += std::to_string(coefficient);
    } else {
      s += coefficient == 1 ? factors : fmt::format("{}*{}", coefficient, factors);
    }
  }
  return s.empty() ? "0" : s;
}

}  // namespace tessera
