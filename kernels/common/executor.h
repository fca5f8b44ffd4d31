#pragma once

namespace lamplighter {

// An executor runs the algorithms over one row that are written once for the CPU and CUDA
// (NAME_body.h). Every thread of it calls the same members in the same order and gets the same results:
//   for_each(n, f)                    f(i) for all i < n, in any order and at once
//   reduce(n, identity, map, op)      op over map(i); op commutative; the order is fixed for a given n
//   argmax(n, map)                    smallest i with the largest map(i), 0 when map(0) is NaN; n > 0
//   scan(n, limit, map)               smallest i with map(0) + ... + map(i) > limit, or n; and the sum before
//   histogram(n, cells, bin, weight)  cells[bin(i)] += weight(i) where bin(i) >= 0; cells: cells<T>(), zeros
//   compact(n, keep, out)             out[0..count) = the i with keep(i), rising; out holds n; returns count
//   mask(n, holds)                    bits of the i with holds(i), n <= 64; without a synchronisation
//   sync()                            what was written before is visible to all threads
//   cells<T>()                        kExecutorCells cells of T shared by the threads
//   kIsBlock                          whether it has many threads
// All but mask end with a synchronisation. The f of for_each and the map of reduce may write element i. scan
// and histogram add in any order, so their numbers must be >= 0 and add exactly: integers, or doubles on one
// coarse grid (histogram: multiples of 2^-50, sums below 2^13). limit >= 0.
template <class T>
struct Prefix {
  int index;
  T before;
};

constexpr int kExecutorCells = 2048;

}  // namespace lamplighter
