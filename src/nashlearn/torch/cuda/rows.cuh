// Games of rows: G neighbouring lanes share a row of K scores, and a lane has the labels lane, lane + G, ... of its row.
// G is a power of two; where it exceeds a warp, the block has one group.
// Constants: K labels, M options, G, THREADS of a block, BLOCKS that a multiprocessor should have room for, ROWS that a
// group solves one after the other, the KIND of numbers that scores are (0 float64, 1 float32, 2 bfloat16, 3 float16),
// SINGLE, 1 where solutions are sought in float32, and LATER, 1 where rows that are left without a value are played
// again later. Strategies and certificates are float64.
#pragma once

#include "block.cuh"

#define GROUPS (THREADS / G)
#define LABELS ((K + G - 1) / G)   // of a lane
#define OPTIONS ((M + G - 1) / G)  // of a lane
#define WARP (G < 32 ? G : 32)     // lanes of a group that a warp has
#define LOWEST (-__longlong_as_double(0x7ff0000000000000LL))
#define NAN64 __longlong_as_double(0x7ff8000000000000LL)

#if KIND == 0
typedef double Score;
typedef double Sum;
__device__ __forceinline__ double number(Score x) { return x; }
#else
typedef float Sum;
#if KIND == 1
typedef float Score;
__device__ __forceinline__ double number(Score x) { return x; }
#elif KIND == 2
typedef unsigned short Score;
__device__ __forceinline__ double number(Score x) { return __int_as_float(int(x) << 16); }
#else
typedef unsigned short Score;
__device__ __forceinline__ double number(Score x) {
    float size = __int_as_float((x & 0x7fff) << 13) * __int_as_float(0x77800000);  // 2^112: the exponents' difference
    if ((x & 0x7c00) == 0x7c00) size = __int_as_float(0x7f800000 | (x & 0x3ff) << 13);
    return x & 0x8000 ? -size : size;
}
#endif
#endif

// A set of labels or options, and a loop over it.
#if K <= 32 && M <= 32
typedef unsigned Set;
#define FIRST(set) (__ffs(set) - 1)
#else
typedef unsigned long long Set;
#define FIRST(set) (__ffsll(set) - 1)
#endif
#define ONE(i) (Set(1) << (i))
#define FOR_EACH(i, set) for (Set left_ = (set); left_ && ((i) = FIRST(left_), true); left_ &= left_ - 1)

// What lanes of a group do together. Groups of a warp go through the same loops, as long as any of them is at work: lanes
// that waited for a part of their warp would make the device run its groups one after the other.
#if G > 32
#define row_sync() __syncthreads()

__device__ __forceinline__ bool row_any(bool yes) { return yes; }  // alike in all lanes of the group, the block's only one

template <class Real, class Join>
__device__ __forceinline__ Real row_join(Real x, Join join) {
    __shared__ Real parts[G / 32];
    parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int i = 1; i < G / 32; i++) x = join(x, parts[i]);
    __syncthreads();
    return x;
}

template <class Real>
__device__ __forceinline__ Real row_sum(Real x) {
    return row_join(group_sum<32>(x), [](Real a, Real b) { return a + b; });
}

template <class Real>
__device__ __forceinline__ Real row_max(Real x) {
    return row_join(group_max<32>(x), [](Real a, Real b) { return a >= b || a != a ? a : b; });
}
#else
#define row_sync() __syncwarp()

__device__ __forceinline__ bool row_any(bool yes) { return __any_sync(FULL, yes); }

template <class Real>
__device__ __forceinline__ Real row_sum(Real x) {
    return group_sum<G>(x);
}

template <class Real>
__device__ __forceinline__ Real row_max(Real x) {
    return group_max<G>(x);
}
#endif

// Costs L in float32, behind those in float64.
__device__ __forceinline__ float* narrow(double* L) { return reinterpret_cast<float*>(L + M * K); }
__device__ __forceinline__ const float* narrow(const double* L) { return reinterpret_cast<const float*>(L + M * K); }

// Costs L (options, labels) beyond the least of their label, in units of the largest; the least ones, and the unit.
__device__ double read_costs(const double* costs, double* L, double* least) {
    for (int j = threadIdx.x; j < K; j += THREADS) {
        double low = costs[j], high = low;
        for (int i = 1; i < M; i++) {
            low = min(low, costs[i * K + j]);
            high = max(high, costs[i * K + j]);
        }
        least[j] = low;
        L[j] = high - low;
    }
    __syncthreads();
    double unit = 0.0;
    for (int j = 0; j < K; j++) unit = max(unit, L[j]);
    if (!(unit > 0.0)) unit = 1.0;
    __syncthreads();
    for (int e = threadIdx.x; e < M * K; e += THREADS) {
        L[e] = (costs[e] - least[e % K]) / unit;
        if (SINGLE) narrow(L)[e] = float(L[e]);
    }
    __syncthreads();
    return unit;
}

// Rewards of the lane's labels, in units and at most 0; labels beyond the last have -infinity. What is taken off is
// `top`, the largest score, NaN or infinite where the row has no value, and `best`.
__device__ void read_row(const Score* scores, bool live, const double* least, double unit, int lane,
                         double* reward, double& top, double& best) {
    top = LOWEST;
#pragma unroll
    for (int a = 0; a < LABELS; a++) {
        int j = a * G + lane;
        reward[a] = live && j < K ? number(scores[j]) : LOWEST;
        top = top >= reward[a] || top != top ? top : reward[a];
    }
    top = row_max(top);
    bool finite = fabs(top) < -LOWEST;
    best = LOWEST;
#pragma unroll
    for (int a = 0; a < LABELS; a++) {
        int j = a * G + lane;
        if (j < K) reward[a] = (finite ? reward[a] - top : 0.0) + least[j];
        best = max(best, reward[a]);
    }
    best = row_max(best);
    double scale = 1.0 / unit;
#pragma unroll
    for (int a = 0; a < LABELS; a++) reward[a] = (reward[a] - best) * scale;
}

// What a group has found for its row: what the value is above the largest score, and whether that is certified.
struct Found {
    double above;
    bool good;
};

// What each block writes: losses of rows or, reduced, its sums of losses and of weights; q and p where they are wanted.
struct Output {
    const long long* target;  // none: strategies alone
    const Sum* weight;
    Sum* out;
    Sum* sums;
    Sum* q;
    Sum* p;
    long long n, ignore_index;
    bool reduce, again;  // again: only rows that were left without a value, whose q is NaN
};

// Weighted loss and weight of a row; a label that is none of 0..K-1 and not ignored gives NaN.
__device__ void outcome(const Output& to, const Score* scores, long long row, double top, const Found& found,
                        double& loss, double& share) {
    long long y = to.target[row];
    if (y == to.ignore_index) return;
    double own = to.weight ? double(to.weight[row]) : 1.0;
    double score = y >= 0 && y < K ? number(scores[y]) : NAN64;
    double one = (top - score + found.above) * own;
    if (!to.reduce) to.out[row] = Sum(one);
    if (!LATER || found.good) loss += one;
    share += own;
}

// Whether any of the block's rows was left without a value.
__device__ __forceinline__ bool left_over(const Output& to) {
    long long first = static_cast<long long>(blockIdx.x) * ROWS * GROUPS, last = min(to.n, first + ROWS * GROUPS);
    bool any = false;
    for (long long row = first + threadIdx.x; row < last; row += THREADS) any = any || to.q[row * K] != to.q[row * K];
    return __syncthreads_or(any);
}

// The block's rows, one group a row at a time; the solver fills q (K,) and p (M,) of the group,
// behind which it has ROOM for more.
template <class Solver>
__device__ void play(const Score* scores, const double* costs, const Output& to, Solver solver) {
    DYNAMIC_SHARED(room);
    if (to.again && !left_over(to)) return;
    double *L = room, *least = L + M * K + (SINGLE ? (M * K + 1) / 2 : 0), *totals = least + K, *own = totals + 2 * GROUPS;
    double unit = read_costs(costs, L, least);
    int lane = threadIdx.x % G, group = threadIdx.x / G;
    // An odd number of entries, so that groups read from different banks.
    double *p = own + group * (M + K + Solver::ROOM + 1 - (M + K + Solver::ROOM) % 2), *q = p + M;
    double loss = 0.0, share = 0.0, reward[LABELS], top, best;
    for (int turn = 0; turn < ROWS; turn++) {
        long long row = (static_cast<long long>(blockIdx.x) * ROWS + turn) * GROUPS + group;
        bool live = row < to.n && !(to.again && to.q[row * K] == to.q[row * K]);
        if (!row_any(live)) continue;
        const Score* own_scores = scores + (live ? row * K : 0);
        read_row(own_scores, live, least, unit, lane, reward, top, best);
        Found found = solver(L, unit, reward, lane, p, q);
        found.good = found.good && fabs(top) < -LOWEST;
        found.above = found.good ? best + unit * found.above : NAN64;
        if (live && lane == 0 && to.target) {
            if (!to.reduce) to.out[row] = 0;
            outcome(to, own_scores, row, top, found, loss, share);
        }
        if (live && to.q)
            for (int j = lane; j < K; j += G) to.q[row * K + j] = Sum(found.good ? q[j] : NAN64);
        if (live && to.p)
            for (int i = lane; i < M; i += G) to.p[row * M + i] = Sum(found.good ? p[i] : NAN64);
        row_sync();
    }
    if (!to.reduce) return;
    if (lane == 0) {
        totals[group] = loss;
        totals[GROUPS + group] = share;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        loss = share = 0.0;
        for (int g = 0; g < GROUPS; g++) {
            loss += totals[g];
            share += totals[GROUPS + g];
        }
        Sum *losses = to.sums + 1, *shares = losses + gridDim.x;
        losses[blockIdx.x] = Sum(to.again ? losses[blockIdx.x] + loss : loss);
        if (!to.again) shares[blockIdx.x] = Sum(share);
    }
}

// `how` is 1 to reduce, and 2 more to play again what was left without a value.
#define ENTRY(name, solver)                                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                 \
        name(const Score* scores, const long long* target, const Sum* weight, const double* costs, Sum* out,      \
             Sum* sums, Sum* q, Sum* p, long long n, long long ignore_index, long long how, double smoothing) {   \
        Output to{target, weight, out, sums, q, p, n, ignore_index, (how & 1) != 0, (how & 2) != 0};              \
        play(scores, costs, to, solver);                                                                          \
    }
