/* Loops of the tempered game of a matrix over rows that do not overlap, none of which has a NaN; sums in any order. */
#ifndef NASHLEARN_MATRIX_TEMPER_H
#define NASHLEARN_MATRIX_TEMPER_H
#include "vectors.h"

/* q = softmax(z / m); return the sum of the exponentials, relative to that of the largest entry, which goes into top */
static inline double temper_softmax(const double *RESTRICT z, double m, ptrdiff_t k, double *RESTRICT q, double *top) {
    double mass;
    *top = simd_max(z, k, -INFINITY);
    vec_exponentials(z, *top, m, k, q);
    mass = simd_sum(q, k);
    vec_scale(q, 1.0 / mass, k);
    return mass;
}

/* c = sum_j q_j W_j for the k rows W_j of W (k, n), four of them at a time */
static inline void temper_mixture(const double *RESTRICT W, const double *RESTRICT q, ptrdiff_t k, ptrdiff_t n,
                                  double *RESTRICT c) {
    ptrdiff_t j = 0;
    if (k >= 4) {
        const double *w0 = W, *w1 = w0 + n, *w2 = w1 + n, *w3 = w2 + n;
        double q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3];
        for (ptrdiff_t i = 0; i < n; i++) c[i] = (q0 * w0[i] + q1 * w1[i]) + (q2 * w2[i] + q3 * w3[i]);
        j = 4;
    } else {
        for (ptrdiff_t i = 0; i < n; i++) c[i] = q[0] * W[i];
        j = 1;
    }
    for (; j + 3 < k; j += 4) {
        const double *w0 = W + j * n, *w1 = w0 + n, *w2 = w1 + n, *w3 = w2 + n;
        double q0 = q[j], q1 = q[j + 1], q2 = q[j + 2], q3 = q[j + 3];
        for (ptrdiff_t i = 0; i < n; i++) c[i] += (q0 * w0[i] + q1 * w1[i]) + (q2 * w2[i] + q3 * w3[i]);
    }
    for (; j < k; j++) vec_add(W + j * n, q[j], n, c);
}

/* z = x + r y */
static inline void temper_along(const double *RESTRICT x, const double *RESTRICT y, double r, ptrdiff_t k,
                                double *RESTRICT z) {
    for (ptrdiff_t j = 0; j < k; j++) z[j] = x[j] + r * y[j];
}

/* z = x - y */
static inline void temper_difference(const double *RESTRICT x, const double *RESTRICT y, ptrdiff_t k,
                                     double *RESTRICT z) {
    for (ptrdiff_t j = 0; j < k; j++) z[j] = x[j] - y[j];
}

/* The mean of y under the distribution q / mass, and its second and third central moments. */
static inline double temper_moments(const double *RESTRICT q, const double *RESTRICT y, double mass, ptrdiff_t k,
                                    double *RESTRICT second, double *RESTRICT third) {
    const double mean = simd_dot(q, y, k) / mass;
    double two = 0.0, three = 0.0;
    SIMD_LOOP(k, reduction(+ : two, three), double off = y[j] - mean; double part = q[j] * off * off; two += part;
              three += part * off;);
    *second = two / mass;
    *third = three / mass;
    return mean;
}

/* a = root ((x - y) - shift) */
static inline void temper_centred(const double *RESTRICT x, const double *RESTRICT y, double shift,
                                  const double *RESTRICT root, ptrdiff_t k, double *RESTRICT a) {
    for (ptrdiff_t j = 0; j < k; j++) a[j] = root[j] * ((x[j] - y[j]) - shift);
}

static inline void temper_roots(const double *RESTRICT q, ptrdiff_t k, double *RESTRICT root) {
    for (ptrdiff_t j = 0; j < k; j++) root[j] = sqrt(q[j]);
}

/* Where the smallest entry is, the first of them. */
static inline ptrdiff_t temper_lowest(const double *x, ptrdiff_t n) {
    ptrdiff_t at = 0;
    for (ptrdiff_t i = 1; i < n; i++) at = x[i] < x[at] ? i : at;
    return at;
}
#endif
