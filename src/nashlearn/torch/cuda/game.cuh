// What the kernels of structured games have in common: their memory, and what they write.
#pragma once

#include "interior.cuh"

#if SINGLE
typedef float real;
#else
typedef double real;
#endif

// Shared memory, taken piece by piece; pieces are aligned to 16 bytes.
struct Shelf {
    double* at;

    template <class T>
    __device__ T* take(int count) {
        T* piece = reinterpret_cast<T*>(at);
        at += (count * sizeof(T) + 15) / 16 * 2;
        return piece;
    }
};

// A path for games of n elements and up to `most` constraints. Strategies and multipliers lie in `state` (4 n^2), or in
// shared memory without one.
__device__ inline Path laid_out(Shelf& shelf, double* state, int n, int most, double mu) {
    const int warps = blockDim.x / 32;
    Path c;
    c.n = n;
    c.mu = mu;
    c.stride = max(4 * n, 3 * most);
    c.scratch = shelf.take<double>(n * c.stride);
    c.x = state ? reinterpret_cast<Pair*>(state) : shelf.take<Pair>(2 * n * n);
    c.z = c.x + n * n;
    c.y = shelf.take<Pair>(2 * n);
    c.miss = c.y + n;
    c.row = shelf.take<Block>(n);
    c.lam = shelf.take<Pair>(5 * most);
    c.dlam = c.lam + most;
    c.over = c.lam + 2 * most;
    c.slack = c.lam + 3 * most;
    c.dslack = c.lam + 4 * most;
    c.system = shelf.take<Coupling>(place(most, 0));
    c.pivot = shelf.take<Block>(most);
    c.part = shelf.take<Pair>(warps * most);
    c.room = shelf.take<Total>(warps);
    return c;
}

struct Answer {  // where to write what one game gives
    real *loss, *change, *reply;
    double* gap;
    unsigned char* solved;
};

// Write strategies x, the loss and the gap of bounds. The truth's entry of row i is truth(i), and reward.at(i, j) the
// place of an entry in an array of the shape of the scores.
template <class Rewards, class Truth>
__device__ void report(
    const Path& c, const Answer& to, const Rewards& reward, const Truth& truth, const Pair* x, Bounds bounds,
    bool solved
) {
    double missed = 0.0;
    EACH_ROW(i, c.n) {
        int chosen = truth(i);
        EACH_ENTRY(e, j, c.n) {
            Pair own = x[i * c.n + j];
            to.reply[reward.at(i, j)] = static_cast<real>(own.p);
            to.change[reward.at(i, j)] = static_cast<real>(j == chosen ? own.q - 1.0 : own.q);
            if (j == chosen) missed += reward.score(i, j);
        }
    }
    missed = block_total(missed, 0.0, c.room).sum;
    if (threadIdx.x == 0) {
        *to.loss = static_cast<real>(bounds.lower - missed);
        *to.gap = fmax(bounds.upper - bounds.lower, 0.0);
        *to.solved = solved;
    }
}
