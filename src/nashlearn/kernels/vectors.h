/* Small dense loops over rows of k entries, none of which is NaN; sums in any order. */
#ifndef NASHLEARN_VECTORS_H
#define NASHLEARN_VECTORS_H
#include <string.h>

#include "simd.h"

/* z = x y, entry by entry; z may be x or y */
static inline void vec_product(const double *x, const double *y, ptrdiff_t k, double *z) {
    SIMD()
    for (ptrdiff_t a = 0; a < k; a++) z[a] = x[a] * y[a];
}

static inline void vec_scale(double *x, double r, ptrdiff_t k) {
    for (ptrdiff_t a = 0; a < k; a++) x[a] *= r;
}

/* y += r x */
static inline void vec_add(const double *RESTRICT x, double r, ptrdiff_t k, double *RESTRICT y) {
    for (ptrdiff_t a = 0; a < k; a++) y[a] += r * x[a];
}

/* z = W' (1, x) for W (k + 1, n), n a multiple of 4 */
static inline void vec_affine(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k, ptrdiff_t n,
                              double *RESTRICT z) {
    for (ptrdiff_t b = 0; b < n; b += 4) {
        const double *w = W + b;
        double s[4] = {w[0], w[1], w[2], w[3]};
        for (ptrdiff_t a = 0; a < k; a++) {
            w += n;
            for (int c = 0; c < 4; c++) s[c] += x[a] * w[c];
        }
        for (int c = 0; c < 4; c++) z[b + c] = s[c];
    }
}

/* z = W x, four rows of W (k, k) at a time */
static inline void vec_rows_dot(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k, double *RESTRICT z) {
    ptrdiff_t a = 0;
    for (; a + 3 < k; a += 4) {
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        const double *w0 = W + a * k, *w1 = w0 + k, *w2 = w1 + k, *w3 = w2 + k;
        SIMD(reduction(+ : s0, s1, s2, s3))
        for (ptrdiff_t b = 0; b < k; b++) {
            s0 += w0[b] * x[b];
            s1 += w1[b] * x[b];
            s2 += w2[b] * x[b];
            s3 += w3[b] * x[b];
        }
        z[a] = s0, z[a + 1] = s1, z[a + 2] = s2, z[a + 3] = s3;
    }
    for (; a < k; a++) z[a] = simd_dot(W + a * k, x, k);
}

/* z = W' x, four rows of W (k, k) at a time */
static inline void vec_rows_sum(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k, double *RESTRICT z) {
    ptrdiff_t a = 0;
    memset(z, 0, (size_t)k * sizeof(double));
    for (; a + 3 < k; a += 4) {
        const double *w0 = W + a * k, *w1 = w0 + k, *w2 = w1 + k, *w3 = w2 + k;
        double x0 = x[a], x1 = x[a + 1], x2 = x[a + 2], x3 = x[a + 3];
        for (ptrdiff_t b = 0; b < k; b++) z[b] += x0 * w0[b] + x1 * w1[b] + x2 * w2[b] + x3 * w3[b];
    }
    for (; a < k; a++)
        for (ptrdiff_t b = 0; b < k; b++) z[b] += x[a] * W[a * k + b];
}

/* The same two with every sum in the order of its terms: for iterations that would amplify another rounding. */
static inline void vec_rows_dot_in_order(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k,
                                         double *RESTRICT z) {
    ptrdiff_t a = 0;
    for (; a + 3 < k; a += 4) { /* one addition need not wait for the last */
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        const double *w0 = W + a * k, *w1 = w0 + k, *w2 = w1 + k, *w3 = w2 + k;
        for (ptrdiff_t b = 0; b < k; b++) {
            s0 += w0[b] * x[b];
            s1 += w1[b] * x[b];
            s2 += w2[b] * x[b];
            s3 += w3[b] * x[b];
        }
        z[a] = s0, z[a + 1] = s1, z[a + 2] = s2, z[a + 3] = s3;
    }
    for (; a < k; a++) {
        double s = 0.0;
        for (ptrdiff_t b = 0; b < k; b++) s += W[a * k + b] * x[b];
        z[a] = s;
    }
}

static inline void vec_rows_sum_in_order(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k,
                                         double *RESTRICT z) {
    ptrdiff_t a = 0;
    memset(z, 0, (size_t)k * sizeof(double));
    for (; a + 3 < k; a += 4) {
        const double *w0 = W + a * k, *w1 = w0 + k, *w2 = w1 + k, *w3 = w2 + k;
        double x0 = x[a], x1 = x[a + 1], x2 = x[a + 2], x3 = x[a + 3];
        for (ptrdiff_t b = 0; b < k; b++) z[b] = (((z[b] + x0 * w0[b]) + x1 * w1[b]) + x2 * w2[b]) + x3 * w3[b];
    }
    for (; a < k; a++)
        for (ptrdiff_t b = 0; b < k; b++) z[b] += x[a] * W[a * k + b];
}

/* E += scale X and X = 0, for X of n entries; their inner product with W and T before, 0 where T is NULL */
static inline double vec_flush(double *RESTRICT X, const double *RESTRICT W, const double *RESTRICT T, ptrdiff_t n,
                               double scale, double *RESTRICT E) {
    double total = 0.0;
    if (T != NULL) {
        SIMD_LOOP(n, reduction(+ : total), total += X[j] * W[j] * T[j]; E[j] += scale * X[j]; X[j] = 0.0;);
    } else {
        for (ptrdiff_t j = 0; j < n; j++) {
            E[j] += scale * X[j];
            X[j] = 0.0;
        }
    }
    return total;
}

/* z = exp((x - top) / eps): 2^n 2^r with |r| <= 1/2, Taylor's series of the second, n written into the exponent. */
static inline void vec_exponentials(const double *RESTRICT x, double top, double eps, ptrdiff_t k, double *RESTRICT z) {
    const double scale = 1.4426950408889634 / eps;
    for (ptrdiff_t a = 0; a < k; a++) {
        double y = (x[a] - top) * scale, n, r, r2, r4, s;
        union {
            double real;
            int64_t bits;
        } power;
        y = y > -1022.0 ? y : -1022.0;
        n = floor(y + 0.5);
        r = (y - n) * 0.6931471805599453;
        power.real = n + (1023.0 + 4503599627370496.0);
        power.bits = (int64_t)((uint64_t)power.bits << 52);
        r2 = r * r, r4 = r2 * r2; /* pairs of terms, and pairs of those: no long chain of additions */
        s = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0));
        s = s + r4 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0));
        s = ((1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))) + r4 * s;
        s = ((1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0))) + r4 * s;
        z[a] = power.real > 3e-308 ? s * power.real : 0.0;
    }
}

/* z = log x for normal x > 0: n log 2 + log m with m within sqrt(1/2) and sqrt(2), by the series of 2 artanh. */
static inline void vec_logarithms(const double *RESTRICT x, ptrdiff_t k, double *RESTRICT z) {
    for (ptrdiff_t a = 0; a < k; a++) {
        union {
            double real;
            uint64_t bits;
        } power, rest;
        double n, s, w, y, large;
        rest.real = x[a];
        power.bits = (rest.bits >> 52) | 0x4330000000000000u;
        rest.bits = (rest.bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u;
        large = rest.real > 1.4142135623730951 ? 1.0 : 0.0;
        n = power.real - (1023.0 + 4503599627370496.0) + large;
        y = rest.real * (1.0 - 0.5 * large);
        s = (y - 1.0) / (y + 1.0);
        w = s * s;
        y = 1.0 / 19.0 + w * (1.0 / 21.0);
        y = 1.0 / 17.0 + w * y;
        y = 1.0 / 15.0 + w * y;
        y = 1.0 / 13.0 + w * y;
        y = 1.0 / 11.0 + w * y;
        y = 1.0 / 9.0 + w * y;
        y = 1.0 / 7.0 + w * y;
        y = 1.0 / 5.0 + w * y;
        y = 1.0 / 3.0 + w * y;
        z[a] = n * 0.6931471805599453 + 2.0 * s * (1.0 + w * y);
    }
}

/* v <- (diag q - q q') v / mu: how q = softmax(x / mu) moves as x moves by v, for q of mass 1 */
static inline void vec_softmax_turn(const double *RESTRICT q, double mu, ptrdiff_t k, double *RESTRICT v) {
    const double mean = simd_dot(q, v, k);
    for (ptrdiff_t j = 0; j < k; j++) v[j] = q[j] * ((v[j] - mean) / mu);
}
#endif
