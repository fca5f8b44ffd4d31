#pragma once

namespace lamplighter {
namespace {

// exp(x) per lane, relative error about 1e-7: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r (Cephes
// expf), times 2^n. Below -87.3 the result stays at the smallest normal number, above 88.3 it may be
// infinite; NaN is kept.
template <typename V>
inline typename V::F vector_exp(typename V::F x) {
  x = V::max(V::set(-87.3F), x);
  x = V::min(V::set(89.0F), x);  // min and max return their second operand for NaN
  const auto n = V::round(V::mul(x, V::set(1.44269504088896341F)));
  auto r = V::fma(n, V::set(-0.693359375F), x);
  r = V::fma(n, V::set(2.12194440e-4F), r);
  auto p = V::set(1.9875691500e-4F);
  p = V::fma(p, r, V::set(1.3981999507e-3F));
  p = V::fma(p, r, V::set(8.3334519073e-3F));
  p = V::fma(p, r, V::set(4.1665795894e-2F));
  p = V::fma(p, r, V::set(1.6666665459e-1F));
  p = V::fma(p, r, V::set(5.0000001201e-1F));
  p = V::add(V::fma(p, V::mul(r, r), r), V::set(1.0F));
  return V::times_power_of_2(p, n);
}

}  // namespace
}  // namespace lamplighter
