/* Several rows at a time, one in each lane: for rows too short to fill the lanes by themselves. Arrays (k, BLOCK) hold
   entry j of row i at [j * BLOCK + i]. */
#ifndef NASHLEARN_BLOCKS_H
#define NASHLEARN_BLOCKS_H
#include "vectors.h"

#define BLOCK 16
#define LANES(clauses) \
    SIMD(clauses)      \
    for (ptrdiff_t i = 0; i < BLOCK; i++)

/* part(state, j, c) for the entries j .. j + c - 1, c = 4 or 1: sums of lanes leave the registers once for four. */
#define BY_FOURS(part, state, k)                              \
    do {                                                      \
        ptrdiff_t j = 0;                                      \
        for (; j + 4 <= (k); j += 4) part(state, j * BLOCK, 4); \
        for (; j < (k); j++) part(state, j * BLOCK, 1);         \
    } while (0)

/* A block under way, and what is known of each of its rows once it is played. */
typedef struct {
    double top[BLOCK], upper[BLOCK], least[BLOCK], gap[BLOCK], entropy[BLOCK];
    double t[BLOCK], total[BLOCK], number[BLOCK], support[BLOCK], most[BLOCK], share[BLOCK];
    double *x, *play, *reply;
    double mu;
} Block;

static inline void block_top(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT x = b->x + at;
    LANES() {
        double missing = b->number[i], most = b->most[i];
        for (int e = 0; e < count; e++) {
            const double own = x[e * BLOCK + i];
            missing += own != own ? 1.0 : 0.0;
            most = own > most ? own : most;
        }
        b->number[i] = missing;
        b->most[i] = most;
    }
}

/* Write n rows of f (n, k) into x (k, BLOCK) less their largest entries, which go into `top`: NaN for a row that has
   one, +inf, or nothing but -inf. The entries of such a row, and of lanes without one, are 0. */
static inline void block_load(Block *RESTRICT b, const double *RESTRICT f, ptrdiff_t n, ptrdiff_t k) {
    double *RESTRICT x = b->x;
    double missing = 0.0;
    for (ptrdiff_t i = 0; i < BLOCK; i++)
        for (ptrdiff_t j = 0; j < k; j++) x[j * BLOCK + i] = i < n ? f[i * k + j] : 0.0;
    LANES() b->number[i] = 0.0, b->most[i] = -INFINITY;
    BY_FOURS(block_top, b, k);
    LANES(reduction(+ : missing)) {
        const double lost = b->number[i] > 0.0 || !(fabs(b->most[i]) < INFINITY) ? 1.0 : 0.0;
        b->top[i] = lost > 0.0 ? NAN : b->most[i];
        missing += lost;
    }
    if (missing > 0.0)
        for (ptrdiff_t i = 0; i < n; i++)
            if (b->top[i] != b->top[i]) {
                b->most[i] = 0.0;
                for (ptrdiff_t j = 0; j < k; j++) x[j * BLOCK + i] = 0.0;
            }
    for (ptrdiff_t j = 0; j < k; j++) LANES() x[j * BLOCK + i] -= b->most[i];
}

static inline void block_above(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT x = b->x + at;
    LANES() {
        const double t = b->t[i];
        double total = b->total[i], number = b->number[i];
        for (int e = 0; e < count; e++) {
            const double own = x[e * BLOCK + i];
            total += own > t ? own : 0.0;
            number += own > t ? 1.0 : 0.0;
        }
        b->total[i] = total;
        b->number[i] = number;
    }
}

/* simd_threshold of each row for mass 1; the largest entry of each is 0. */
static inline void block_threshold(Block *RESTRICT b, ptrdiff_t k) {
    double shrunk;
    LANES() b->t[i] = -1.0, b->support[i] = (double)k + 1.0;
    do {
        LANES() b->total[i] = -1.0, b->number[i] = 0.0;
        BY_FOURS(block_above, b, k);
        shrunk = 0.0;
        LANES(reduction(+ : shrunk)) {
            const double fewer = b->number[i] < b->support[i] ? 1.0 : 0.0, root = b->total[i] / b->number[i];
            b->t[i] = fewer > 0.0 ? root : b->t[i];
            b->support[i] = b->number[i];
            shrunk += fewer;
        }
    } while (shrunk > 0.0);
}

/* play = x - t - [x - t]_+, at most 0 up to rounding; the sum of the second into `total` */
static inline void block_excess(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT x = b->x + at;
    double *RESTRICT play = b->play + at;
    LANES() {
        const double t = b->t[i];
        double total = b->total[i];
        for (int e = 0; e < count; e++) {
            const double own = x[e * BLOCK + i], excess = own - t > 0.0 ? own - t : 0.0;
            total += excess;
            play[e * BLOCK + i] = own - excess - t;
        }
        b->total[i] = total;
    }
}

static inline void block_mass(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT reply = b->reply + at;
    LANES() {
        double mass = b->share[i];
        for (int e = 0; e < count; e++) mass += reply[e * BLOCK + i];
        b->share[i] = mass;
    }
}

/* The strategies, and sums of the certificate: of q into `number`, of its cost into `gap`, of scores into `entropy`. */
static inline void block_settle(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT x = b->x + at;
    double *RESTRICT play = b->play + at, *RESTRICT reply = b->reply + at;
    LANES() {
        const double t = b->t[i], total = b->total[i], share = b->share[i];
        double sum = b->number[i], most = b->most[i], cost = b->gap[i], reward = b->entropy[i];
        for (int e = 0; e < count; e++) {
            const double own = x[e * BLOCK + i], excess = own - t > 0.0 ? own - t : 0.0;
            const double part = reply[e * BLOCK + i] * share;
            play[e * BLOCK + i] = excess;
            reply[e * BLOCK + i] = part;
            sum += part;
            most = part > most ? part : most;
            cost += part * (total - excess);
            reward += part > 0.0 ? part * own : 0.0; /* 0 * -inf must count as 0 */
        }
        b->number[i] = sum, b->most[i] = most, b->gap[i] = cost, b->entropy[i] = reward;
    }
}

/* The tempered zero-one game of up to BLOCK rows of scores f (n, k): p and q (n, k), and the facts; room: 3 k BLOCK. */
static inline void block_zero_one(const double *RESTRICT f, ptrdiff_t n, ptrdiff_t k, double mu, double *RESTRICT p,
                                  double *RESTRICT q, Block *RESTRICT b, double *room) {
    double logs[BLOCK];
    b->x = room, b->play = room + k * BLOCK, b->reply = room + 2 * k * BLOCK;
    block_load(b, f, n, k);
    block_threshold(b, k);
    LANES() b->total[i] = b->share[i] = 0.0;
    BY_FOURS(block_excess, b, k);
    vec_exponentials(b->play, 0.0, mu, k * BLOCK, b->reply);
    BY_FOURS(block_mass, b, k);
    vec_logarithms(b->share, BLOCK, logs);
    LANES() {
        b->upper[i] = b->t[i] + b->total[i] + mu * logs[i];
        b->share[i] = 1.0 / b->share[i];
        b->number[i] = b->most[i] = b->gap[i] = b->entropy[i] = 0.0;
    }
    BY_FOURS(block_settle, b, k);
    LANES() {
        const double least = b->number[i] - b->most[i], gap = b->gap[i] - least;
        b->least[i] = least;
        b->gap[i] = gap > 0.0 ? gap : 0.0;
        b->entropy[i] = b->upper[i] - b->entropy[i] - b->gap[i];
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < k; j++) {
            p[i * k + j] = b->play[j * BLOCK + i];
            q[i * k + j] = b->reply[j * BLOCK + i];
        }
}

/* p = [x - t]_+ and q, `share` where p is positive. The sums of p into `total`, of q into `number` and of its scores into
   `entropy`; the largest q into `most` and x - p into `upper`. */
static inline void block_uniform(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT x = b->x + at;
    double *RESTRICT play = b->play + at, *RESTRICT reply = b->reply + at;
    LANES() {
        const double t = b->t[i], share = b->share[i];
        double total = b->total[i], sum = b->number[i], most = b->most[i], best = b->upper[i], reward = b->entropy[i];
        for (int e = 0; e < count; e++) {
            const double own = x[e * BLOCK + i], excess = own - t;
            const double p = excess > 0.0 ? excess : 0.0, q = excess > 0.0 ? share : 0.0;
            total += p;
            sum += q;
            most = q > most ? q : most;
            best = own - p > best ? own - p : best;
            reward += q > 0.0 ? q * own : 0.0; /* 0 * -inf must count as 0 */
            play[e * BLOCK + i] = p;
            reply[e * BLOCK + i] = q;
        }
        b->total[i] = total, b->number[i] = sum, b->most[i] = most, b->upper[i] = best, b->entropy[i] = reward;
    }
}

/* The zero-one game of up to BLOCK rows of scores f (n, k): p and q (n, k), the risk of q `least`, the `gap`, and the
   value, which is `entropy`, NaN for a row that has one; room: 3 k BLOCK. */
static inline void block_zero_one_plain(const double *RESTRICT f, ptrdiff_t n, ptrdiff_t k, double *RESTRICT p,
                                        double *RESTRICT q, Block *RESTRICT b, double *room) {
    b->x = room, b->play = room + k * BLOCK, b->reply = room + 2 * k * BLOCK;
    block_load(b, f, n, k);
    block_threshold(b, k);
    LANES() {
        b->share[i] = 1.0 / b->support[i];
        b->total[i] = b->number[i] = b->most[i] = b->entropy[i] = 0.0, b->upper[i] = -INFINITY;
    }
    BY_FOURS(block_uniform, b, k);
    LANES() {
        const double least = b->number[i] - b->most[i];
        const double gap = b->upper[i] + b->total[i] - (least + b->entropy[i]);
        b->least[i] = least;
        b->gap[i] = gap > 0.0 ? gap : 0.0;
        b->entropy[i] = b->top[i] + (b->t[i] + 1.0);
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < k; j++) {
            p[i * k + j] = b->play[j * BLOCK + i];
            q[i * k + j] = b->reply[j * BLOCK + i];
        }
}

/* Sum and number of t - x_j where it lies in [0, share). */
static inline void block_within(Block *RESTRICT b, ptrdiff_t at, const int count) {
    const double *RESTRICT x = b->x + at;
    LANES() {
        const double t = b->t[i], u = b->share[i];
        double total = b->total[i], number = b->number[i];
        for (int e = 0; e < count; e++) {
            const double below = t - x[e * BLOCK + i];
            const double free = below >= 0.0 && below < u ? 1.0 : 0.0;
            total += free > 0.0 ? below : 0.0;
            number += free;
        }
        b->total[i] = total;
        b->number[i] = number;
    }
}

/* The cap of each row's proximal step, times mu, into `share`: Newton's iteration from above, as for one row. */
static inline void block_cap(Block *RESTRICT b, ptrdiff_t k) {
    double falling;
    LANES() b->share[i] = b->mu / b->support[i], b->least[i] = (double)k + 1.0;
    do {
        LANES() b->total[i] = b->mu, b->number[i] = 0.0;
        BY_FOURS(block_within, b, k);
        falling = 0.0;
        LANES(reduction(+ : falling)) {
            const double fewer = b->number[i] < b->least[i] ? 1.0 : 0.0;
            const double root = b->total[i] / (b->support[i] + b->number[i]);
            b->share[i] = fewer > 0.0 ? root : b->share[i];
            b->least[i] = b->number[i];
            falling += fewer;
        }
    } while (falling > 0.0);
}

/* The proximal step from the centre in `reply`, which it overwrites, at the scores in `play`; p into x. The sums of p
   into `total`, of q into `number`, of <f, q> - mu/2 |q - centre|^2 into `entropy`; the largest q into `most` and f - p
   into `upper`. */
static inline void block_step(Block *RESTRICT b, ptrdiff_t at, const int count) {
    double *RESTRICT x = b->x + at, *RESTRICT reply = b->reply + at;
    const double *RESTRICT f = b->play + at;
    const double mu = b->mu, scale = 1.0 / mu;
    LANES() {
        const double t = b->t[i], u = b->share[i];
        double total = b->total[i], sum = b->number[i], most = b->most[i], best = b->upper[i], value = b->entropy[i];
        for (int e = 0; e < count; e++) {
            const double own = f[e * BLOCK + i], excess = x[e * BLOCK + i] - t, p = excess > 0.0 ? excess : 0.0;
            const double raised = excess + u > 0.0 ? excess + u : 0.0, q = scale * (raised < u ? raised : u);
            const double away = q - reply[e * BLOCK + i];
            total += p;
            sum += q;
            most = q > most ? q : most;
            best = own - p > best ? own - p : best;
            value += own * q - 0.5 * mu * (away * away);
            x[e * BLOCK + i] = p;
            reply[e * BLOCK + i] = q;
        }
        b->total[i] = total, b->number[i] = sum, b->most[i] = most, b->upper[i] = best, b->entropy[i] = value;
    }
}

/* The proximal steps of the zero-one game of up to BLOCK rows of scores f from `middle`, both (n, k): q and the support
   of p. Of each row the risk of q is `least`, what p secures at f `upper`, and the smoothed value `entropy`, the latter
   two for scores less `top`, and NaN for a row that has one. room: 3 k BLOCK. */
static inline void block_zero_one_steps(const double *RESTRICT f, const double *RESTRICT middle, ptrdiff_t n, ptrdiff_t k,
                                        double mu, double *RESTRICT q, unsigned char *RESTRICT tight, Block *RESTRICT b,
                                        double *room) {
    b->x = room, b->play = room + k * BLOCK, b->reply = room + 2 * k * BLOCK, b->mu = mu;
    for (ptrdiff_t i = 0; i < BLOCK; i++)
        for (ptrdiff_t j = 0; j < k; j++) {
            b->play[j * BLOCK + i] = i < n ? f[i * k + j] : 0.0;
            b->reply[j * BLOCK + i] = i < n ? middle[i * k + j] : 0.0;
        }
    LANES() b->number[i] = 0.0, b->most[i] = -INFINITY;
    for (ptrdiff_t j = 0; j < k * BLOCK; j++) b->x[j] = b->play[j] + mu * b->reply[j];
    BY_FOURS(block_top, b, k);
    LANES() b->top[i] = b->most[i];
    for (ptrdiff_t j = 0; j < k; j++)
        LANES() b->x[j * BLOCK + i] -= b->top[i], b->play[j * BLOCK + i] -= b->top[i];
    block_threshold(b, k);
    block_cap(b, k);
    LANES() b->total[i] = b->number[i] = b->most[i] = b->entropy[i] = 0.0, b->upper[i] = -INFINITY;
    BY_FOURS(block_step, b, k);
    LANES() {
        b->least[i] = b->number[i] - b->most[i];
        b->entropy[i] += b->least[i];
        b->upper[i] = b->entropy[i] == b->entropy[i] ? b->upper[i] + b->total[i] : NAN;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < k; j++) {
            q[i * k + j] = b->reply[j * BLOCK + i];
            tight[i * k + j] = b->x[j * BLOCK + i] > 0.0;
        }
}
#endif
