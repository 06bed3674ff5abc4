// The tempered game of a cost matrix by Newton's method on few options, as in nashlearn.torch.tempered_costs: what is
// minimised over the options' probabilities p is phi(p) = mu log sum exp((f + L' p) / mu), whose gradient is L q. A row
// works on the options that it plays and on the cheapest one. A step goes along Newton's direction of these, no further
// than where an option is no longer played, which is then left out. The gap is <p, L q> - min L q.
#include "rows.cuh"

#define CERTIFIED 1e-6  // the largest gap that a row may leave, where costs are at most 1
#define RIDGE 1e-12     // curvature that is added, of its largest entry and at least: options may be alike
#ifndef STEPS
#define STEPS (20 + 10 * M)  // of Newton's method at most
#endif
#define TRIALS 24       // of how far to go
#define NEGLIGIBLE 1e-15

// What a group keeps in shared memory: strategies, costs of the options under q, a direction, Newton's equations and
// whose they are.
struct Scratch {
    double *p, *q, *cost, *d, *x, *H;
    int* which;
};

// sum exp((reward - top) / mu), of which q is the shares.
struct Reply {
    double top, total;

    __device__ double value(double mu) const { return top + mu * log(total); }
};

struct Newton {
    static const int ROOM = 4 * M + M * (M - 1) / 2;  // beside both strategies
    double smoothing;

    __device__ Found operator()(const double* L, double unit, const double* f, int lane, double* p, double* q) const;
};

// The largest x of a warp.
__device__ __forceinline__ int warp_max(int x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x = max(x, __shfl_xor_sync(FULL, x, step));
    return x;
}

// The smallest of x over a group, and which number i had it: the least of those that do.
__device__ __forceinline__ void group_least(double& x, int& i) {
#pragma unroll
    for (int step = G / 2; step > 0; step /= 2) {
        double other = __shfl_xor_sync(FULL, x, step);
        int whose = __shfl_xor_sync(FULL, i, step);
        bool less = other < x || (other == x && whose < i);
        x = less ? other : x;
        i = less ? whose : i;
    }
}

// q = softmax(reward / mu); `cold` is 1 / mu.
__device__ Reply respond(const double* reward, double cold, int lane, double* q) {
    double top = LOWEST, share[LABELS], total = 0.0;
#pragma unroll
    for (int a = 0; a < LABELS; a++) top = max(top, reward[a]);
    top = row_max(top);
#pragma unroll
    for (int a = 0; a < LABELS; a++) total += share[a] = a * G + lane < K ? exp((reward[a] - top) * cold) : 0.0;
    total = row_sum(total);
    double whole = 1.0 / total;
#pragma unroll
    for (int a = 0; a < LABELS; a++)
        if (a * G + lane < K) q[a * G + lane] = share[a] * whole;
    return Reply{top, total};
}

// Costs L q of all options; the least of them, and whose it is.
__device__ double price(const double* L, int lane, const Scratch& s, int& cheapest) {
    double least = -LOWEST;
    cheapest = M;
    row_sync();
#if K <= 16  // in registers, for all options
    double q[K];
#pragma unroll
    for (int j = 0; j < K; j++) q[j] = s.q[j];
#else
    const double* q = s.q;
#endif
#pragma unroll
    for (int c = 0; c < OPTIONS; c++) {
        int i = c * G + lane;
        if (i >= M) continue;
        double cost = 0.0;
#pragma unroll 16
        for (int j = 0; j < K; j++) cost += L[i * K + j] * q[j];
        s.cost[i] = cost;
        if (cost < least) {
            least = cost;
            cheapest = i;
        }
    }
    group_least(least, cheapest);
    row_sync();
    return least;
}

// reward + L' of the weights of a set of options.
__device__ void add(const double* L, Set set, const double* weights, int lane, double* reward) {
    int i;
    FOR_EACH(i, set) {
        double weight = weights[i];
#pragma unroll
        for (int a = 0; a < LABELS; a++)
            if (a * G + lane < K) reward[a] += weight * L[i * K + a * G + lane];
    }
}

// Solve H x = right by Cholesky's method without roots; H is packed by rows and lost. `longest` is the warp's.
__device__ void solve(int size, int longest, int lane, double* H, double* x) {
    for (int c = 0; c < longest; c++) {
        double inverse = c < size ? 1.0 / H[c * (c + 1) / 2 + c] : 0.0, entry = c < size ? x[c] : 0.0;
        for (int r = c + 1 + lane; r < size; r += G) {
            double* row = H + r * (r + 1) / 2;
            double share = row[c] * inverse;
            for (int b = c + 1; b <= r; b++) row[b] -= share * H[b * (b + 1) / 2 + c];
            x[r] -= share * entry;
        }
        row_sync();
        if (lane == 0 && c < size) H[c * (c + 1) / 2 + c] = inverse;
    }
    row_sync();
    for (int r = longest - 1; r >= 0; r--) {
        double* row = H + r * (r + 1) / 2;
        double entry = r < size ? x[r] * row[r] : 0.0;
        row_sync();
        if (r < size) {
            for (int c = lane; c < r; c += G) x[c] -= row[c] * entry;
            if (lane == 0) x[r] = entry;
        }
        row_sync();
    }
}

// What lies between the options at work and the heaviest of them, for the lane's labels; q / mu beside it.
struct Apart {
    const double *L, *base;
    double q[LABELS];
    int lane;

    __device__ __forceinline__ Apart(const double* L, int heaviest, double cold, int lane, const double* shares)
        : L(L), base(L + heaviest * K), lane(lane) {
#pragma unroll
        for (int a = 0; a < LABELS; a++) q[a] = a * G + lane < K ? shares[a * G + lane] * cold : 0.0;
    }

    __device__ __forceinline__ double operator()(int option, int a) const {
        int j = min(a * G + lane, K - 1);
        return L[option * K + j] - base[j];
    }
};

// Newton's equations of up to three options, in registers: x with H x = -slope for the curvature H of phi.
__device__ __forceinline__ void solve_few(
    const int* one, const double* slope, double cold, const Apart& apart, double* x) {
    double A[3][LABELS], H[3][3], ridge = 0.0;
#pragma unroll
    for (int r = 0; r < 3; r++) {
#pragma unroll
        for (int a = 0; a < LABELS; a++) A[r][a] = apart(one[r], a);
#pragma unroll
        for (int c = 0; c <= r; c++) {
            double both = 0.0;
#pragma unroll
            for (int a = 0; a < LABELS; a++) both += apart.q[a] * A[r][a] * A[c][a];
            H[r][c] = row_sum(both) - slope[r] * slope[c] * cold;
        }
        ridge = max(ridge, H[r][r]);
    }
    ridge = RIDGE * (1.0 + ridge);
#pragma unroll
    for (int r = 0; r < 3; r++) {
        x[r] = -slope[r];
        H[r][r] = max(H[r][r], 0.0) + ridge;
    }
    double first = 1.0 / H[0][0], l10 = H[1][0] * first, l20 = H[2][0] * first;
    double second = 1.0 / max(H[1][1] - l10 * H[1][0], ridge), rest = H[2][1] - l20 * H[1][0], l21 = rest * second;
    double third = 1.0 / max(H[2][2] - l20 * H[2][0] - l21 * rest, ridge);
    x[1] -= l10 * x[0];
    x[2] = (x[2] - l20 * x[0] - l21 * x[1]) * third;
    x[1] = x[1] * second - l21 * x[2];
    x[0] = x[0] * first - l10 * x[1] - l20 * x[2];
}

// The same for any number of options, in shared memory.
__device__ __forceinline__ void solve_many(
    int size, int longest, int heaviest, double cold, int lane, const Apart& apart, const Scratch& s) {
    double ridge = 0.0;
    for (int r = 0; r < longest; r++) {
        int one = s.which[r];
        double slope = s.cost[one] - s.cost[heaviest], own[LABELS];
#pragma unroll
        for (int a = 0; a < LABELS; a++) own[a] = apart.q[a] * apart(one, a);
        for (int c = 0; c <= r; c++) {
            int other = s.which[c];
            double both = 0.0;
#pragma unroll
            for (int a = 0; a < LABELS; a++) both += own[a] * apart(other, a);
            both = row_sum(both) - slope * (s.cost[other] - s.cost[heaviest]) * cold;
            if (c == r) ridge = max(ridge, both = max(both, 0.0));
            if (lane == 0 && r < size) s.H[r * (r + 1) / 2 + c] = both;
        }
        if (lane == 0 && r < size) s.x[r] = -slope;
    }
    ridge = RIDGE * (1.0 + ridge);
    row_sync();
    for (int r = lane; r < size; r += G) s.H[r * (r + 1) / 2 + r] += ridge;
    row_sync();
    solve(size, longest, lane, s.H, s.x);
}

// Newton's direction of the options at work: d of sum 0 that minimises <cost, d> + <d, L C L' d> / 2 mu, C that of q.
// What the heaviest option gets is minus the sum of the others, whose costs are taken less its own.
__device__ void direct(const double* L, double cold, Set work, int heaviest, int lane, const Scratch& s) {
    Set others = work & ~ONE(heaviest);
    int size = 0, longest, i;
    FOR_EACH(i, others) {
        if (lane == 0) s.which[size] = i;
        size++;
    }
    longest = warp_max(size);
    for (int r = size + lane; r < max(longest, 3) && r < M; r += G) s.which[r] = heaviest;
    row_sync();
    Apart apart(L, heaviest, cold, lane, s.q);
    double rest = 0.0;
    if (longest <= 3) {
        int one[3];
        double slope[3], x[3];
#pragma unroll
        for (int r = 0; r < 3; r++) {
            one[r] = r < M ? s.which[r] : heaviest;  // the heaviest itself is no step away, and so counts for nothing
            slope[r] = s.cost[one[r]] - s.cost[heaviest];
        }
        solve_few(one, slope, cold, apart, x);
#pragma unroll
        for (int r = 0; r < 3; r++) {
            if (lane == 0 && r < size) s.d[one[r]] = x[r];
            rest -= r < size ? x[r] : 0.0;
        }
    } else {
        solve_many(size, longest, heaviest, cold, lane, apart, s);
        for (int r = 0; r < size; r++) rest -= s.x[r];
        for (int r = lane; r < size; r += G) s.d[s.which[r]] = s.x[r];
    }
    if (lane == 0) s.d[heaviest] = rest;
    row_sync();
}

// How far to go along d, at most `room` and 1, so that phi falls; q and the reply are then those of the point reached.
__device__ double search(double mu, double cold, double room, double fall, const double* reward, const double* slope,
                         bool moving, int lane, double* q, Reply& reply) {
    double step = moving ? min(1.0, room) : 0.0, at[LABELS];
    Reply before = reply;
    bool trying = moving;
    for (int trial = 0; trial < TRIALS; trial++) {
#pragma unroll
        for (int a = 0; a < LABELS; a++) at[a] = reward[a] + (slope[a] == 0.0 ? 0.0 : step * slope[a]);
        Reply found = respond(at, cold, lane, q);
        double rise = 0.0;
#pragma unroll
        for (int a = 0; a < LABELS; a++)
            if (a * G + lane < K) rise += q[a * G + lane] * slope[a];
        rise = row_sum(rise);
        if (trying) reply = found;
        // Convex: where it still falls it has fallen; else values decide, of which the last digits say nothing.
        trying = trying && rise > 0.0;
        if (!row_any(trying)) break;
        double old = before.value(mu);
        trying = trying && !(rise <= 0.5 * fall && found.value(mu) <= old + 1e-15 * fabs(old));
        if (!row_any(trying)) break;
        if (trying) step *= max(0.1, fall / (fall + rise));
    }
    return step;
}

__device__ Found Newton::operator()(
    const double* L, double unit, const double* f, int lane, double* p, double* q) const {
    Scratch s{p, q, q + K, q + K + M, q + K + 2 * M, q + K + 4 * M, reinterpret_cast<int*>(q + K + 3 * M)};
    double mu = smoothing / unit, cold = 1.0 / mu, reward[LABELS], slope[LABELS], gap;
    double done = 1e-13 + 1e-15 * cold;  // rounding of rewards comes back divided by mu
    for (int i = lane; i < M; i += G) p[i] = 0.0;
#pragma unroll
    for (int a = 0; a < LABELS; a++) reward[a] = f[a];
    respond(reward, cold, lane, q);
    int cheapest, i;
    price(L, lane, s, cheapest);
    Set played = ONE(cheapest);
    if (lane == 0) p[cheapest] = 1.0;
    row_sync();
    add(L, played, p, lane, reward);
    Reply reply = respond(reward, cold, lane, q);
    for (int left = STEPS;; left--) {
        double least = price(L, lane, s, cheapest), paid = 0.0, most = 0.0, dear = LOWEST, fall = 0.0, room = 2.0;
        int heaviest = 0, dearest = 0;
        FOR_EACH(i, played) {
            paid += p[i] * s.cost[i];
            if (p[i] > most) most = p[heaviest = i];
            if (s.cost[i] > dear) dear = s.cost[dearest = i];
        }
        gap = paid - least;
        bool moving = gap > done;
        if (left == 0 || !row_any(moving)) break;
        Set work = played | ONE(cheapest);
        direct(L, cold, work, heaviest, lane, s);
        bool good = true;
        FOR_EACH(i, work) {
            fall -= s.d[i] * s.cost[i];
            good = good && (s.d[i] >= 0.0 || p[i] > 0.0);
        }
        good = good && fall > 0.0;
        row_sync();
        // Where the cheapest option would have to leave, or rounding has spoilt the direction: from the dearest to it.
        if (!good && lane == 0) FOR_EACH(i, work) s.d[i] = i == cheapest ? 1.0 : i == dearest ? -1.0 : 0.0;
        fall = good ? fall : dear - least;
        row_sync();
        FOR_EACH(i, work) if (s.d[i] < 0.0) room = min(room, -p[i] / s.d[i]);
#pragma unroll
        for (int a = 0; a < LABELS; a++) slope[a] = 0.0;
        add(L, work, s.d, lane, slope);
        double length = search(mu, cold, room, fall, reward, slope, moving, lane, q, reply);
        Set kept = 0;
        FOR_EACH(i, work) if (p[i] + length * s.d[i] > NEGLIGIBLE) kept |= ONE(i);
        row_sync();
        if (moving && lane == 0) FOR_EACH(i, work) p[i] = kept & ONE(i) ? p[i] + length * s.d[i] : 0.0;
        played = moving ? kept : played;
#pragma unroll
        for (int a = 0; a < LABELS; a++) reward[a] += slope[a] == 0.0 ? 0.0 : length * slope[a];
        row_sync();
    }
    return Found{reply.value(mu), gap <= CERTIFIED};
}

ENTRY(tempered, Newton{smoothing})
