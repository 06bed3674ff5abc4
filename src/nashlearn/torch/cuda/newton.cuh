// Newton's step of the interior point method (interior.cuh), by elimination: entries by 2 x 2 blocks, then rows, then
// the dense system of the constraints, which is factored once for the predictor and the corrector.
//
// A warp takes a row, its lanes the entries of it, WIDE each. What a polytope knows of its constraints a_k x >= b_k:
//     EACH                 how many constraints a lane adds up
//     count, equal         the number of constraints, the first of which are equalities
//     limit(k)             b_k
//     price(lam, i, j)     (a' lam)_ij
//     add_row(i, x, sums)  add row i of a_k x to the sums of the lane's constraints k = lane, lane + 32, ...
//     assemble(path)       the system of the constraints, from the blocks of entries and rows
//     grow(path, nu, turn) add constraints that the strategies violate; whether there were any
//     lost                 whether that left the path no way to go on
#pragma once

#include "pairs.cuh"

// Rows are dealt out to the warps. Their bodies are long and not copied: instructions have to fit a cache.
#define EACH_ROW(i, n) _Pragma("unroll 1") for (int i = threadIdx.x / 32; i < (n); i += blockDim.x / 32)
// The entries j of a row that are the lane's own, each with its number e.
#define EACH_ENTRY(e, j, n) \
    _Pragma("unroll") for (int e = 0; e < WIDE; e++) if (const int j = threadIdx.x % 32 + 32 * e; j < (n))

struct Path {  // where the method is, and what it works with
    int n, stride;
    double mu;
    Pair *x, *z;              // (n, n) strategies and multipliers
    double* scratch;          // (n, stride) blocks of the entries; after the elimination two matrices of pairs
    Pair *y, *miss;           // (n) the step of the rows' potentials, and what rows sum to beyond 1
    Block* row;               // (n) inverse blocks of the rows
    Pair *lam, *dlam, *over;  // (count) potentials of constraints, their step, and a x - b - slack
    Pair *slack, *dslack;     // (count) and its step; before that what its complementarity lacks
    Coupling* system;         // (count (count + 1) / 2)
    Block* pivot;             // (count)
    Pair* part;               // (warps, count)
    Total* room;              // (warps)

    __device__ Pair* dx() const { return reinterpret_cast<Pair*>(scratch); }
    __device__ Pair* dz() const { return dx() + n * n; }  // before that what the complementarity of entries lacks
    __device__ double* blocks(int i) const { return scratch + i * stride; }  // of row i: all u, all w, all v
};

struct Entry {  // the inverse [[u, w], [-w, v]] of an entry's block [[z_p / p, -1], [1, mu + z_q / q]]
    Pair x, z;
    double weight, scale;

    __device__ Entry() {}
    __device__ Entry(const Path& c, int at) : x(c.x[at]), z(c.z[at]) {
        weight = c.mu * x.q + z.q;
        scale = 1.0 / (z.p * weight + x.p * x.q);
    }
    __device__ Block block() const { return scale * Block{x.p * weight, x.p * x.q, z.p * x.q}; }
    // The inverse times lack / x, without a division.
    __device__ Pair times(Pair lack) const {
        return {scale * (weight * lack.p + x.p * lack.q), scale * (z.p * lack.q - x.q * lack.p)};
    }
};

// The block of entry (i, j), where it is kept.
__device__ __forceinline__ Block block_of(const Path& c, int i, int j) {
    const double* own = c.blocks(i) + j;
    return {own[0], own[c.n], own[2 * c.n]};
}

// The sums of all constraints from those of the lanes of each warp: thread k returns that of constraint k.
template <int EACH>
__device__ Pair collected(const Path& c, const Pair (&sums)[EACH], int count) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, k = threadIdx.x;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (lane + 32 * e < count) c.part[warp * count + lane + 32 * e] = sums[e];
    __syncthreads();
    Pair total = {0.0, 0.0};
    if (k < count)
#pragma unroll 1
        for (int i = 0; i < warps; i++) total += c.part[i * count + k];
    return total;
}

// Eliminate entries, rows and constraints.
template <class Polytope>
__device__ void factor(const Path& c, const Polytope& polytope) {
    const int k = threadIdx.x;
    EACH_ROW(i, c.n) {
        Block total = {0.0, 0.0, 0.0};
        double* own = c.blocks(i);
        EACH_ENTRY(e, j, c.n) {
            Block one = Entry(c, i * c.n + j).block();
            own[j] = one.u;
            own[c.n + j] = one.w;
            own[2 * c.n + j] = one.v;
            total += one;
        }
        total = inverse(warp_sum(total));
        if (threadIdx.x % 32 == 0) c.row[i] = total;
    }
    __syncthreads();
    polytope.assemble(c);
    __syncthreads();
    if (polytope.equal <= k && k < polytope.count) {
        c.system[place(k, k)].a += c.slack[k].p / c.lam[k].p;
        c.system[place(k, k)].c += c.slack[k].q / c.lam[k].q;
    }
    eliminate(c.system, c.pivot, polytope.count);
}

// The first half of a direction: what entries would do by themselves, then rows; and the constraints' potentials.
// The predictor removes all complementarity, the corrector leaves as much as `centre`.
template <class Polytope>
__device__ void gather(const Path& c, const Polytope& polytope, bool corrector, double centre) {
    const int k = threadIdx.x;
    const Pair kept = {centre, centre};
    Pair sums[Polytope::EACH] = {};
    EACH_ROW(i, c.n) {
        Pair own[WIDE] = {}, total = {0.0, 0.0};
        Block block[WIDE] = {};
        EACH_ENTRY(e, j, c.n) {
            Entry entry(c, i * c.n + j);
            own[e] = entry.times(corrector ? kept + c.dz()[i * c.n + j] : -1.0 * (entry.x * entry.z));
            block[e] = entry.block();
            total += own[e];
        }
        Pair y = c.row[i] * (-1.0 * (c.miss[i] + warp_sum(total)));
        if (threadIdx.x % 32 == 0) c.y[i] = y;
        EACH_ENTRY(e, j, c.n) own[e] += block[e] * y;
        polytope.add_row(i, own, sums);
    }
    Pair right = -1.0 * collected(c, sums, polytope.count);
    if (k < polytope.count) {
        right -= c.over[k];
        if (k >= polytope.equal) {
            Pair lam = c.lam[k], lack = corrector ? kept + c.dslack[k] : -1.0 * (lam * c.slack[k]);
            c.dslack[k] = lack;
            right += Pair{lack.p / lam.p, lack.q / lam.q};
        }
        c.dlam[k] = right;
    }
    __syncthreads();
    if (threadIdx.x < 32) substitute<Polytope::EACH>(c.system, c.pivot, polytope.count, c.dlam);
    __syncthreads();
}

// The larger of `back` and -dx / x; of the many divisions few are needed.
__device__ __forceinline__ void fall(double& back, Pair x, Pair dx) {
    if (-dx.p > back * x.p) back = -dx.p / x.p;
    if (-dx.q > back * x.q) back = -dx.q / x.q;
}

// The second half: back from the constraints to rows, entries, multipliers and slacks. The predictor leaves what
// complementarity will lack, with so much of its products' `second` order; the corrector leaves the step itself.
// The sum of all products dx dz, and how fast the direction comes to the boundary.
template <class Polytope>
__device__ Total spread(const Path& c, const Polytope& polytope, bool corrector, double centre, double second) {
    const int k = threadIdx.x;
    const Pair kept = {centre, centre};
    double back = 0.0, product = 0.0;
    EACH_ROW(i, c.n) {
        Pair price[WIDE], paid = {0.0, 0.0};
        Entry entry[WIDE];
        EACH_ENTRY(e, j, c.n) {
            entry[e] = Entry(c, i * c.n + j);
            price[e] = polytope.price(c.dlam, i, j);
            paid += entry[e].block() * price[e];
        }
        Pair y = c.y[i] - c.row[i] * warp_sum(paid);
        EACH_ENTRY(e, j, c.n) {
            const int at = i * c.n + j;
            Pair x = entry[e].x, z = entry[e].z, both = y + price[e];
            Pair lack = corrector ? kept + c.dz()[at] : -1.0 * (x * z), dx = entry[e].times(lack + x * both);
            Pair dz = Pair{-dx.q, c.mu * dx.q + dx.p} - both;
            fall(back, x, dx);
            fall(back, z, dz);
            product += dx.p * dz.p + dx.q * dz.q;
            c.dx()[at] = dx;
            c.dz()[at] = corrector ? dz : lack - second * (dx * dz);
        }
    }
    if (polytope.equal <= k && k < polytope.count) {
        Pair lam = c.lam[k], slack = c.slack[k], lack = c.dslack[k], dlam = c.dlam[k], rest = lack - slack * dlam;
        Pair dslack = {rest.p / lam.p, rest.q / lam.q};
        fall(back, lam, dlam);
        fall(back, slack, dslack);
        product += dlam.p * dslack.p + dlam.q * dslack.q;
        c.dslack[k] = corrector ? dslack : lack - second * (dlam * dslack);
    }
    return block_total(product, back, c.room);
}

// Go so far; a negative length takes it back.
template <class Polytope>
__device__ void move(const Path& c, const Polytope& polytope, double length) {
    const int k = threadIdx.x;
    EACH_ROW(i, c.n) EACH_ENTRY(e, j, c.n) {
        c.x[i * c.n + j] += length * c.dx()[i * c.n + j];
        c.z[i * c.n + j] += length * c.dz()[i * c.n + j];
    }
    if (k < polytope.count) {
        c.lam[k] += length * c.dlam[k];
        if (k >= polytope.equal) c.slack[k] += length * c.dslack[k];
    }
    __syncthreads();
}
