/* The tempered game of a matrix, several rows at a time: which of them are solved by the strategies they begin with,
   by the option that is cheapest against the scores alone, or by the best shares of two options. The matrix is that of
   core_simplex.pxd, whose scale is 1; entry j of row i lies at [j * BLOCK + i]. */
#ifndef NASHLEARN_MATRIX_BLOCKS_H
#define NASHLEARN_MATRIX_BLOCKS_H
#include "blocks.h"

#define MATRIX_TRIALS 4 /* of shares, after which a row goes on alone: the others would wait for it */
#define MATRIX_TRUSTED 1e-5 /* as in matrix_temper.pyx */

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
    double *y, *z, *q, *c, *p, *base, *way;
    ptrdiff_t row[BLOCK], first[BLOCK], second[BLOCK], count; /* of rows that wait for their shares of two options */
} MatrixBlock;

static inline ptrdiff_t matrix_block_room(ptrdiff_t options, ptrdiff_t k) { return (6 * k + 2 * options) * BLOCK; }

static inline void matrix_block_lay_out(MatrixBlock *b, ptrdiff_t options, ptrdiff_t k, double *room) {
    b->facts.x = room, b->y = room + k * BLOCK, b->z = b->y + k * BLOCK, b->q = b->z + k * BLOCK;
    b->base = b->q + k * BLOCK, b->way = b->base + k * BLOCK;
    b->c = b->way + k * BLOCK, b->p = b->c + options * BLOCK;
    b->count = 0;
}

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

/* The strategies of row i; p only where it has one. */
static inline void matrix_block_write(const BlockMatrix *RESTRICT L, const MatrixBlock *RESTRICT b, ptrdiff_t i,
                                      double *RESTRICT p, double *RESTRICT q) {
    for (ptrdiff_t j = 0; j < L->k; j++) q[j] = b->q[j * BLOCK + i];
    for (ptrdiff_t o = 0; o < L->options && b->begun[i] > 0.0; o++) p[o] = b->p[o * BLOCK + i];
}

/* Play up to BLOCK rows of scores f (n, k) from p (n, options), which is written where a row begins at an option, and
   q (n, k). Rows without a strategy begin there where `cold` says so, and stay open otherwise. */
static inline void matrix_block_play(const BlockMatrix *RESTRICT L, const double *RESTRICT f, ptrdiff_t n, double m,
                                     double closed, int cold, double *RESTRICT p, double *RESTRICT q,
                                     MatrixBlock *RESTRICT b) {
    const ptrdiff_t k = L->k, options = L->options;
    double begun = 0.0;
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
    for (ptrdiff_t i = 0; i < n; i++) matrix_block_write(L, b, i, p + i * options, q + i * k);
}

/* Whether row i has two options in play, the cheapest against q included: then it joins those that wait. */
static inline int matrix_block_wait(const BlockMatrix *RESTRICT L, const MatrixBlock *RESTRICT b, ptrdiff_t i,
                                    ptrdiff_t row, MatrixBlock *RESTRICT waiting) {
    ptrdiff_t found[2] = {0, 0}, count = 0, cheapest = 0;
    const ptrdiff_t lane = waiting->count;
    while (b->c[cheapest * BLOCK + i] != b->low[i] && cheapest + 1 < L->options) cheapest++;
    for (ptrdiff_t o = 0; o < L->options; o++)
        if (b->p[o * BLOCK + i] > 0.0 || o == cheapest) {
            if (count == 2) return 0;
            found[count++] = o;
        }
    if (count != 2) return 0;
    for (ptrdiff_t j = 0; j < L->k; j++) {
        waiting->facts.x[j * BLOCK + lane] = b->facts.x[j * BLOCK + i];
        waiting->y[j * BLOCK + lane] = b->y[j * BLOCK + i];
    }
    for (ptrdiff_t o = 0; o < L->options; o++) waiting->p[o * BLOCK + lane] = b->p[o * BLOCK + i];
    waiting->row[lane] = row, waiting->first[lane] = found[0], waiting->second[lane] = found[1];
    waiting->best[lane] = b->best[i], waiting->facts.top[lane] = b->facts.top[i], waiting->begun[lane] = 1.0;
    waiting->count++;
    return 1;
}

/* The shares of the second options: roots of the differences in cost, by Halley's method in brackets, as _pair does. */
static inline void matrix_block_shares(const BlockMatrix *RESTRICT L, double m, MatrixBlock *RESTRICT b,
                                       double *RESTRICT share) {
    const double *RESTRICT base = b->base, *RESTRICT way = b->way;
    double *RESTRICT z = b->z, *RESTRICT q = b->q;
    double low[BLOCK], high[BLOCK], below[BLOCK], above[BLOCK];
    double most[BLOCK], mass[BLOCK], slope[BLOCK], two[BLOCK], three[BLOCK];
    double far = 1.0;
    LANES() low[i] = 0.0, high[i] = 1.0, below[i] = above[i] = 0.0; /* whether either end is a share that was tried */
    for (int trial = 0; trial < MATRIX_TRIALS && far > 0.0; trial++) {
        LANES() most[i] = -INFINITY, mass[i] = slope[i] = two[i] = three[i] = 0.0;
        for (ptrdiff_t e = 0; e < L->k * BLOCK; e += BLOCK) LANES() {
                z[e + i] = base[e + i] + share[i] * way[e + i];
                most[i] = z[e + i] > most[i] ? z[e + i] : most[i];
            }
        for (ptrdiff_t e = 0; e < L->k * BLOCK; e += BLOCK) LANES() z[e + i] -= most[i];
        vec_exponentials(z, 0.0, m, L->k * BLOCK, q);
        for (ptrdiff_t e = 0; e < L->k * BLOCK; e += BLOCK) LANES() {
                mass[i] += q[e + i];
                slope[i] += q[e + i] * way[e + i];
            }
        LANES() slope[i] /= mass[i];
        for (ptrdiff_t e = 0; e < L->k * BLOCK; e += BLOCK) LANES() {
                const double off = way[e + i] - slope[i], part = q[e + i] * off * off;
                two[i] += part;
                three[i] += part * off;
            }
        far = 0.0;
        LANES(reduction(+ : far)) {
            const double spread = two[i] / mass[i], falls = slope[i] < 0.0 ? 1.0 : 0.0;
            double bend = 0.5 * slope[i] * (three[i] / mass[i]) / (spread * spread), next, end;
            low[i] = falls > 0.0 ? share[i] : low[i];
            high[i] = falls > 0.0 ? high[i] : share[i];
            below[i] = falls > 0.0 ? 1.0 : below[i];
            above[i] = falls > 0.0 ? above[i] : 1.0;
            bend = bend < 0.5 ? bend : 0.5;
            bend = bend > -1.0 ? bend : -1.0;
            next = share[i] - slope[i] * m / (spread * (1.0 - bend));
            end = below[i] * above[i] > 0.0 ? 0.5 * (low[i] + high[i]) : falls > 0.0 ? high[i] : low[i];
            next = next > low[i] && next < high[i] ? next : end;
            far += fabs(next - share[i]) > MATRIX_TRUSTED * m ? 1.0 : 0.0;
            share[i] = next;
        }
    }
}

/* Play the rows that wait; what they leave open has come closer. */
static inline void matrix_block_pairs(const BlockMatrix *RESTRICT L, double m, double closed, MatrixBlock *RESTRICT b) {
    const ptrdiff_t k = L->k;
    double share[BLOCK];
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        const int used = i < b->count;
        const double *first = L->rows + (used ? b->first[i] * k : 0), *second = L->rows + (used ? b->second[i] * k : 0);
        share[i] = used ? b->p[b->second[i] * BLOCK + i] : 0.0;
        for (ptrdiff_t j = 0; j < k; j++) {
            b->y[j * BLOCK + i] = used ? b->y[j * BLOCK + i] : 0.0;
            b->base[j * BLOCK + i] = b->y[j * BLOCK + i] + first[j];
            b->way[j * BLOCK + i] = second[j] - first[j];
        }
    }
    matrix_block_shares(L, m, b, share);
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        for (ptrdiff_t o = 0; o < L->options; o++) b->p[o * BLOCK + i] = 0.0;
        if (i < b->count) {
            b->p[b->first[i] * BLOCK + i] = 1.0 - share[i];
            b->p[b->second[i] * BLOCK + i] = share[i];
        } else {
            b->best[i] = 0.0;
            for (ptrdiff_t j = 0; j < k; j++) b->facts.x[j * BLOCK + i] = 0.0;
        }
    }
    matrix_block_respond(L, m, b);
    LANES() b->open[i] = b->facts.gap[i] <= closed ? 0.0 : 1.0;
    matrix_block_certify(L, m, b);
}
#endif
