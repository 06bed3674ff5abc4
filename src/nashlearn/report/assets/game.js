// The game of one label against one option, F(θ) = max_q ⟨θ,q⟩ + min_i (Lq)_i, for few labels: exact, by enumeration.
// The page has no Python to ask; the tests hold this against the library's own games.
Nash.game = (() => {
  function subsets(n, size, first = 0) {
    if (size === 0) return [[]];
    const found = [];
    for (let i = first; i <= n - size; i++) for (const rest of subsets(n, size - 1, i + 1)) found.push([i, ...rest]);
    return found;
  }
  // The solution of A x = b by elimination with pivots, or null where A is singular.
  function linear(A, b) {
    const n = b.length,
      M = A.map((row, i) => [...row, b[i]]);
    const size = Math.max(1, ...M.flat().map(Math.abs));
    for (let c = 0; c < n; c++) {
      let pivot = c;
      for (let r = c + 1; r < n; r++) if (Math.abs(M[r][c]) > Math.abs(M[pivot][c])) pivot = r;
      if (Math.abs(M[pivot][c]) < 1e-12 * size) return null;
      [M[c], M[pivot]] = [M[pivot], M[c]];
      for (let r = 0; r < n; r++) {
        if (r === c) continue;
        const factor = M[r][c] / M[c][c];
        for (let j = c; j <= n; j++) M[r][j] -= factor * M[c][j];
      }
    }
    return M.map((row, i) => row[n] / row[i]);
  }
  // The strategy on `members` that makes `rows(member)` + offset equal for all of `others`; null where there is none.
  function equaliser(n, members, others, entry, offset) {
    const A = others.map((o) => [...members.map((m) => entry(m, o)), -1]);
    const x = linear([...A, [...members.map(() => 1), 0]], [...others.map((o) => -offset[o]), 1]);
    if (x === null || members.some((_, i) => !(x[i] >= -1e-11))) return null;
    const strategy = new Array(n).fill(0);
    members.forEach((m, i) => {
      strategy[m] = Math.max(x[i], 0);
    });
    const mass = strategy.reduce((a, b) => a + b, 0);
    return { strategy: strategy.map((v) => v / mass), value: x[members.length] };
  }
  const dot = (a, b) => a.reduce((sum, v, i) => sum + (v === 0 ? 0 : v * b[i]), 0);
  const pairs = (k, m) => {
    const found = [];
    for (let size = 1; size <= Math.min(k, m); size++)
      for (const R of subsets(k, size)) for (const S of subsets(m, size)) found.push([R, S]);
    return found;
  };

  // The facets of F: strategies q of the adversary with their risk min_i (Lq)_i. F(θ) is the largest ⟨θ,q⟩ + risk.
  // Any q gives a lower bound and the vertices are among them, so no tolerance can make the value wrong.
  function facets(L) {
    const m = L.length,
      k = L[0].length,
      zero = new Array(m).fill(0);
    const scale = Math.max(1e-300, ...L.flat().map(Math.abs));
    const found = [];
    for (const [R, S] of pairs(k, m)) {
      const solution = equaliser(k, R, S, (j, i) => L[i][j], zero);
      if (!solution) continue;
      const q = solution.strategy,
        risk = Math.min(...L.map((row) => dot(row, q)));
      if (risk < solution.value - 1e-9 * scale) continue;
      if (!found.some((other) => other.q.every((v, j) => Math.abs(v - q[j]) < 1e-9))) found.push({ q, risk });
    }
    return found;
  }
  function best(list, theta) {
    let value = -Infinity,
      at = -1;
    for (let i = 0; i < list.length; i++) {
      const now = dot(list[i].q, theta) + list[i].risk;
      if (now > value) {
        value = now;
        at = i;
      }
    }
    return { value, at };
  }
  // Both players at θ: q of the best facet, p by the same enumeration, and what each secures alone.
  function solve(L, theta, list = facets(L)) {
    const m = L.length,
      k = L[0].length;
    const { value, at } = best(list, theta);
    const upper = (p) => Math.max(...theta.map((t, j) => t + L.reduce((sum, row, i) => sum + p[i] * row[j], 0)));
    let p = null,
      least = Infinity;
    for (const [R, S] of pairs(k, m)) {
      const solution = equaliser(m, S, R, (i, j) => L[i][j], theta);
      if (!solution) continue;
      const now = upper(solution.strategy);
      if (now < least) {
        least = now;
        p = solution.strategy;
      }
    }
    return { value, q: list[at].q, p, lower: value, upper: least, gap: Math.max(0, least - value), facet: at };
  }

  const square = (k, entry) => Array.from({ length: k }, (_, i) => Array.from({ length: k }, (_, j) => entry(i, j)));
  const losses = {
    zero_one: (k) => square(k, (i, j) => Number(i !== j)),
    absolute: (k) => square(k, (i, j) => Math.abs(i - j)),
    squared: (k) => square(k, (i, j) => (i - j) ** 2),
    abstain: (k, cost) => [...square(k, (i, j) => Number(i !== j)), new Array(k).fill(cost)],
  };
  // Other surrogates at score differences ψ (ψ_y = 0); margins are the costs of answering j for y.
  const surrogates = {
    crammer_singer: (L, y, psi) => Math.max(...psi.map((v, j) => v + L[j][y])),
    weston_watkins: (L, y, psi) => psi.reduce((sum, v, j) => sum + (j === y ? 0 : Math.max(0, v + L[j][y])), 0),
    logistic: (L, y, psi) => {
      const top = Math.max(...psi);
      return top + Math.log(psi.reduce((sum, v) => sum + Math.exp(v - top), 0));
    },
  };
  return { facets, best, solve, losses, surrogates };
})();
