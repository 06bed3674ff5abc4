// Games over rows of simplices cut by further constraints, by an interior point method: one block plays one game.
//
// Both players choose x >= 0, an n x n matrix whose rows sum to 1; constraint k asks a_k x = b_k or a_k x >= b_k. With
//     max_q min_p <r, q> - <p, q> - mu/2 |q|^2
// and potentials y of the rows and lam of the constraints, multipliers are
//     z_p = -q - y_p - a' lam_p,     z_q = mu q + p - r - y_q - a' lam_q.
// The method starts with such z and keeps them so: y is never needed. It follows the central path, where all products
// x z and lam slack are equal, with Mehrotra's predictor and corrector.
#pragma once

#include "newton.cuh"

#ifndef ITERATIONS
#define ITERATIONS 100
#endif
#define PATIENCE 8   // iterations that may pass before a residual is halved
#define TRIES 2      // careful steps after that, before a path that hardly moves is given up
#define LEAST 0.1    // multipliers and slacks at the start

// The total complementarity of a point, and its largest violation of a constraint.
template <class Polytope>
__device__ Total measure(const Path& c, const Polytope& polytope) {
    const int k = threadIdx.x;
    Pair sums[Polytope::EACH] = {};
    double total = 0.0, primal = 0.0;
    EACH_ROW(i, c.n) {
        Pair own[WIDE] = {}, row = {0.0, 0.0};
        EACH_ENTRY(e, j, c.n) {
            Pair z = c.z[i * c.n + j];
            own[e] = c.x[i * c.n + j];
            row += own[e];
            total += own[e].p * z.p + own[e].q * z.q;
        }
        row = warp_sum(row) - Pair{1.0, 1.0};
        if (threadIdx.x % 32 == 0) c.miss[i] = row;
        primal = most(primal, larger(absolute(row)));
        polytope.add_row(i, own, sums);
    }
    Pair sum = collected(c, sums, polytope.count);
    if (k < polytope.count) {
        sum -= Pair{polytope.limit(k), polytope.limit(k)};
        if (k >= polytope.equal) {
            sum -= c.slack[k];
            total += c.lam[k].p * c.slack[k].p + c.lam[k].q * c.slack[k].q;
        }
        c.over[k] = sum;
        primal = most(primal, larger(absolute(sum)));
    }
    return block_total(total, primal, c.room);
}

// The largest reward of row i.
template <class Rewards>
__device__ double top_of(const Path& c, const Rewards& reward, int i) {
    double top = -1e300;
    EACH_ENTRY(e, j, c.n) top = most(top, reward(i, j));
    return group_max<32>(top);
}

// The largest spread of the rewards of a row.
template <class Rewards>
__device__ double spread_of(const Path& c, const Rewards& reward) {
    double spread = 0.0;
    EACH_ROW(i, c.n) {
        double top = top_of(c, reward, i);
        EACH_ENTRY(e, j, c.n) spread = most(spread, top - reward(i, j));
    }
    return block_total(0.0, spread, c.room).most;
}

// Multipliers that the strategies and the constraints' potentials ask for, the least of each row LEAST.
template <class Polytope, class Rewards>
__device__ void set_multipliers(const Path& c, const Polytope& polytope, const Rewards& reward) {
    EACH_ROW(i, c.n) {
        Pair z[WIDE], low = {-1e300, -1e300};
        EACH_ENTRY(e, j, c.n) {
            Pair x = c.x[i * c.n + j];
            z[e] = Pair{-x.q, c.mu * x.q + x.p - reward(i, j)} - polytope.price(c.lam, i, j);
            low = {most(low.p, -z[e].p), most(low.q, -z[e].q)};
        }
        Pair rise = {group_max<32>(low.p) + LEAST, group_max<32>(low.q) + LEAST};
        EACH_ENTRY(e, j, c.n) c.z[i * c.n + j] = z[e] + rise;
    }
    __syncthreads();
}

// Strategies that lean to the rewards, e^-5 at least of the largest of a row; and constraints with room to spare.
template <class Polytope, class Rewards>
__device__ void start(const Path& c, const Polytope& polytope, const Rewards& reward, double spread) {
    const int k = threadIdx.x;
    const double slope = 1.0 / (0.5 + 0.2 * spread);
    Pair sums[Polytope::EACH] = {};
    EACH_ROW(i, c.n) {
        Pair own[WIDE] = {};
        double top = top_of(c, reward, i), total = 0.0;
        EACH_ENTRY(e, j, c.n) total += own[e].p = exp(slope * (reward(i, j) - top));
        total = 1.0 / group_sum<32>(total);
        EACH_ENTRY(e, j, c.n) {
            own[e] = {total * own[e].p, total * own[e].p};
            c.x[i * c.n + j] = own[e];
        }
        polytope.add_row(i, own, sums);
    }
    Pair sum = collected(c, sums, polytope.count);
    if (k < polytope.count) {
        double b = polytope.limit(k);
        c.slack[k] = {most(sum.p - b, LEAST), most(sum.q - b, LEAST)};
        c.lam[k] = k < polytope.equal ? Pair{0.0, 0.0} : Pair{LEAST, LEAST};
    }
    __syncthreads();
    set_multipliers(c, polytope, reward);
}

struct Care {  // how a step is taken
    double centred;  // the least share of the mean complementarity to keep
    double second;   // how much of the predictor's second order to correct
    double reach;    // how much of the way to the boundary to go
};

// Predict, correct and move; how far.
template <class Polytope>
__device__ double step(const Path& c, const Polytope& polytope, double total, double nu, Care care) {
    double centre = 0.0, length = 0.0;
    factor(c, polytope);
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        gather(c, polytope, pass, centre);
        Total ahead = spread(c, polytope, pass, centre, care.second);
        length = fmin(1.0, (pass ? care.reach : 1.0) / most(ahead.most, 0.5));
        double share = 1.0 - length + length * length * ahead.sum / total;
        centre = nu * most(share * share * share, care.centred);
    }
    move(c, polytope, length);
    return length;
}

// Follow the central path until the complementarity for each row and all violations are below `aim`, or below `near`
// and rounding prevents more, or until rounding spoils a step or the boundary stops it; what is left of them, no number
// where the path is lost.
template <class Polytope>
__device__ double follow(const Path& c, Polytope& polytope, double aim, double near) {
    double last = 1e300, halved = 1e300, length = 0.0;
    const double rows = 1.0 + c.n * (1.0 + c.mu);
    bool grown = false;
    for (int turn = 0, slow = 0;;) {
        Total now = measure(c, polytope);
        double worst = most(now.sum / rows, now.most);
        double nu = now.sum / (2.0 * (c.n * c.n + polytope.count - polytope.equal));
        if (!(worst > aim && worst < 1e300) || turn == ITERATIONS) return worst;
        if (worst >= last && (last <= near || (worst > 100.0 * last && last < 1e-4))) {
            move(c, polytope, -length);
            return last;
        }
        grown = !grown && polytope.grow(c, nu, turn);
        if (polytope.lost) return worst;
        if (grown) {
            last = halved = 1e300;
            continue;
        }
        slow++;
        if (worst <= 0.5 * halved) {
            halved = worst;
            slow = 0;
        }
        // Almost to the boundary, the closer the nearer the end: 0.99 throughout would make convergence linear. Such
        // steps may leave the central path so far that they go round in circles: careful ones return to it.
        Care care = {worst > last ? 0.1 : 0.0, 1.0, most(0.99, 1.0 - worst)};
        if (slow > PATIENCE + TRIES && length < 1e-3) return worst;
        if (slow > PATIENCE) care = {0.5, 0.0, 0.7};
        length = step(c, polytope, now.sum, nu, care);
        last = worst;
        turn++;
    }
}

struct Bounds {  // of the value: what p concedes at most, and what q secures
    double upper, lower;
};

// From any strategies x of the polytope: any potentials bound the best replies to them,
//     max_y <c, y> <= sum_i max_j (c + a' lam)_ij - <b, lam>,     lam >= 0 for inequalities.
template <class Polytope, class Rewards>
__device__ Bounds certify(const Path& c, const Polytope& polytope, const Rewards& reward, const Pair* x) {
    const int k = threadIdx.x;
    Pair reply = {0.0, 0.0};
    double worth = 0.0, square = 0.0;
    if (polytope.equal <= k && k < polytope.count) c.lam[k] = {fmax(c.lam[k].p, 0.0), fmax(c.lam[k].q, 0.0)};
    __syncthreads();
    EACH_ROW(i, c.n) {
        Pair top = {-1e300, -1e300};
        EACH_ENTRY(e, j, c.n) {
            Pair own = x[i * c.n + j], price = polytope.price(c.lam, i, j);
            double r = reward(i, j);
            top = {most(top.p, own.q + price.p), most(top.q, r - own.p - c.mu * own.q + price.q)};
            worth += r * own.q;
            square += own.q * own.q;
        }
        top = {group_max<32>(top.p), group_max<32>(top.q)};
        if (threadIdx.x % 32 == 0) reply += top;
    }
    if (k < polytope.count) reply -= polytope.limit(k) * c.lam[k];
    square = 0.5 * c.mu * block_total(square, 0.0, c.room).sum;
    double upper = block_total(reply.q, 0.0, c.room).sum + square;
    return {upper, block_total(worth - reply.p, 0.0, c.room).sum - square};
}
