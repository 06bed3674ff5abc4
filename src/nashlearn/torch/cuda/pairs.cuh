// Numbers of two players, and linear systems whose unknowns come in pairs.
//
// The loss couples the strategies of two players by a skew term: where their unknowns meet, the matrix is
//     [  u  w ]
//     [ -w  v ],     u, v >= 0,
// so that its determinant u v + w^2 does not vanish. Elimination of pairs keeps that form on the diagonal, and beside
// it M_ij = [[a, b], [-d, c]] goes with M_ji = [[a, d], [-b, c]]: half of a matrix is enough.
#pragma once

#include "block.cuh"

struct alignas(16) Pair {
    double p, q;
};

__device__ __forceinline__ Pair operator+(Pair x, Pair y) { return {x.p + y.p, x.q + y.q}; }
__device__ __forceinline__ Pair operator-(Pair x, Pair y) { return {x.p - y.p, x.q - y.q}; }
__device__ __forceinline__ Pair operator*(Pair x, Pair y) { return {x.p * y.p, x.q * y.q}; }
__device__ __forceinline__ Pair operator*(double s, Pair x) { return {s * x.p, s * x.q}; }
__device__ __forceinline__ void operator+=(Pair& x, Pair y) { x = x + y; }
__device__ __forceinline__ void operator-=(Pair& x, Pair y) { x = x - y; }
__device__ __forceinline__ double larger(Pair x) { return x.p >= x.q || x.p != x.p ? x.p : x.q; }
__device__ __forceinline__ Pair absolute(Pair x) { return {fabs(x.p), fabs(x.q)}; }

// The sum over a warp, in each of its lanes.
__device__ __forceinline__ Pair warp_sum(Pair x) { return {group_sum<32>(x.p), group_sum<32>(x.q)}; }

struct Block {  // [[u, w], [-w, v]]
    double u, w, v;
};

__device__ __forceinline__ void operator+=(Block& x, Block y) { x = {x.u + y.u, x.w + y.w, x.v + y.v}; }
__device__ __forceinline__ Block operator*(double s, Block x) { return {s * x.u, s * x.w, s * x.v}; }
__device__ __forceinline__ Pair operator*(Block m, Pair x) { return {m.u * x.p + m.w * x.q, m.v * x.q - m.w * x.p}; }

__device__ __forceinline__ Block warp_sum(Block x) {
    return {group_sum<32>(x.u), group_sum<32>(x.w), group_sum<32>(x.v)};
}

// What is left of a determinant after cancellation may be nothing: then the unknowns stay where they are.
__device__ __forceinline__ Block inverse(Block m) {
    double determinant = m.u * m.v + m.w * m.w;
    double scale = determinant > 1e-60 ? 1.0 / determinant : 0.0;
    return {m.v * scale, -m.w * scale, m.u * scale};
}

struct alignas(16) Coupling {  // [[a, b], [-d, c]]
    double a, b, d, c;
};

__device__ __forceinline__ Coupling coupling(Block m) { return {m.u, m.w, m.w, m.v}; }
__device__ __forceinline__ Coupling flipped(Coupling m) { return {m.a, m.d, m.b, m.c}; }
__device__ __forceinline__ void operator+=(Coupling& x, Coupling y) {
    x = {x.a + y.a, x.b + y.b, x.d + y.d, x.c + y.c};
}
__device__ __forceinline__ void operator-=(Coupling& x, Coupling y) {
    x = {x.a - y.a, x.b - y.b, x.d - y.d, x.c - y.c};
}
__device__ __forceinline__ Pair operator*(Coupling m, Pair x) {
    return {m.a * x.p + m.b * x.q, m.c * x.q - m.d * x.p};
}

__device__ __forceinline__ Coupling warp_sum(Coupling x) {
    return {group_sum<32>(x.a), group_sum<32>(x.b), group_sum<32>(x.d), group_sum<32>(x.c)};
}

// M_ik inverse(M_kk) M_kj, from M_ik, the inverse and M_jk.
__device__ __forceinline__ Coupling through(Coupling left, Block middle, Coupling right) {
    double aa = left.a * middle.u - left.b * middle.w, ab = left.a * middle.w + left.b * middle.v;
    double da = left.d * middle.u + left.c * middle.w, dc = left.c * middle.v - left.d * middle.w;
    return {
        aa * right.a - ab * right.b, aa * right.d + ab * right.c,
        da * right.a + dc * right.b, dc * right.c - da * right.d,
    };
}

// Where M_ij, j <= i, lies; and what lies at a place.
__device__ __forceinline__ int place(int i, int j) { return i * (i + 1) / 2 + j; }

struct Spot {
    int i, j;
};

__device__ __forceinline__ Spot spot(int at) {
    int i = static_cast<int>(0.5f * sqrtf(8.0f * at + 1.0f) - 0.5f);
    while (place(i + 1, 0) <= at) i++;
    while (place(i, 0) > at) i--;
    return {i, at - place(i, 0)};
}

// Factor a system of `count` pairs in place, all threads of the block together; `pivot` are inverses of the diagonal.
__device__ inline void eliminate(Coupling* system, Block* pivot, int count) {
    for (int k = 0; k < count; k++) {
        __syncthreads();
        Coupling own = system[place(k, k)];
        Block middle = inverse({own.a, own.b, own.c});
        if (threadIdx.x == 0) pivot[k] = middle;
        for (int at = threadIdx.x; at < place(count - k - 1, 0); at += blockDim.x) {
            Spot left = spot(at);
            int i = k + 1 + left.i, j = k + 1 + left.j;
            system[place(i, j)] -= through(system[place(i, k)], middle, system[place(j, k)]);
        }
    }
    __syncthreads();
}

// The entry i of a vector that lanes hold in turns, in every lane.
template <int EACH>
__device__ __forceinline__ Pair entry(const Pair (&x)[EACH], int i) {
    Pair own = x[0];
    if (EACH > 1 && i >= 32) own = x[EACH - 1];
    return {__shfl_sync(FULL, own.p, i % 32), __shfl_sync(FULL, own.q, i % 32)};
}

// Replace the right sides x (count) by the solution: the work of one warp, whose lanes hold up to two pairs each.
template <int EACH>
__device__ void substitute(const Coupling* system, const Block* pivot, int count, Pair* x) {
    const int lane = threadIdx.x % 32;
    Pair own[EACH], paid[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int i = lane + 32 * e;
        own[e] = i < count ? x[i] : Pair{0.0, 0.0};
        paid[e] = {0.0, 0.0};
    }
    for (int k = 0; k < count; k++) {
        Pair known = pivot[k] * entry(own, k);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            int i = lane + 32 * e;
            if (i == k) own[e] = known;
            if (i > k && i < count) own[e] -= system[place(i, k)] * known;
        }
    }
    for (int k = count - 1; k >= 0; k--) {
        Pair known = entry(own, k) - pivot[k] * entry(paid, k);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            int i = lane + 32 * e;
            if (i == k) own[e] = known;
            if (i < k) paid[e] += flipped(system[place(k, i)]) * known;
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (lane + 32 * e < count) x[lane + 32 * e] = own[e];
}
