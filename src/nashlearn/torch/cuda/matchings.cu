// The game between complete matchings: both players choose an n x n matrix whose rows and columns sum to 1. One block
// plays one game, by the interior point method of interior.cuh; its constraints are the columns.
#include "game.cuh"

struct Columns {
    static constexpr int EACH = WIDE;
    static constexpr bool lost = false;
    int n, count, equal;  // that the last column sums to 1 follows from the others

    __device__ explicit Columns(int n) : n(n), count(n - 1), equal(n - 1) {}
    __device__ double limit(int) const { return 1.0; }
    __device__ Pair price(const Pair* lam, int, int j) const { return j < count ? lam[j] : Pair{0.0, 0.0}; }
    __device__ void add_row(int, const Pair (&x)[WIDE], Pair (&sums)[EACH]) const {
#pragma unroll
        for (int e = 0; e < WIDE; e++) sums[e] += x[e];
    }
    __device__ bool grow(const Path&, double, int) const { return false; }
    __device__ void assemble(const Path& c) const;
};

__device__ void Columns::assemble(const Path& c) const {
    for (int at = threadIdx.x; at < place(count, 0); at += blockDim.x) {
        Spot pair = spot(at);
        Block both = {0.0, 0.0, 0.0};
        Coupling rows = {0.0, 0.0, 0.0, 0.0};
        for (int i = 0; i < n; i++) {
            Block left = block_of(c, i, pair.i), right = block_of(c, i, pair.j);
            rows -= through(coupling(left), c.row[i], coupling(right));
            if (pair.i == pair.j) both += left;
        }
        // Near a vertex the difference is all rounding: as much again keeps the system regular and its step small.
        both.u *= 1.0 + 1e-15;
        both.v *= 1.0 + 1e-15;
        c.system[at] = {rows.a + both.u, rows.b + both.w, rows.d + both.w, rows.c + both.v};
    }
}

struct Rewards {  // scores less the largest of each row, then of each column, which all matchings lose alike
    const real* scores;
    const double *row, *column;
    long long size;
    double more;

    __device__ long long at(int i, int j) const { return i * size + j; }
    __device__ double score(int i, int j) const { return static_cast<double>(scores[at(i, j)]) - row[i] - column[j]; }
    __device__ double operator()(int i, int j) const { return score(i, j) + more; }
};

// Shift the scores; whether all of them are finite.
__device__ bool shift(const Path& c, const Rewards& rewards, double* row, double* column) {
    double wrong = 0.0;
    for (int j = threadIdx.x; j < c.n; j += blockDim.x) column[j] = 0.0;
    for (int i = threadIdx.x; i < c.n; i += blockDim.x) {
        double top = -1e300;
        for (int j = 0; j < c.n; j++) {
            double own = static_cast<double>(rewards.scores[rewards.at(i, j)]);
            wrong += !(fabs(own) < 1e300);
            top = fmax(top, own);
        }
        row[i] = top;
    }
    if (block_total(wrong, 0.0, c.room).sum > 0.0) return false;
    for (int j = threadIdx.x; j < c.n; j += blockDim.x) {
        double top = -1e300;
        for (int i = 0; i < c.n; i++) top = fmax(top, rewards.score(i, j));
        column[j] = top;
    }
    __syncthreads();
    return true;
}

// Whether a target names each column once.
__device__ bool is_matching(const long long* target, int n) {
    unsigned long long named = 0;
    for (int i = threadIdx.x % 32; i < n; i += 32)
        if (0 <= target[i] && target[i] < n) named |= 1ull << target[i];
    for (int step = 16; step > 0; step /= 2) named |= __shfl_xor_sync(FULL, named, step);
    return __popcll(named) == n;
}

// Strategies whose rows and columns sum to 1 up to rounding: x / t + a b' / <1, a> with the largest sum t, at least 1,
// and what rows and columns of x / t lack, a and b.
__device__ void mend(const Path& c, Pair* out, Pair* columns) {
    Pair sums[WIDE] = {}, all = {0.0, 0.0}, top = {1.0, 1.0};
    EACH_ROW(i, c.n) {
        Pair row = {0.0, 0.0};
        EACH_ENTRY(e, j, c.n) {
            Pair x = {fmax(c.x[i * c.n + j].p, 0.0), fmax(c.x[i * c.n + j].q, 0.0)};
            out[i * c.n + j] = x;
            row += x;
            sums[e] += x;
            all += x;
        }
        row = warp_sum(row);
        top = {fmax(top.p, row.p), fmax(top.q, row.q)};
        if (threadIdx.x % 32 == 0) c.miss[i] = row;
    }
    Pair column = collected(c, sums, c.n);
    if (threadIdx.x < c.n) {
        columns[threadIdx.x] = column;
        top = {fmax(top.p, column.p), fmax(top.q, column.q)};
    }
    Total p = block_total(all.p, top.p, c.room), q = block_total(all.q, top.q, c.room);
    Pair scale = {1.0 / p.most, 1.0 / q.most}, rest = {c.n - p.sum * scale.p, c.n - q.sum * scale.q};
    EACH_ROW(i, c.n) EACH_ENTRY(e, j, c.n) {
        Pair x = scale * out[i * c.n + j], a = scale * c.miss[i], b = scale * columns[j];
        if (rest.p > 0.0) x.p += fmax(1.0 - a.p, 0.0) * fmax(1.0 - b.p, 0.0) / rest.p;
        if (rest.q > 0.0) x.q += fmax(1.0 - a.q, 0.0) * fmax(1.0 - b.q, 0.0) / rest.q;
        out[i * c.n + j] = x;
    }
    __syncthreads();
}

// Play the games of scores (games, size, size), of which instances have `lengths`, against targets (games, size). A
// game is not solved, and what is written for it void, where its gap stays above tol (1 + n), where a score is not
// finite, where the target is no matching, or where the length is negative. Padding is not written.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) play_matchings(
    const real* scores, const long long* target, const long long* lengths, real* loss, double* gaps, real* change,
    real* reply, unsigned char* solved, double* state, long long games, long long size, double mu, double tol
) {
    DYNAMIC_SHARED(memory);
    for (long long game = blockIdx.x; game < games; game += gridDim.x) {
        const int n = static_cast<int>(lengths[game]);
        const long long first = game * size * size;
        const long long* y = target + game * size;
        Answer answer = {loss + game, change + first, reply + first, gaps + game, solved + game};
        Shelf shelf = {memory};
        double* row = shelf.take<double>(size);
        double* column = shelf.take<double>(size);
        Path path = laid_out(shelf, state ? state + blockIdx.x * 4 * size * size : nullptr, max(n, 0), size, mu);
        Rewards rewards = {scores + first, row, column, size, 1.0 + 0.5 * mu};
        bool fit = n >= 0 && shift(path, rewards, row, column) && is_matching(y, n);
        if (fit && n > 0) {
            Columns columns(n);
            start(path, columns, rewards, spread_of(path, rewards));
            bool sound = follow(path, columns, 0.1 * tol, tol) < 1e300;
            mend(path, path.dx(), path.dz());
            Bounds bounds = certify(path, columns, rewards, path.dx());
            sound = sound && bounds.upper - bounds.lower <= tol * (1.0 + n);
            report(path, answer, rewards, [y](int i) { return static_cast<int>(y[i]); }, path.dx(), bounds, sound);
        } else if (threadIdx.x == 0) {
            *answer.loss = 0.0;
            *answer.gap = 0.0;
            *answer.solved = fit;
        }
        __syncthreads();
    }
}
