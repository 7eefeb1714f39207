// Elements of a mask tensor, and what they make of scores while a softmax is computed.
#include <cmath>
#include <limits>

#include "check/online.h"

namespace tessera::check {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Online::Id Online::element(int row, int turn, int column) {
  return intern({.kind = Kind::element, .row = row, .turn = turn, .column = column});
}

/// Whether the element is that of the score's row and key.
bool Online::of_one_place(Id score, Id element) {
  const Value &s = (*this)[score], &e = (*this)[element];
  if (s.turn == e.turn && s.column == e.column && (e.row < 0 || s.row == e.row)) return true;
  wrong("mask", "a score meets the mask of another query or key",
        "the mask's element for " + text(score), text(element),
        "load the mask at the queries and keys whose scores it is for");
  return false;
}

/// where(element, score, -inf).
Online::Id Online::shown(Id element, Id yes, Id no) {
  const Value a = (*this)[yes], b = (*this)[no];
  if (a.kind == Kind::number && a.number == -infinity && b.kind == Kind::score)
    return wrong("mask", "a key is hidden where the mask is true", "where it is false",
                 text(element), "write `where(mask, scores, -inf)`");
  if (a.kind == Kind::score && b.kind == Kind::number && std::isfinite(b.number))
    return wrong("mask", "a key that is not seen has a finite score", "-inf, whose power is 0",
                 fmt::format("{}", b.number), "let scores that are masked be -inf");
  if (a.kind != Kind::score || b.kind != Kind::number || b.number != -infinity || a.weight > 0)
    return unknown("a choice by a mask's element that hides no score");
  if (tensor == Tensor::added)
    return wrong("mask", "a mask that is added hides keys instead", "scores plus the mask",
                 text(element), "add it to the scores, which are scaled");
  if (!of_one_place(yes, element)) return none;
  Value out = a;
  out.shown = true;
  return intern(out);
}

/// A score times a number, plus the element.
Online::Id Online::added(Id score, Id element) {
  Linear l;
  if (!linear_of(score, l) || l.parts.size() != 1 || l.constant != 0 || !(l.parts[0].by > 0))
    return unknown("a mask is added to what is no score");
  Value out = (*this)[l.parts[0].of];
  if (out.kind != Kind::score || out.weight > 0 || out.shown || out.mask != 0)
    return unknown("a mask is added to what is no score, or to one that is masked");
  if (tensor == Tensor::shows)
    return wrong("mask", "a mask of truth values is added", "-inf where it is false", text(element),
                 "write `where(mask, scores, -inf)`");
  if (!of_one_place(l.parts[0].of, element)) return none;
  out.weight = l.parts[0].by;
  return intern(out);
}

/// where(the greatest score is -inf, yes, no).
Online::Id Online::choose_none(const Value& c, Id yes, Id no) {
  const Value a = (*this)[yes], b = (*this)[no];
  if (a.kind != Kind::number || !std::isfinite(a.number))
    return unknown("a choice by whether a score is -inf");
  if (b.kind == Kind::inverse && a.number == 0) {
    // Then no key is seen, if the score is the greatest of those whose powers are summed.
    const Value &most = (*this)[c.of], &total = (*this)[b.of];
    if (most.row != total.row || keys(most) != keys(total) || !alike(most, total))
      return unknown("a choice by whether another row's or other keys' greatest score is -inf");
    Value out = b;
    out.or_zero = true;
    return intern(out);
  }
  // In the place of -inf stands a finite number: which, the powers do not tell.
  Linear l;
  if (!linear_of(no, l) || l.parts.size() != 1 || l.parts[0].of != c.of || l.constant != 0)
    return unknown("a choice by whether a score is -inf");
  l.parts[0].finite = true;
  return of_linear(std::move(l));
}

/// A score that is compared, or raised, has met the mask as the meaning has it.
bool Online::has_its_element(Id score) {
  const Value& s = (*this)[score];
  if (s.shown == (tensor == Tensor::shows) && (s.weight > 0) == (tensor == Tensor::added))
    return true;
  wrong("mask", "a score is taken that has not met the mask",
        tensor == Tensor::added   ? "the score plus its element of the mask"
        : tensor == Tensor::shows ? "-inf where its element of the mask is false"
                                  : "a score alone",
        text(score), "apply the mask to all scores, in each step, before the greatest is taken");
  return false;
}

}  // namespace tessera::check
