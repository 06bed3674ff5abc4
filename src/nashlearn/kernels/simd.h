/* Loops whose sums may be taken in any order: only the reductions marked here are, nothing else, and NaN and infinity
   keep their meaning. Rows below SIMD_SHORT entries take a plain loop, which is faster there. Reduction variables are
   64 bits wide: narrower ones beside doubles make gcc 12 use MMX registers. */
#ifndef NASHLEARN_SIMD_H
#define NASHLEARN_SIMD_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_MSC_VER) && !defined(__clang__)
#define SIMD(clauses)
#define RESTRICT __restrict
#else
#define SIMD_TEXT(text) _Pragma(#text)
#define SIMD(clauses) SIMD_TEXT(omp simd clauses)
#define RESTRICT restrict
#endif
#define SIMD_PAIRS 4
#define SIMD_SHORT 12
#define SIMD_GATHERED 32

/* `body` for j = 0 .. n - 1, in the order of the loop where the row is short, else with the clauses given. */
#define SIMD_LOOP(n, clauses, body)                      \
    do {                                                 \
        if ((n) < SIMD_SHORT) {                          \
            for (ptrdiff_t j = 0; j < (n); j++) { body } \
        } else {                                         \
            SIMD(clauses)                                \
            for (ptrdiff_t j = 0; j < (n); j++) { body } \
        }                                                \
    } while (0)

/* The largest of `top` and the entries; a NaN never wins. */
static inline double simd_max(const double *x, ptrdiff_t n, double top) {
    SIMD_LOOP(n, reduction(max : top), top = x[j] > top ? x[j] : top;);
    return top;
}

/* The smallest of `low` and the entries; a NaN never wins. */
static inline double simd_min(const double *x, ptrdiff_t n, double low) {
    SIMD_LOOP(n, reduction(min : low), low = x[j] < low ? x[j] : low;);
    return low;
}

/* The largest entry, NaN where there is one. */
static inline double simd_top(const double *x, ptrdiff_t n) {
    double top = -INFINITY;
    int64_t missing = 0;
    SIMD_LOOP(n, reduction(max : top) reduction(| : missing), missing |= x[j] != x[j]; top = x[j] > top ? x[j] : top;);
    return missing ? NAN : top;
}

/* The three largest of n > 1 entries, -infinity where there are but two, and where the first two are. */
static inline void simd_leaders(const double *x, ptrdiff_t n, double *top, ptrdiff_t *at) {
    double first = x[0], second = x[1], third = -INFINITY;
    ptrdiff_t i = 0, k = 1;
    if (second > first) first = x[1], second = x[0], i = 1, k = 0;
    for (ptrdiff_t j = 2; j < n; j++) {
        double one = x[j], less = one < second ? one : second;
        int leads = one > first, follows = one > second;
        third = less > third ? less : third;
        second = leads ? first : follows ? one : second;
        first = leads ? one : first;
        k = leads ? i : follows ? j : k;
        i = leads ? j : i;
    }
    top[0] = first, top[1] = second, top[2] = third;
    at[0] = i, at[1] = k;
}

static inline double simd_sum(const double *x, ptrdiff_t n) {
    double total = 0.0;
    SIMD_LOOP(n, reduction(+ : total), total += x[j];);
    return total;
}

static inline double simd_dot(const double *x, const double *y, ptrdiff_t n) {
    double total = 0.0;
    SIMD_LOOP(n, reduction(+ : total), total += x[j] * y[j];);
    return total;
}

/* Sum and number of the entries of x - top that exceed t. Rows that are short, but not the shortest, take two sums at
   a time, which halves the wait for additions; in others the number is counted in doubles, so that lanes are of one kind. */
static inline double simd_above(const double *x, ptrdiff_t n, double top, double t, ptrdiff_t *count) {
    double total = 0.0, other = 0.0, number = 0.0;
    if (n >= SIMD_PAIRS && n < SIMD_SHORT) {
        ptrdiff_t j = 0, above = 0;
        for (; j + 1 < n; j += 2) {
            double first = x[j] - top, second = x[j + 1] - top;
            total += first > t ? first : 0.0;
            other += second > t ? second : 0.0;
            above += (first > t) + (second > t);
        }
        if (j < n) {
            double last = x[j] - top;
            total += last > t ? last : 0.0;
            above += last > t;
        }
        *count = above;
        return total + other;
    }
    SIMD_LOOP(n, reduction(+ : total, number), double excess = x[j] - top; total += excess > t ? excess : 0.0;
              number += excess > t ? 1.0 : 0.0;);
    *count = (ptrdiff_t)number;
    return total;
}

/* Sum and number of t - (x_j - top) where it lies in [0, u). */
static inline double simd_within(const double *x, ptrdiff_t n, double top, double t, double u, ptrdiff_t *count) {
    double total = 0.0, number = 0.0;
    SIMD_LOOP(n, reduction(+ : total, number), double below = t - (x[j] - top);
              int64_t inside = (below >= 0.0) & (below < u); total += inside ? below : 0.0;
              number += inside ? 1.0 : 0.0;);
    *count = (ptrdiff_t)number;
    return total;
}

/* p = [x - top - t]_+; how many are positive. */
static inline ptrdiff_t simd_excess(const double *RESTRICT x, ptrdiff_t n, double top, double t, double *RESTRICT p) {
    double number = 0.0;
    SIMD_LOOP(n, reduction(+ : number), double excess = x[j] - top - t; excess = excess < 0.0 ? 0.0 : excess;
              p[j] = excess; number += excess > 0.0 ? 1.0 : 0.0;);
    return (ptrdiff_t)number;
}

/* The t with sum_j [x_j - top - t]_+ = mass, where `top` is the largest entry, and how many entries exceed it.

   Newton's iteration from t = -mass: the sum is convex and falling in t, so the iterates rise to the root and stop,
   exactly, once the support no longer shrinks. Working relative to `top` keeps full precision for entries of any size.
   Cost: O(n) for each of the few iterations. */
static inline double simd_supported(const double *x, ptrdiff_t n, double top, double mass, ptrdiff_t *count) {
    double t = -mass;
    ptrdiff_t support = n + 1;
    for (;;) {
        double total = simd_above(x, n, top, t, count);
        if (*count >= support || *count == 0) return t; /* 0: a NaN, or mass lost to rounding */
        t = (total - mass) / (double)*count;
        support = *count;
    }
}

static inline double simd_threshold(const double *x, ptrdiff_t n, double top, double mass) {
    ptrdiff_t count;
    return simd_supported(x, n, top, mass, &count);
}

/* The same, with room for n numbers: of a long row it keeps those that can count, t never being below -mass, and so
   passes over the row once. */
static inline double simd_gathered(const double *RESTRICT x, ptrdiff_t n, double top, double mass, double *RESTRICT room,
                                   ptrdiff_t *count) {
    ptrdiff_t kept = 0;
    if (n < SIMD_GATHERED) return simd_supported(x, n, top, mass, count);
    for (ptrdiff_t j = 0; j < n; j++) {
        room[kept] = x[j];
        kept += x[j] - top > -mass;
    }
    return simd_supported(room, kept, top, mass, count);
}
#endif
