// Cuts of the arborescence polytope: sets S of tokens into which one arc at least must lead.
//
// Arcs are an n x n matrix: entry (d, t) is the arc from token t to token d, and (d, d) that from the root to d. Within
// row d of S the arcs that enter S are those from other tokens and the root, and the rest of the row stays inside: a
// cut asks
//     x(arcs that enter S) >= 1     or, as rows sum to 1,     -x(arcs inside S) >= 1 - |S|,
// of which it takes the form with fewer arcs. That the root has one arc is such a cut too, of all tokens, and an
// equality.
#pragma once

#include "newton.cuh"

#if WIDE > 1
typedef unsigned long long Tokens;  // a set of tokens
#else
typedef unsigned Tokens;
#endif
typedef unsigned long long Marks;  // a set of cuts

__device__ __forceinline__ bool has(Marks set, int i) { return set >> i & 1; }
__device__ __forceinline__ bool has(unsigned set, int i) { return set >> i & 1; }
__device__ __forceinline__ int lowest(Marks set) { return __ffsll(static_cast<long long>(set)) - 1; }
__device__ __forceinline__ int lowest(unsigned set) { return __ffs(static_cast<int>(set)) - 1; }
__device__ __forceinline__ int size_of(Tokens set) { return __popcll(set); }
__device__ __forceinline__ Tokens only(int t) { return Tokens(1) << t; }

#define PARTS 2  // of the search for cuts that a player violates

struct Found {  // by each part: cuts that the players' strategies violate, and how much any that it saw may lack to 1
    Tokens sets[2][PARTS][32 * WIDE / PARTS];
    int count[2][PARTS];
    double lack[2][PARTS];
    __device__ double lacking(int player) const { return most(lack[player][0], lack[player][1]); }
};

struct Cuts {
    static constexpr int EACH = 2;
    int n, space, count, equal;  // tokens; cuts that there is space for, up to two for each lane; that there are
    Tokens all;                  // all tokens
    Marks entering;              // the cuts in the first form
    Tokens* sets;                // (space)
    Marks* holding;              // (n) the cuts that have a token in their set
    Tokens* counted;             // (n) the arcs of a token's row that any cut counts
    Pair* rows;                  // (warps, n)
    Found* found;
    double missing;  // what a cut may lack at the end
    bool lost;       // whether the path has come close to an end that cuts forbid

    // The arcs of row d that cut k counts.
    __device__ Tokens arcs(int k, int d) const {
        if (!has(holding[d], k)) return 0;
        Tokens inside = sets[k] & ~only(d);
        return has(entering, k) ? all & ~inside : inside;
    }
    // Of two cuts the one whose arcs, in the rows of both, are all that both count; -1 where neither is.
    __device__ int narrower(int i, int j) const {
        const Tokens both = sets[i] & sets[j];
        const bool enters = has(entering, i);
        if (enters != has(entering, j) || (both != sets[i] && both != sets[j])) return -1;
        return (both == sets[i]) == enters ? j : i;
    }
    __device__ double sign(int k) const { return has(entering, k) ? 1.0 : -1.0; }
    __device__ double limit(int k) const { return has(entering, k) ? 1.0 : 1.0 - size_of(sets[k]); }
    __device__ Pair price(const Pair* lam, int d, int t) const {
        Marks of_head = d == t ? 0 : holding[t];
        Pair total = {0.0, 0.0};
        for (Marks left = holding[d] & (of_head ^ entering); left; left &= left - 1) {
            int k = lowest(left);
            total += sign(k) * lam[k];
        }
        return total;
    }
    __device__ void add_row(int d, const Pair (&x)[WIDE], Pair (&sums)[EACH]) const;
    __device__ void add(Tokens set);
    __device__ void add_entries(const Path& c) const;
    __device__ void couple_rows(const Path& c) const;
    __device__ void assemble(const Path& c) const;
    __device__ bool grow(const Path& c, double nu, int turn);
};

__device__ inline void Cuts::add_row(int d, const Pair (&x)[WIDE], Pair (&sums)[EACH]) const {
    const int lane = threadIdx.x % 32;
    Pair* row = rows + threadIdx.x / 32 * n;
    if (!holding[d]) return;
    EACH_ENTRY(e, t, n) row[t] = x[e];
    __syncwarp();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (32 * e >= count) break;
        int k = lane + 32 * e;
        Tokens own = k < count ? arcs(k, d) : 0;
        Pair total = {0.0, 0.0};
        for (Tokens left = counted[d]; left; left &= left - 1)
            if (has(own, lowest(left))) total += row[lowest(left)];
        if (own) sums[e] += sign(k) * total;
    }
    __syncwarp();
}

// Take another cut, unless it is known or there is no room; all threads of the block together.
__device__ inline void Cuts::add(Tokens set) {
    bool known = count == space;
    for (int k = 0; k < count; k++) known = known || sets[k] == set;
    __syncthreads();
    if (known) return;
    bool outside = 2 * (size_of(set) - 1) > n;
    if (threadIdx.x == 0) sets[count] = set;
    for (int d = threadIdx.x; d < n; d += blockDim.x)
        if (has(set, d)) {
            holding[d] |= Marks(1) << count;
            counted[d] |= outside ? all & ~set | only(d) : set & ~only(d);
        }
    if (outside) entering |= Marks(1) << count;
    count++;
    __syncthreads();
}

// The blocks of the entries that two cuts share, unless they are those of one of them, whose sums by rows will be at
// hand: a warp takes a pair of cuts, its lanes the tokens.
__device__ inline void Cuts::add_entries(const Path& c) const {
    EACH_ROW(at, place(count, 0)) {
        const Spot pair = spot(at);
        const Tokens both = sets[pair.i] & sets[pair.j];
        Block total = {0.0, 0.0, 0.0};
        if (both && narrower(pair.i, pair.j) < 0) {
            EACH_ENTRY(e, d, n) if (has(both, d)) {
                for (Tokens left = arcs(pair.i, d) & arcs(pair.j, d); left; left &= left - 1)
                    total += block_of(c, d, lowest(left));
            }
            total = sign(pair.i) * sign(pair.j) * warp_sum(total);
        }
        if (threadIdx.x % 32 == 0) c.system[at] = coupling(total);
    }
}

// What couples a row to the cuts, in the place of the blocks of its entries.
__device__ inline void Cuts::couple_rows(const Path& c) const {
    const int lane = threadIdx.x % 32;
    EACH_ROW(d, n) {
        Block total[EACH] = {};
        for (int e = 0; e < EACH && 32 * e < count; e++) {
            const int k = lane + 32 * e;
            const Tokens own = k < count ? arcs(k, d) : 0;
            for (Tokens left = counted[d]; left; left &= left - 1)
                if (has(own, lowest(left))) total[e] += block_of(c, d, lowest(left));
            total[e] = sign(k) * total[e];
        }
        __syncwarp();
        for (int e = 0; e < EACH; e++)
            if (lane + 32 * e < count) reinterpret_cast<Block*>(c.blocks(d))[lane + 32 * e] = total[e];
    }
}

__device__ inline void Cuts::assemble(const Path& c) const {
    add_entries(c);
    __syncthreads();
    couple_rows(c);
    __syncthreads();
    EACH_ROW(at, place(count, 0)) {
        const Spot pair = spot(at);
        const Tokens both = sets[pair.i] & sets[pair.j];
        if (!both) continue;
        const int inner = narrower(pair.i, pair.j);
        // Near a vertex the difference is all rounding: as much again keeps the system regular and its step small.
        const double more = pair.i == pair.j ? 1.0 + 1e-15 : 1.0;
        Coupling total = {0.0, 0.0, 0.0, 0.0};
        EACH_ENTRY(e, d, n) if (has(both, d)) {
            const Block* own = reinterpret_cast<const Block*>(c.blocks(d));
            if (inner >= 0) {
                Block shared = sign(inner) * own[inner];
                total += coupling({more * shared.u, shared.w, more * shared.v});
            }
            total -= through(coupling(own[pair.i]), c.row[d], coupling(own[pair.j]));
        }
        total = warp_sum(total);
        if (threadIdx.x % 32 == 0) c.system[at] += total;
    }
}
