/* The tempered game of a matrix, several rows at a time: which of them are solved by the strategies that they begin with,
   or by the cheapest option where nothing costs. The matrix is that of core_simplex.pxd, whose scale is 1. */
#ifndef NASHLEARN_MATRIX_BLOCKS_H
#define NASHLEARN_MATRIX_BLOCKS_H
#include "blocks.h"

typedef struct {
    const double *rows, *floor;
    double scale;
    ptrdiff_t options, k;
} BlockMatrix;

/* A block under way; `begun` is 1 for rows that have a strategy, `open` 1 for those whose gap is not
   closed, `left` that gap over the scale. */
typedef struct {
    Block facts;
    double best[BLOCK], most[BLOCK], mass[BLOCK], low[BLOCK], begun[BLOCK], open[BLOCK], left[BLOCK];
    double *y, *z, *q, *c, *p;
} MatrixBlock;

static inline ptrdiff_t matrix_block_room(ptrdiff_t options, ptrdiff_t k) { return (4 * k + 2 * options) * BLOCK; }

/* y = (x + floor - best) / scale, the largest of them 0 */
static inline void matrix_block_scaled(const BlockMatrix *RESTRICT L, MatrixBlock *RESTRICT b) {
    const double unit = 1.0 / L->scale;
    const double *RESTRICT x = b->facts.x;
    double *RESTRICT y = b->y;
    LANES() b->best[i] = -INFINITY;
    for (ptrdiff_t j = 0; j < L->k; j++) {
        const double floor = L->floor[j];
        LANES() {
            const double own = x[j * BLOCK + i] + floor;
            y[j * BLOCK + i] = own;
            b->best[i] = own > b->best[i] ? own : b->best[i];
        }
    }
    for (ptrdiff_t j = 0; j < L->k; j++) LANES() y[j * BLOCK + i] = (y[j * BLOCK + i] - b->best[i]) * unit;
}

/* Take the strategies of n rows of p (n, options); what is none, or says no more than the uniform one, becomes 0. */
static inline void matrix_block_begin(const BlockMatrix *RESTRICT L, MatrixBlock *RESTRICT b, const double *RESTRICT p,
                                      ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        const double *own = p + i * L->options;
        double sum = 0.0, low = INFINITY, high = -INFINITY;
        for (ptrdiff_t o = 0; o < L->options && i < n; o++) {
            sum += own[o];
            low = own[o] < low ? own[o] : low;
            high = own[o] > high ? own[o] : high;
        }
        b->begun[i] = sum > 0.5 && sum < 2.0 && low >= 0.0 && (high > low || L->options == 1) ? 1.0 : 0.0;
        sum = fabs(sum - 1.0) > 1e-14 ? 1.0 / sum : 1.0;
        for (ptrdiff_t o = 0; o < L->options; o++) b->p[o * BLOCK + i] = b->begun[i] > 0.0 ? own[o] * sum : 0.0;
    }
}

/* z = y + L' p, q = softmax(z / m), c = L q, its least into `low`, and the gap */
static inline void matrix_block_respond(const BlockMatrix *RESTRICT L, double m, MatrixBlock *RESTRICT b) {
    const ptrdiff_t k = L->k;
    double *RESTRICT z = b->z, *RESTRICT q = b->q, *RESTRICT c = b->c;
    const double *RESTRICT p = b->p;
    memcpy(z, b->y, (size_t)(k * BLOCK) * sizeof(double));
    for (ptrdiff_t o = 0; o < L->options; o++) {
        double played = 0.0;
        LANES(reduction(+ : played)) played += p[o * BLOCK + i];
        if (played > 0.0)
            for (ptrdiff_t j = 0; j < k; j++) {
                const double cost = L->rows[o * k + j];
                LANES() z[j * BLOCK + i] += p[o * BLOCK + i] * cost;
            }
    }
    LANES() b->most[i] = -INFINITY, b->mass[i] = 0.0;
    for (ptrdiff_t j = 0; j < k; j++)
        LANES() b->most[i] = z[j * BLOCK + i] > b->most[i] ? z[j * BLOCK + i] : b->most[i];
    for (ptrdiff_t j = 0; j < k; j++) LANES() z[j * BLOCK + i] -= b->most[i];
    vec_exponentials(z, 0.0, m, k * BLOCK, q);
    for (ptrdiff_t j = 0; j < k; j++) LANES() b->mass[i] += q[j * BLOCK + i];
    {
        double share[BLOCK];
        LANES() share[i] = 1.0 / b->mass[i];
        for (ptrdiff_t j = 0; j < k; j++) LANES() q[j * BLOCK + i] *= share[i];
    }
    LANES() b->low[i] = INFINITY, b->facts.gap[i] = 0.0;
    for (ptrdiff_t o = 0; o < L->options; o++) {
        double cost[BLOCK];
        LANES() cost[i] = 0.0;
        for (ptrdiff_t j = 0; j < k; j++) {
            const double entry = L->rows[o * k + j];
            LANES() cost[i] += entry * q[j * BLOCK + i];
        }
        LANES() {
            c[o * BLOCK + i] = cost[i];
            b->low[i] = cost[i] < b->low[i] ? cost[i] : b->low[i];
        }
    }
    for (ptrdiff_t o = 0; o < L->options; o++)
        LANES() b->facts.gap[i] += p[o * BLOCK + i] * (c[o * BLOCK + i] - b->low[i]);
}

/* Rows without a strategy take the option that is cheapest against q. */
static inline void matrix_block_cheapest(const BlockMatrix *RESTRICT L, MatrixBlock *RESTRICT b) {
    for (ptrdiff_t i = 0; i < BLOCK; i++)
        for (ptrdiff_t o = 0; o < L->options && b->begun[i] == 0.0; o++)
            if (b->c[o * BLOCK + i] == b->low[i]) {
                b->p[o * BLOCK + i] = 1.0;
                b->begun[i] = 1.0;
            }
}

/* The certificates, in the units of the scores. */
static inline void matrix_block_certify(const BlockMatrix *RESTRICT L, double m, MatrixBlock *RESTRICT b) {
    double logs[BLOCK], floor[BLOCK], reward[BLOCK];
    const double *RESTRICT x = b->facts.x, *RESTRICT q = b->q;
    Block *RESTRICT facts = &b->facts;
    LANES() floor[i] = reward[i] = 0.0;
    for (ptrdiff_t j = 0; j < L->k; j++) {
        const double least = L->floor[j];
        LANES() {
            const double part = q[j * BLOCK + i];
            floor[i] += least * part;
            reward[i] += part > 0.0 ? part * x[j * BLOCK + i] : 0.0; /* 0 * -inf must count as 0 */
        }
    }
    vec_logarithms(b->mass, BLOCK, logs);
    LANES() {
        b->left[i] = facts->gap[i];
        facts->gap[i] *= L->scale;
        facts->upper[i] = b->best[i] + L->scale * (b->most[i] + m * logs[i]);
        facts->least[i] = floor[i] + L->scale * b->low[i];
        facts->entropy[i] = facts->upper[i] - reward[i] - facts->gap[i];
    }
}

/* What is known of row i, into rows of its own. */
static inline void matrix_block_row(const BlockMatrix *RESTRICT L, const MatrixBlock *RESTRICT b, ptrdiff_t i,
                                    double *RESTRICT y, double *RESTRICT z, double *RESTRICT q, double *RESTRICT c) {
    for (ptrdiff_t j = 0; j < L->k; j++) {
        y[j] = b->y[j * BLOCK + i];
        z[j] = b->z[j * BLOCK + i];
        q[j] = b->q[j * BLOCK + i];
    }
    for (ptrdiff_t o = 0; o < L->options; o++) c[o] = b->c[o * BLOCK + i];
}

/* Play up to BLOCK rows of scores f (n, k) from p (n, options), which is written where a row begins at an option, and
   q (n, k). Rows without a strategy begin there where `cold` says so, and stay open otherwise. */
static inline void matrix_block_play(const BlockMatrix *RESTRICT L, const double *RESTRICT f, ptrdiff_t n, double m,
                                     double closed, int cold, double *RESTRICT p, double *RESTRICT q,
                                     MatrixBlock *RESTRICT b, double *room) {
    const ptrdiff_t k = L->k, options = L->options;
    double begun = 0.0;
    b->facts.x = room, b->y = room + k * BLOCK, b->z = b->y + k * BLOCK, b->q = b->z + k * BLOCK;
    b->c = b->q + k * BLOCK, b->p = b->c + options * BLOCK;
    block_load(&b->facts, f, n, k);
    matrix_block_scaled(L, b);
    matrix_block_begin(L, b, p, n);
    LANES(reduction(+ : begun)) begun += b->begun[i];
    if (cold && begun < (double)n) {
        matrix_block_respond(L, m, b);
        matrix_block_cheapest(L, b);
    }
    matrix_block_respond(L, m, b);
    LANES() b->open[i] = b->facts.gap[i] <= closed && b->begun[i] > 0.0 ? 0.0 : 1.0;
    matrix_block_certify(L, m, b);
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < k; j++) q[i * k + j] = b->q[j * BLOCK + i];
        for (ptrdiff_t o = 0; o < options && b->begun[i] > 0.0; o++) p[i * options + o] = b->p[o * BLOCK + i];
    }
}
#endif
