// Cuts that a point violates, by maximum flows from the root: the work of one warp, whose lanes hold WIDE tokens each.
#pragma once

#include "cuts.cuh"

constexpr int TOGETHER = 4;  // loads that wait for the memory at once

// Which tokens are so.
__device__ __forceinline__ Tokens votes(const bool (&yes)[WIDE]) {
    Tokens found = __ballot_sync(FULL, yes[0]);
    if (WIDE > 1) found |= static_cast<Tokens>(__ballot_sync(FULL, yes[WIDE - 1])) << 32 * (WIDE - 1);
    return found;
}

// The number that token t holds, in every lane.
template <class T>
__device__ __forceinline__ T of_token(const T (&x)[WIDE], int t) {
    T own = x[0];
    if (WIDE > 1 && t >= 32) own = x[WIDE - 1];
    return __shfl_sync(FULL, own, t % 32);
}

// The token of a set that holds most, the first of several.
__device__ inline int best_of(Tokens set, const double (&x)[WIDE]) {
    const int lane = threadIdx.x % 32;
    double top = -1.0;
    bool yes[WIDE];
#pragma unroll
    for (int e = 0; e < WIDE; e++)
        if (has(set, lane + 32 * e)) top = most(top, x[e]);
    top = group_max<32>(top);
#pragma unroll
    for (int e = 0; e < WIDE; e++) yes[e] = has(set, lane + 32 * e) && x[e] == top;
    return lowest(votes(yes));
}

struct Flow {  // from the root, and the tokens that are merged with it, to one token
    int n;
    const double* x;  // (n, n) arcs, of one player of two: every second number
    double* left;     // (n, n) capacity left from the second index to the first
    Tokens rest;      // the tokens that are not merged with the root
    Tokens reached;   // those from which the last search found a way to the target
    double least;     // as much capacity does not count, for now

    double supply[WIDE];  // of each token, from the root directly
    Tokens out[WIDE];     // where capacity is left from it

    __device__ double push_pairs(const double (&inflow)[WIDE], int target);
    __device__ void lay_out(const double (&inflow)[WIDE], int target);
    __device__ double push_through(int target, int last);
    __device__ void open();
    __device__ double push_way(int target);
    __device__ double push_to(int target, double enough, double none, const double (&inflow)[WIDE]);
};

// Supply the tokens, and push to the target directly and by one token between: these ways have no arc in common.
__device__ inline double Flow::push_pairs(const double (&inflow)[WIDE], int target) {
    double total = 0.0;
    EACH_ENTRY(e, u, n) {
        double push = u == target ? inflow[e] : fmin(inflow[e], x[2 * (target * n + u)]);
        supply[e] = inflow[e] - push;
        if (has(rest, u)) total += push;
    }
    return group_sum<32>(total);
}

// What is left after that.
__device__ inline void Flow::lay_out(const double (&inflow)[WIDE], int target) {
    EACH_ENTRY(e, u, n)
    for (int v = 0; v < n; v += TOGETHER) {
        double own[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            if (v + i < n) own[i] = x[2 * ((v + i) * n + u)];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            if (v + i < n) left[(v + i) * n + u] = own[i];
    }
    __syncwarp();
    EACH_ENTRY(e, u, n) if (has(rest & ~only(target), u)) {
        left[target * n + u] -= inflow[e] - supply[e];
        left[u * n + target] += inflow[e] - supply[e];
    }
    __syncwarp();
}

// Push along all ways to the target that end with the arc from token `last`, and have one token before that.
__device__ inline double Flow::push_through(int target, int last) {
    const int lane = threadIdx.x % 32;
    const double capacity = left[target * n + last];
    double before = 0.0;  // what tokens that come first push
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        const int u = lane + 32 * e;
        const bool counts = has(rest & ~only(target) & ~only(last), u);
        double push = counts ? fmin(supply[e], left[last * n + u]) : 0.0, sum = push;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            double other = __shfl_up_sync(FULL, sum, step);
            if (lane >= step) sum += other;
        }
        push = fmax(fmin(push, capacity - before - (sum - push)), 0.0);
        before += __shfl_sync(FULL, sum, 31);
        if (counts) {
            supply[e] -= push;
            left[last * n + u] -= push;
            left[u * n + last] += push;
        }
    }
    double total = fmin(before, capacity);
    __syncwarp();
    if (lane == 0) {
        left[target * n + last] -= total;
        left[last * n + target] += total;
    }
    __syncwarp();
    return total;
}

// Find where more than the least is left.
__device__ inline void Flow::open() {
    EACH_ENTRY(e, u, n) {
        Tokens heads = 0;
#pragma unroll TOGETHER
        for (int v = 0; v < n; v++)
            if (left[v * n + u] > least) heads |= only(v);
        out[e] = has(rest, u) ? heads & rest & ~only(u) : 0;
    }
}

// Search backwards from the target for a token with supply left, and push along that way; how much, 0 without one.
__device__ inline double Flow::push_way(int target) {
    const int lane = threadIdx.x % 32;
    int next[WIDE] = {}, previous[WIDE];
    Tokens front = only(target), fed = 0, way = 0;
    for (reached = front; front && !fed;) {
        bool joins[WIDE], supplied[WIDE];
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            joins[e] = has(rest & ~reached, lane + 32 * e) && (out[e] & front);
            supplied[e] = joins[e] && supply[e] > least;
            if (joins[e]) next[e] = lowest(out[e] & front);
        }
        front = votes(joins);
        fed = votes(supplied);
        reached |= front;
    }
    if (!fed) return 0.0;
    const int first = lowest(fed);
    double push = of_token(supply, first);
    for (int u = first, v; u != target; u = v) {
        v = of_token(next, u);
        way |= only(u);
        push = fmin(push, left[v * n + u]);
        EACH_ENTRY(e, own, n) if (own == v) previous[e] = u;
    }
    __syncwarp();
    EACH_ENTRY(e, own, n) {
        if (has(way, own)) {
            left[next[e] * n + own] -= push;
            if (left[next[e] * n + own] <= least) out[e] &= ~only(next[e]);
        }
        if (own == first)
            supply[e] -= push;
        else if (has(way, own) || own == target) {
            left[previous[e] * n + own] += push;
            if (left[previous[e] * n + own] > least) out[e] |= only(previous[e]);
        }
    }
    __syncwarp();
    return push;
}

// Push to the target until `enough` arrives or no more can; what arrives. Then the tokens `reached` are a smallest cut,
// up to capacities of `none` each. Wide ways come first: interior points use every arc a little, and would go many.
__device__ inline double Flow::push_to(int target, double enough, double none, const double (&inflow)[WIDE]) {
    double total = push_pairs(inflow, target);
    if (total >= enough) return total;
    lay_out(inflow, target);
    bool wide[WIDE] = {};
    EACH_ENTRY(e, u, n) wide[e] = has(rest & ~only(target), u) && left[target * n + u] > 0.01;
    for (Tokens lasts = votes(wide); lasts && total < enough; lasts &= lasts - 1)
        total += push_through(target, lowest(lasts));
    for (least = 0.05; total < enough; least = fmax(0.05 * least, none)) {
        double push = 1.0;
        for (open(); total < enough && push > 0.0; total += push) push = push_way(target);
        if (least <= none) break;
    }
    return total;
}

// What a cut lacks to 1.
__device__ inline double missing_from(const double* x, int n, Tokens set) {
    double total = 0.0;
    for (Tokens tokens = set; tokens; tokens &= tokens - 1) {
        const int d = lowest(tokens);
        EACH_ENTRY(e, t, n) if (t == d || !has(set, t)) total += x[2 * (d * n + t)];
    }
    return 1.0 - group_sum<32>(total);
}

struct Separation {  // what to look for
    double tol;    // cuts that lack more than this,
    double taken;  // of which those are taken that lack more than this;
    double none;   // arcs of so much need not be found
};

// Violated cuts of x into `found` (n / PARTS); their number. No cut that this part sees lacks more to 1 than `lack`: a
// token that a flow of 1 reaches joins the root, and so does one that none reaches. Of a cut's tokens the first to join
// bounds what it lacks. Which tokens flows go to does not depend on what they find, so each part takes every PARTS-th.
__device__ __noinline__ int separate(
    const double* x, double* left, int n, Separation wanted, int part, Tokens* found, double* lack
) {
    const int lane = threadIdx.x % 32;
    Flow flow = {n, x, left, ~Tokens(0) >> (32 * WIDE - n)};
    double inflow[WIDE] = {}, worst = 0.0;
    int count = 0;
    EACH_ENTRY(e, t, n) inflow[e] = x[2 * t * (n + 1)];
    for (int turn = 0; flow.rest;) {
        bool fed[WIDE];
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            fed[e] = has(flow.rest, lane + 32 * e) && inflow[e] >= 1.0 - wanted.tol;
            if (fed[e]) worst = fmax(worst, 1.0 - inflow[e]);
        }
        Tokens joining = votes(fed);
        if (!joining) {
            const int target = best_of(flow.rest, inflow);
            if (turn++ % PARTS == part) {
                const double missing = 1.0 - flow.push_to(target, 1.0 - wanted.tol, wanted.none, inflow);
                worst = fmax(worst, missing);
                if (missing > wanted.tol && missing_from(x, n, flow.reached) > wanted.taken) {
                    if (lane == 0) found[count] = flow.reached;
                    count++;
                }
            }
            joining = only(target);
        }
        flow.rest &= ~joining;
        for (; joining; joining &= joining - 1)
            EACH_ENTRY(e, t, n) if (has(flow.rest, t)) inflow[e] += x[2 * (t * n + lowest(joining))];
    }
    *lack = group_max<32>(worst);
    return count;
}
