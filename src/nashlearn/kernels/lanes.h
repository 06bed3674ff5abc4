/* Products with small tables whose rows are filled up with zeros to a multiple of four entries: no row ends with a loop
   over what is left, and sums stay in registers, where compilers would keep those of `vectors.h` in memory. Sums are
   taken in another order than that of their terms, always the same. */
#ifndef NASHLEARN_LANES_H
#define NASHLEARN_LANES_H
#include "simd.h"

#define LANES_WIDTH 4

#if defined(_MSC_VER) && !defined(__clang__)
typedef struct {
    double at[LANES_WIDTH];
} Lanes;
static inline void lanes_add(Lanes *s, double r, const double *x) {
    for (int c = 0; c < LANES_WIDTH; c++) s->at[c] += r * x[c];
}
static inline void lanes_join(Lanes *s, const Lanes *t) {
    for (int c = 0; c < LANES_WIDTH; c++) s->at[c] += t->at[c];
}
#else
typedef double Lanes __attribute__((vector_size(8 * LANES_WIDTH), aligned(8), may_alias));
static inline void lanes_add(Lanes *s, double r, const double *x) { *s += r * *(const Lanes *)x; }
static inline void lanes_join(Lanes *s, const Lanes *t) { *s += *t; }
#endif

static inline ptrdiff_t lanes_filled(ptrdiff_t k) { return (k + LANES_WIDTH - 1) / LANES_WIDTH * LANES_WIDTH; }

/* z[0 .. 4 count - 1] = W' x for these columns of W (k, n), even and odd rows apart so that additions wait less */
static inline void lanes_columns(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k, ptrdiff_t n,
                                 const int count, double *RESTRICT z) {
    const Lanes zero = {0};
    Lanes s[3] = {zero, zero, zero}, t[3] = {zero, zero, zero};
    ptrdiff_t a = 0;
    for (; a + 1 < k; a += 2, W += 2 * n) {
        for (int c = 0; c < count; c++) lanes_add(s + c, x[a], W + LANES_WIDTH * c);
        for (int c = 0; c < count; c++) lanes_add(t + c, x[a + 1], W + n + LANES_WIDTH * c);
    }
    for (int c = 0; c < count && a < k; c++) lanes_add(s + c, x[a], W + LANES_WIDTH * c);
    for (int c = 0; c < count; c++) {
        lanes_join(s + c, t + c);
        *(Lanes *)(z + LANES_WIDTH * c) = s[c];
    }
}

/* z = W' x for W (k, n), n a multiple of four */
static inline void lanes_sum(const double *RESTRICT W, const double *RESTRICT x, ptrdiff_t k, ptrdiff_t n,
                             double *RESTRICT z) {
    ptrdiff_t b = 0;
    for (; b + 3 * LANES_WIDTH <= n && n - b != 4 * LANES_WIDTH; b += 3 * LANES_WIDTH)
        lanes_columns(W + b, x, k, n, 3, z + b);
    for (; b + 2 * LANES_WIDTH <= n; b += 2 * LANES_WIDTH) lanes_columns(W + b, x, k, n, 2, z + b);
    if (b < n) lanes_columns(W + b, x, k, n, 1, z + b);
}

/* E (k, n) += x y' */
static inline void lanes_outer(double *RESTRICT E, const double *RESTRICT x, const double *RESTRICT y, ptrdiff_t k,
                               ptrdiff_t n) {
    for (ptrdiff_t a = 0; a < k; a++, E += n)
        for (ptrdiff_t b = 0; b < n; b += LANES_WIDTH) lanes_add((Lanes *)(E + b), x[a], y + b);
}

/* E (k, n) += sum_r x_r y_r' over four adjacent rows of each, for so many lanes of the columns */
static inline void lanes_outers_part(double *RESTRICT E, const double *RESTRICT x, const double *RESTRICT y,
                                     ptrdiff_t k, ptrdiff_t n, const int count) {
    for (ptrdiff_t a = 0; a < k; a++, E += n)
        for (int c = 0; c < count; c++) {
            const double *v = y + LANES_WIDTH * c;
            Lanes s = *(const Lanes *)(E + LANES_WIDTH * c);
            for (int r = 0; r < 4; r++) lanes_add(&s, x[r * n + a], v + r * n);
            *(Lanes *)(E + LANES_WIDTH * c) = s;
        }
}

static inline void lanes_outers(double *RESTRICT E, const double *RESTRICT x, const double *RESTRICT y, ptrdiff_t k,
                                ptrdiff_t n) {
    ptrdiff_t b = 0;
    for (; b + 2 * LANES_WIDTH <= n; b += 2 * LANES_WIDTH) lanes_outers_part(E + b, x, y + b, k, n, 2);
    if (b < n) lanes_outers_part(E + b, x, y + b, k, n, 1);
}

/* z = x y; z may be x or y */
static inline void lanes_product(const double *x, const double *y, ptrdiff_t n, double *z) {
    for (ptrdiff_t b = 0; b < n; b += LANES_WIDTH) {
        SIMD()
        for (int c = 0; c < LANES_WIDTH; c++) z[b + c] = x[b + c] * y[b + c];
    }
}

/* z = r x y */
static inline void lanes_scaled_product(const double *RESTRICT x, const double *RESTRICT y, double r, ptrdiff_t n,
                                        double *RESTRICT z) {
    for (ptrdiff_t b = 0; b < n; b++) z[b] = r * (x[b] * y[b]);
}

/* z = w x y; its largest entry, 0 where none is positive */
static inline double lanes_top_product(const double *RESTRICT w, const double *RESTRICT x, const double *RESTRICT y,
                                       ptrdiff_t n, double *RESTRICT z) {
    double top = 0.0;
    SIMD(reduction(max : top))
    for (ptrdiff_t b = 0; b < n; b++) {
        const double own = w[b] * x[b] * y[b];
        z[b] = own;
        top = own > top ? own : top;
    }
    return top;
}

/* z = w x y; its sum */
static inline double lanes_sum_product(const double *RESTRICT w, const double *RESTRICT x, const double *RESTRICT y,
                                       ptrdiff_t n, double *RESTRICT z) {
    double total = 0.0;
    SIMD(reduction(+ : total))
    for (ptrdiff_t b = 0; b < n; b++) {
        const double own = w[b] * x[b] * y[b];
        z[b] = own;
        total += own;
    }
    return total;
}

/* Divide x by its largest entry, which is returned; as it is where none is positive */
static inline double lanes_by_top(double *x, ptrdiff_t n) {
    double top = 0.0, r;
    SIMD(reduction(max : top))
    for (ptrdiff_t b = 0; b < n; b++) top = x[b] > top ? x[b] : top;
    r = top > 0.0 ? 1.0 / top : 1.0;
    for (ptrdiff_t b = 0; b < n; b++) x[b] *= r;
    return top;
}
#endif
