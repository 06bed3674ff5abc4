// The game of a cost matrix by the simplex method of nashlearn.torch.pivots: a table of labels by options, of which a
// lane holds the rows of its labels in registers, and exchanges of one option and one label at a time.
#include "rows.cuh"

#define CERTIFIED 1e-6  // the largest gap that a row may leave, where costs are at most 1
#ifndef STEPS
#define STEPS (20 * (K + M))  // exchanges at most
#endif
#define GOLDEN 0.6180339887498949

// The numbers of a table: of float32 where that is what scores are. A row that this leaves a gap is solved again in
// float64. `tiny` is what counts as 0 in a table whose entries begin between 1 and 4, `tilt` how far right-hand sides
// are moved, so that ties cannot make the method cycle.
#if SINGLE
typedef float Real;
typedef int Bits;
const Real tiny = 4e-6f, tilt = 1e-5f;
__device__ __forceinline__ Bits bits_of(Real x) { return __float_as_int(x); }
__device__ __forceinline__ Real of_bits(Bits x) { return __int_as_float(x); }
#else
typedef double Real;
typedef long long Bits;
const Real tiny = 1e-9, tilt = 1e-11;
__device__ __forceinline__ Bits bits_of(Real x) { return __double_as_longlong(x); }
__device__ __forceinline__ Real of_bits(Bits x) { return __longlong_as_double(x); }
#endif

// The bits of x if that is wanted. A choice among registers by `?:` would be compiled into one of addresses, and with it
// the table would leave the registers.
__device__ __forceinline__ Bits only(bool wanted, Real x) { return bits_of(x) & -Bits(wanted); }

// The least share / pivot of a group, and whose it is; a pivot of 0 is none. Ties go to the first label.
__device__ __forceinline__ void least_ratio(Real& share, Real& pivot, int& leave) {
    auto compare = [&](Real its_share, Real its_pivot, int its_leave) {
        Real mine = share * its_pivot, its = its_share * pivot;
        if (its < mine || (its == mine && its_leave < leave)) {
            share = its_share;
            pivot = its_pivot;
            leave = its_leave;
        }
    };
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        compare(__shfl_xor_sync(FULL, share, step), __shfl_xor_sync(FULL, pivot, step),
                __shfl_xor_sync(FULL, leave, step));
#if G > 32
    __shared__ Real shares[G / 32], pivots[G / 32];
    __shared__ int leaves[G / 32];
    int warp = threadIdx.x / 32;
    shares[warp] = share;
    pivots[warp] = pivot;
    leaves[warp] = leave;
    __syncthreads();
#pragma unroll
    for (int other = 0; other < G / 32; other++) compare(shares[other], pivots[other], leaves[other]);
    __syncthreads();
#endif
}

// The entries of slot `slot` of lane `from`, one after the other, in all lanes of the group.
struct Row {
    int slot, from;
    double* room;  // shared memory, where lanes are of several warps

    __device__ __forceinline__ void send(const Real (*T)[M], int lane) const {
#if G > 32
        if (lane == from)
#pragma unroll
            for (int i = 0; i < M; i++) room[i] = T[0][i];  // a lane has one label
        __syncthreads();
#endif
    }

    __device__ __forceinline__ Real entry(const Real (*T)[M], int i) const {
#if G > 32
        return Real(room[i]);
#else
        Bits bits = 0;
#pragma unroll
        for (int a = 0; a < LABELS; a++) bits |= only(a == slot, T[a][i]);
        return __shfl_sync(FULL, of_bits(bits), from, G);
#endif
    }
};

// What a group keeps in shared memory beside its strategies: a row, whose row and whose column is whose: option i, or
// M + j for label j.
struct Owners {
    double* row;
    int *basic, *held;
};

struct Table {
    Real T[LABELS][M], right[LABELS];
    Real gain[M];  // this and all below are the same in all lanes of a group
    Set options, labels, labelled;  // options that have a row, labels that have a column, and their columns

    // A = L' + base, where `base` are the rewards of labels, cut off where none can gain, and made positive.
    __device__ __forceinline__ void begin(const Real* L, const double* base, int lane, Owners s) {
#pragma unroll
        for (int a = 0; a < LABELS; a++) {
            int j = a * G + lane;
#pragma unroll
            for (int i = 0; i < M; i++) T[a][i] = j < K ? L[i * K + j] + Real(base[a]) : Real(0);
            double turn = (j + 1) * GOLDEN;
            right[a] = Real(1) + tilt * Real(turn - floor(turn));
            if (j < K) s.basic[j] = M + j;
        }
#pragma unroll
        for (int i = 0; i < M; i++) gain[i] = Real(1);
        for (int i = lane; i < M; i += G) s.held[i] = i;
        options = labels = labelled = 0;
        row_sync();
    }

    // The option that gains most.
    __device__ __forceinline__ void choose(int& enter, Real& most) const {
        enter = 0;
        most = gain[0];
#pragma unroll
        for (int i = 1; i < M; i++)
            if (gain[i] > most) {
                most = gain[i];
                enter = i;
            }
    }

    // Exchange the option `enter` with the label whose right-hand side runs out first; nothing if not `moving`.
    __device__ __forceinline__ void exchange(int enter, Real most, bool moving, int lane, Owners s) {
        Real column[LABELS], pivot = Real(0), share = Real(1);  // share / pivot is the least ratio so far
        int leave = K;
#pragma unroll
        for (int a = 0; a < LABELS; a++) {
            Bits bits = 0;
#pragma unroll
            for (int i = 0; i < M; i++) bits |= only(i == enter, T[a][i]);
            column[a] = of_bits(bits);
            if (column[a] > tiny && right[a] * pivot < share * column[a]) {
                share = right[a];
                pivot = column[a];
                leave = a * G + lane;
            }
        }
        least_ratio(share, pivot, leave);
        moving = moving && leave < K;
        leave = min(leave, K - 1);
        Real inverse = moving ? Real(1) / pivot : Real(0), ratio = share * inverse;
        int option = s.held[enter], label = s.basic[leave];
        Row row{leave / G, leave % G, s.row};
        row.send(T, lane);
        // With these two entries one product exchanges row and column as it updates all others.
#pragma unroll
        for (int a = 0; a < LABELS; a++) {
            column[a] = a * G + lane == leave ? pivot - Real(1) : column[a];
            right[a] -= column[a] * ratio;
        }
#pragma unroll
        for (int i = 0; i < M; i++) {
            Real entry = row.entry(T, i);
            entry = (i == enter ? pivot + Real(1) : entry) * inverse;
            gain[i] -= entry * most;
#pragma unroll
            for (int a = 0; a < LABELS; a++) T[a][i] -= column[a] * entry;
        }
        row_sync();
        if (!moving) return;
        if (lane == 0) {
            s.held[enter] = label;
            s.basic[leave] = option;
        }
        (option < M ? options : labels) ^= ONE(option < M ? option : option - M);
        (label < M ? options : labels) ^= ONE(label < M ? label : label - M);
        labelled = (labelled & ~ONE(enter)) | Set(label >= M) << enter;
    }

    // Add to u (options) and x (labels) what their equations A u = 1 and A' x = 1 lack: the table is the inverse of A
    // for the options and labels that were exchanged. From 0, with 1 lacking, that is the solution of the table, and
    // once more it has the digits of float64.
    __device__ __forceinline__ void correct(
        const double* lack_u, const double* lack_x, int lane, Owners s, double* u, double* x) const {
        Real missing[M];
#pragma unroll
        for (int i = 0; i < M; i++) missing[i] = labelled & ONE(i) ? Real(lack_u[s.held[i] - M]) : Real(0);
        Real given[LABELS];
#pragma unroll
        for (int a = 0; a < LABELS; a++) {
            int whose = a * G + lane < K ? s.basic[a * G + lane] : M;
            given[a] = whose < M ? Real(lack_x[whose]) : Real(0);
            Real whole = Real(0);
#pragma unroll
            for (int i = 0; i < M; i++) whole += T[a][i] * missing[i];
            if (whose < M) u[whose] += whole;
        }
#pragma unroll
        for (int i = 0; i < M; i++) {
            Real whole = Real(0);
#pragma unroll
            for (int a = 0; a < LABELS; a++) whole += T[a][i] * given[a];
            double all = row_sum(double(whole));
            if (lane == i % G && labelled & ONE(i)) x[s.held[i] - M] += all;
        }
        row_sync();
    }
};

// What both players secure, from A u and A' x over the sums of u and x, which are then clipped at 0 and normalised; what
// the equations of those that play lack goes to `lack_u` (labels) and `lack_x` (options).
__device__ Found secured(const Table& table, const double* L, const double* base, int lane, double* u, double* x,
                         double* lack_u, double* lack_x) {
    double load[LABELS] = {}, earned[OPTIONS] = {}, sum_u = 0.0, sum_x = 0.0, paid = 0.0, most = LOWEST, least = -LOWEST;
    int i, j;
    FOR_EACH(i, table.options) {
        double own = max(u[i], 0.0);
        sum_u += own;
#pragma unroll
        for (int a = 0; a < LABELS; a++) load[a] += own * L[i * K + min(a * G + lane, K - 1)];
    }
    FOR_EACH(j, table.labels) {
        double own = max(x[j], 0.0);
        sum_x += own;
#pragma unroll
        for (int c = 0; c < OPTIONS; c++) earned[c] += own * L[min(c * G + lane, M - 1) * K + j];
    }
#pragma unroll
    for (int a = 0; a < LABELS; a++) {
        if (a * G + lane >= K) continue;
        load[a] += base[a] * sum_u;
        most = max(most, load[a]);
        paid += base[a] * max(x[a * G + lane], 0.0);
        lack_u[a * G + lane] = 1.0 - load[a];
    }
    paid = row_sum(paid);
#pragma unroll
    for (int c = 0; c < OPTIONS; c++) {
        if (c * G + lane >= M) continue;
        least = min(least, earned[c] + paid);
        lack_x[c * G + lane] = 1.0 - (earned[c] + paid);
    }
    double upper = row_max(most) / sum_u, lower = -row_max(-least) / sum_x;
    return Found{lower - 3.0, upper - lower <= CERTIFIED};
}

// The cheapest option for the best label: as all options gain the same at first, the method would begin with any.
__device__ __forceinline__ int begin_with(const double* L, const double* reward, int lane) {
    double best = LOWEST;
#pragma unroll
    for (int a = 0; a < LABELS; a++)
        if (a * G + lane < K && reward[a] == 0.0) best = max(best, -double(a * G + lane));  // the first of them
    int label = -int(row_max(best)), found = 0;
    for (int i = 1; i < M; i++) found = L[i * K + label] < L[found * K + label] ? i : found;
    return found;
}

// Clip at 0 and divide by the sum.
__device__ __forceinline__ void normalise(double* x, int size, int lane) {
    double whole = 0.0;
    for (int i = lane; i < size; i += G) whole += x[i] = max(x[i], 0.0);
    whole = 1.0 / row_sum(whole);
    for (int i = lane; i < size; i += G) x[i] *= whole;
}

struct Exchanges {
    static const int ROOM = 2 * M + K + (M + K + 1) / 2;  // beside both strategies

    __device__ __forceinline__ Found operator()(
        const double* L, double unit, const double* reward, int lane, double* p, double* q) const {
        double *lack_u = q + K, *lack_x = lack_u + K, base[LABELS];
        int* held = reinterpret_cast<int*>(lack_x + 2 * M);
        Owners s{lack_x + M, held + M, held};
#pragma unroll
        for (int a = 0; a < LABELS; a++) base[a] = max(reward[a], -2.0) + 3.0;
        Table table;
#if SINGLE
        table.begin(narrow(L), base, lane, s);
#else
        table.begin(L, base, lane, s);
#endif
        int enter = begin_with(L, reward, lane);
        Real most = Real(1);
#pragma unroll 1
        for (int step = 0; step < STEPS; step++) {
            bool moving = most > tiny;
            if (!row_any(moving)) break;
            table.exchange(enter, most, moving, lane, s);
            table.choose(enter, most);
        }
        for (int i = lane; i < M; i += G) {
            p[i] = 0.0;
            lack_x[i] = 1.0;
        }
        for (int j = lane; j < K; j += G) {
            q[j] = 0.0;
            lack_u[j] = 1.0;
        }
        row_sync();
        table.correct(lack_u, lack_x, lane, s, p, q);
        Found found = secured(table, L, base, lane, p, q, lack_u, lack_x);
#if SINGLE
        row_sync();
        table.correct(lack_u, lack_x, lane, s, p, q);
        found = secured(table, L, base, lane, p, q, lack_u, lack_x);
#endif
        row_sync();
        normalise(p, M, lane);
        normalise(q, K, lane);
        row_sync();
        return found;
    }
};

ENTRY(exact, Exchanges())
