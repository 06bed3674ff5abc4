// The game between arborescences: both players choose points of the polytope of dependency trees (cuts.cuh). One block
// plays one game, by the interior point method of interior.cuh. Cuts join while it is under way, where either player
// violates them; most games need a handful of them.
#include "flow.cuh"
#include "game.cuh"

#define MOST_CUTS 40  // of long sentences; few need half as many
#define ROUNDS 6      // starts of the method: more than one are rare

// Look for the cuts that both players' strategies x (n, n) violate, a warp for each and for each part of the search;
// those of a part share (2, n, n) scratch.
__device__ void search(const Pair* x, double* first, double* second, int n, Separation wanted, Found* found) {
    __syncthreads();
    EACH_ROW(one, 2 * PARTS) {
        const int player = one % 2, part = one / 2;
        double lack, *left = (part ? second : first) + player * n * n;
        const double* own = player ? &x->q : &x->p;
        int count = separate(own, left, n, wanted, part, found->sets[player][part], &lack);
        if (threadIdx.x % 32 == 0) {
            found->count[player][part] = count;
            found->lack[player][part] = lack;
        }
    }
    __syncthreads();
}

// Take what was found; whether there is something new.
__device__ bool take(Cuts& cuts, const Found* found) {
    const int before = cuts.count;
    for (int player = 0; player < 2; player++)
        for (int part = 0; part < PARTS; part++)
            for (int i = 0; i < found->count[player][part]; i++) {
                Tokens set = found->sets[player][part][i];
                // That one arc leaves the root is an equality, and so is the sum of a row.
                if (size_of(set) > 1 && !(cuts.equal && set == cuts.all)) cuts.add(set);
            }
    return cuts.count > before;
}

// New cuts begin on the central path, if not where they should be: lam slack = nu. What they add to the multipliers z
// of arcs inside, and rows' potentials give back, keeps those as they are defined.
__device__ void place_cuts(const Path& c, const Cuts& cuts, int before, double nu) {
    const int k = threadIdx.x;
    Pair sums[Cuts::EACH] = {};
    EACH_ROW(d, c.n) {
        Pair own[WIDE] = {};
        EACH_ENTRY(e, t, c.n) own[e] = c.x[d * c.n + t];
        cuts.add_row(d, own, sums);
    }
    Pair sum = collected(c, sums, cuts.count);
    if (before <= k && k < cuts.count) {
        double b = cuts.limit(k), least = most(0.5 * sqrt(nu), 1e-3);
        Pair slack = {most(sum.p - b, least), most(sum.q - b, least)};
        c.slack[k] = slack;
        c.lam[k] = {nu / slack.p, nu / slack.q};
    }
    __syncthreads();
    EACH_ROW(d, c.n) EACH_ENTRY(e, t, c.n) {
        for (Marks left = t == d ? 0 : (cuts.holding[d] & cuts.holding[t]) >> before; left; left &= left - 1)
            c.z[d * c.n + t] += c.lam[before + lowest(left)];
    }
    __syncthreads();
}

#define PLAIN 1e-4  // what a cut lacks that is looked for on the way

// While the path is followed, cuts are looked for at every third point after the first steps, and only those that are
// plainly violated: the flows that find others take long, and few of them remain in the end. Where the path has come
// close to an end that cuts forbid, it is easier to begin again than to return.
__device__ bool Cuts::grow(const Path& c, double nu, int turn) {
    if (turn % 3 != 1 || turn == 1) return false;
    const int before = count;
    const double tol = most(fmin(0.1, 30.0 * nu), most(missing, PLAIN));
    search(c.x, c.scratch, c.scratch + 2 * n * n, n, {tol, 0.5 * tol, 0.1 * tol}, found);
    if (!take(*this, found)) return false;
    lost = most(found->lacking(0), found->lacking(1)) > 100.0 * sqrt(nu);
    place_cuts(c, *this, before, nu);
    return true;
}

struct Rewards {  // scores less the largest of each row, then of the root's arcs if it has one: all trees lose as much
    const real* scores;
    const double* row;
    long long size;
    double root, more;

    __device__ long long at(int d, int t) const { return d * (size + 1) + (d == t ? 0 : t + 1); }
    __device__ double score(int d, int t) const {
        return static_cast<double>(scores[at(d, t)]) - row[d] - (d == t ? root : 0.0);
    }
    __device__ double operator()(int d, int t) const { return score(d, t) + more; }
};

// Shift the scores; whether all of them are finite. That of a token as its own head does not count, but must not be NaN
// or infinite.
__device__ bool shift(const Path& c, Rewards& rewards, double* row, bool single_root) {
    double wrong = 0.0, root = -1e300;
    for (int d = threadIdx.x; d < c.n; d += blockDim.x) {
        double top = -1e300;
        for (int t = 0; t < c.n; t++) {
            double own = static_cast<double>(rewards.scores[rewards.at(d, t)]);
            wrong += !(fabs(own) < 1e300);
            if (t != d || !single_root || c.n == 1) top = fmax(top, own);
        }
        wrong += !(rewards.scores[d * (rewards.size + 1) + d + 1] < 1e300);
        row[d] = top;
        root = fmax(root, static_cast<double>(rewards.scores[rewards.at(d, d)]) - top);
    }
    Total total = block_total(wrong, root, c.room);
    rewards.root = single_root ? total.most : 0.0;
    return total.sum == 0.0;
}

// Whether heads (n) make a tree: from each token 1, 2, 4, ... arcs up.
__device__ bool is_tree(const long long* heads, int n, bool single_root) {
    const int lane = threadIdx.x % 32;
    int up[WIDE];
    bool right[WIDE], top[WIDE];
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        int d = lane + 32 * e;
        long long head = d < n ? heads[d] : 0;
        right[e] = 0 <= head && head <= n;
        up[e] = right[e] ? static_cast<int>(head) : 0;
        top[e] = d < n && up[e] == 0;
    }
    bool fit = votes(right) == ~Tokens(0);
    int roots = size_of(votes(top));
    for (int step = 1; step <= n; step *= 2) {
        int further[WIDE];
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            int t = max(up[e] - 1, 0), low = __shfl_sync(FULL, up[0], t % 32), high = low;
            if (WIDE > 1) high = __shfl_sync(FULL, up[WIDE - 1], t % 32);
            further[e] = up[e] == 0 ? 0 : t < 32 ? low : high;
        }
#pragma unroll
        for (int e = 0; e < WIDE; e++) up[e] = further[e];
    }
#pragma unroll
    for (int e = 0; e < WIDE; e++) top[e] = up[e] != 0;
    return fit && votes(top) == 0 && (roots == 1 || !single_root || n == 0);
}

// Strategies whose rows, and with one root its arcs, sum to 1 up to rounding.
__device__ void level(const Path& c, Pair* out, bool single_root) {
    Pair root = {0.0, 0.0};
    EACH_ROW(d, c.n) {
        Pair own[WIDE], total = {0.0, 0.0};
        EACH_ENTRY(e, t, c.n) {
            Pair x = c.x[d * c.n + t];
            own[e] = {fmax(x.p, 0.0), fmax(x.q, 0.0)};
            total += own[e];
        }
        total = warp_sum(total);
        EACH_ENTRY(e, t, c.n) {
            out[d * c.n + t] = own[e] = {own[e].p / total.p, own[e].q / total.q};
            if (t == d) root += own[e];
        }
    }
    if (!single_root) return;
    root = {block_total(root.p, 0.0, c.room).sum, block_total(root.q, 0.0, c.room).sum};
    EACH_ROW(d, c.n) {
        Pair rest = {0.0, 0.0}, own = out[d * c.n + d];
        EACH_ENTRY(e, t, c.n) if (t != d) rest += out[d * c.n + t];
        rest = warp_sum(rest);
        own = {own.p / root.p, own.q / root.q};
        Pair scale = {(1.0 - own.p) / rest.p, (1.0 - own.q) / rest.q};
        EACH_ENTRY(e, t, c.n) out[d * c.n + t] = t == d ? own : scale * out[d * c.n + t];
    }
}

// How large a share of a point that exceeds every cut by `excess` makes up for what one may lack; without a cut, none.
__device__ double share_of(double lack, double excess) {
    return lack > 1e-13 && excess > 0.0 ? lack / (lack + excess) : 0.0;
}

// Mix strategies with such a point.
__device__ void mix(const Path& c, Pair* x, const Found* found, bool single_root) {
    const double n = c.n, excess = single_root ? (n - 2.0) / n : (n - 1.0) / (n + 1.0);
    const double p = share_of(found->lacking(0), excess), q = share_of(found->lacking(1), excess);
    EACH_ROW(d, c.n) EACH_ENTRY(e, t, c.n) {
        double even = single_root ? 1.0 / n : (d == t ? 2.0 : 1.0) / (n + 1.0);
        Pair own = x[d * c.n + t];
        x[d * c.n + t] = {(1.0 - p) * own.p + p * even, (1.0 - q) * own.q + q * even};
    }
    __syncthreads();
}

// Strategies of the polytope and their bounds, which should differ by `allowed` at most; whether the method came to an
// end.
__device__ bool settle(
    const Path& c, Cuts& cuts, const Rewards& rewards, double tol, double allowed, Pair* x, Bounds* bounds
) {
    // What a cut may lack costs as much as the scores are large.
    const double spread = spread_of(c, rewards), fine = fmax(0.1 * tol / (1.0 + spread), 1e-14);
    for (int round = 1;; round++) {
        const int before = cuts.count;
        cuts.lost = false;
        start(c, cuts, rewards, spread);
        const double rest = follow(c, cuts, 0.1 * tol, 10.0 * tol);
        if (!(rest < 1e300)) return false;
        // New cuts may have stopped the path at the boundary: it begins again with them.
        if ((cuts.lost || (rest > 10.0 * tol && cuts.count > before)) && round < ROUNDS) continue;
        level(c, x, cuts.equal);
        // The multipliers z are not needed any more: a path that begins again has others.
        double* other = reinterpret_cast<double*>(c.z);
        search(x, c.scratch + 2 * c.n * c.n, other, c.n, {fine, cuts.missing, 1e-3 * fine}, cuts.found);
        if (round < ROUNDS && take(cuts, cuts.found)) continue;
        mix(c, x, cuts.found, cuts.equal);
        *bounds = certify(c, cuts, rewards, x);
        // Rounding ends paths early that new cuts have bent: with these from the beginning there is another one.
        if (bounds->upper - bounds->lower <= allowed || cuts.count == before || round >= ROUNDS) return true;
    }
}

// Play the games of scores (games, size, size + 1), of which instances have `lengths`, against heads (games, size). A
// game is not solved, and what is written for it void, where its gap stays above 10 tol (1 + n (1 + mu)), where a score
// is not finite, where the heads are no tree, or where the length is negative. Padding is not written.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) play_trees(
    const real* scores, const long long* target, const long long* lengths, real* loss, double* gaps, real* change,
    real* reply, unsigned char* solved, double* state, long long games, long long size, double mu, double tol
) {
    DYNAMIC_SHARED(memory);
    for (long long game = blockIdx.x; game < games; game += gridDim.x) {
        const int n = static_cast<int>(lengths[game]);
        const long long first = game * size * (size + 1);
        const long long* y = target + game * size;
        Answer answer = {loss + game, change + first, reply + first, gaps + game, solved + game};
        Shelf shelf = {memory};
        const int most_cuts = min(MOST_CUTS, static_cast<int>(size) + 12);
        Cuts cuts = {n, most_cuts, 0, 0, n > 0 ? ~Tokens(0) >> (32 * WIDE - n) : 0, 0};
        cuts.sets = shelf.take<Tokens>(most_cuts);
        cuts.holding = shelf.take<Marks>(size);
        cuts.counted = shelf.take<Tokens>(size);
        cuts.rows = shelf.take<Pair>(blockDim.x / 32 * size);
        cuts.found = shelf.take<Found>(1);
        cuts.missing = 10.0 * tol;
        double* row = shelf.take<double>(size);
        Path path = laid_out(shelf, state ? state + blockIdx.x * 4 * size * size : nullptr, max(n, 0), most_cuts, mu);
        Rewards rewards = {scores + first, row, size, 0.0, 1.0 + 0.5 * mu};
        bool fit = n >= 0 && shift(path, rewards, row, SINGLE_ROOT) && is_tree(y, n, SINGLE_ROOT);
        Bounds bounds;
        for (int d = threadIdx.x; d < n; d += blockDim.x) cuts.holding[d] = cuts.counted[d] = 0;
        __syncthreads();
        if (SINGLE_ROOT && n > 1) {
            cuts.add(cuts.all);
            cuts.equal = 1;
        }
        const double allowed = 10.0 * tol * (1.0 + n * (1.0 + mu));
        if (fit && n > 0 && settle(path, cuts, rewards, tol, allowed, path.dx(), &bounds)) {
            bool enough = bounds.upper - bounds.lower <= allowed;
            auto truth = [y](int d) { return y[d] == 0 ? d : static_cast<int>(y[d]) - 1; };
            report(path, answer, rewards, truth, path.dx(), bounds, enough);
        } else if (threadIdx.x == 0) {
            *answer.loss = 0.0;
            *answer.gap = 0.0;
            *answer.solved = fit && n == 0;
        }
        __syncthreads();
    }
}
