"""Trees of cliques of many networks, as :mod:`nashlearn.kernels.junction_sweeps` plays them."""

from nashlearn.kernels.checks cimport INDEX, NARROW, extent, matrix, rising, vector
from nashlearn.kernels.scratch cimport Scratch, indices

cdef enum:
    _MOST = 1 << 30  # entries of a table


cdef class Junctions:
    """The clique trees of some graphs, whose nodes have ``k`` states each, checked once.

    Cliques of all graphs follow each other, each graph's in depth-first preorder: graph ``g`` has those from
    ``graphs[g]`` on. Clique ``c`` has the nodes from ``scope[starts[c]]`` on, first the ``own[c]`` that it owns.
    ``pairs`` (P, 4) lists the edges, from ``pair_starts[c]`` on those of clique ``c``: the positions of both ends in
    its scope, the smaller one first, the number of the edge in its graph, and whether its ends are the other way round.
    ``maps`` holds, from ``places[c]`` on, the column of ``c`` for each entry of its parent's table.
    """

    def __cinit__(
        self, Py_ssize_t k, graphs, starts, scope, own, parent, child, sibling, pair_starts, pairs, places, maps
    ):
        cdef Py_ssize_t size = extent(own, "own", 0), nodes = extent(scope, "scope", 0)
        cdef Py_ssize_t listed = extent(pairs, "pairs", 0), mapped = extent(maps, "maps", 0), c
        cdef size_t at = 0
        self.k, self.size, self.n_graphs = k, size, extent(graphs, "graphs", 0) - 1
        self.graphs = <const Py_ssize_t*> vector(graphs, "graphs", INDEX, self.n_graphs + 1)
        self.starts = <const Py_ssize_t*> vector(starts, "starts", INDEX, size + 1)
        self.scope = <const Py_ssize_t*> vector(scope, "scope", INDEX, nodes)
        self.own = <const Py_ssize_t*> vector(own, "own", INDEX, size)
        self.parent = <const Py_ssize_t*> vector(parent, "parent", INDEX, size)
        self.child = <const Py_ssize_t*> vector(child, "child", INDEX, size)
        self.sibling = <const Py_ssize_t*> vector(sibling, "sibling", INDEX, size)
        self.pair_starts = <const Py_ssize_t*> vector(pair_starts, "pair_starts", INDEX, size + 1)
        self.pairs = <const Py_ssize_t*> matrix(pairs, "pairs", INDEX, listed, 4)
        self.places = <const Py_ssize_t*> vector(places, "places", INDEX, size)
        self.maps = <const int*> vector(maps, "maps", NARROW, mapped)
        if k < 1:
            raise ValueError(f"k must be positive; got {k}")
        rising(self.graphs, self.n_graphs, size, "graphs")
        rising(self.starts, size, nodes, "starts")
        rising(self.pair_starts, size, listed, "pair_starts")
        self.kept = graphs, starts, scope, own, parent, child, sibling, pair_starts, pairs, places, maps
        for c in range(4 * size + 4 * self.n_graphs):
            indices(&at, 1)
        self.room = Scratch(at)
        at = <size_t> self.room.at
        self.rows, self.columns = indices(&at, size), indices(&at, size)
        self.table, self.message = indices(&at, size), indices(&at, size)
        self.nodes, self.edges = indices(&at, self.n_graphs), indices(&at, self.n_graphs)
        self.entries, self.messages = indices(&at, self.n_graphs), indices(&at, self.n_graphs)
        flaw = self._measure(mapped)
        if flaw is not None:
            raise ValueError(f"scope, own, parent, child, pairs and maps must be those of clique trees: {flaw}")

    def __reduce__(self):
        return Junctions, (self.k, *self.kept)

    cdef object _measure(self, Py_ssize_t mapped):
        """The sizes of tables and of graphs; what is wrong with them, or None."""
        cdef Py_ssize_t g, c, i, width
        for g in range(self.n_graphs):
            self.nodes[g] = self.edges[g] = self.entries[g] = self.messages[g] = 0
            for c in range(self.graphs[g], self.graphs[g + 1]):
                width = self.starts[c + 1] - self.starts[c]
                if not 1 <= self.own[c] <= width:
                    return f"clique {c} must own some of its {width} nodes; got {self.own[c]}"
                self.rows[c] = self.columns[c] = 1
                for i in range(width):
                    if self.scope[self.starts[c] + i] < 0:
                        return f"clique {c} must have nodes from 0 on"
                    self.nodes[g] = max(self.nodes[g], self.scope[self.starts[c] + i] + 1)
                    if i < self.own[c]:
                        self.rows[c] *= self.k
                    else:
                        self.columns[c] *= self.k
                    if self.rows[c] * self.columns[c] > _MOST // self.k:
                        return f"clique {c} is too large"
                self.table[c], self.message[c] = self.entries[g], self.messages[g]
                self.entries[g] += self.rows[c] * self.columns[c]
                self.messages[g] += self.columns[c]
                self.largest = max(self.largest, self.rows[c] * self.columns[c])
                self.widest = max(self.widest, width)
                for i in range(self.pair_starts[c], self.pair_starts[c + 1]):
                    if not (0 <= self.pairs[4 * i] < self.pairs[4 * i + 1] < width and 0 <= self.pairs[4 * i + 2]):
                        return f"pair {i} must be two positions in the scope of clique {c}, and an edge"
                    self.edges[g] = max(self.edges[g], self.pairs[4 * i + 2] + 1)
                flaw = self._misplaced(c, g, mapped)
                if flaw is not None:
                    return flaw
        return None

    cdef object _misplaced(self, Py_ssize_t c, Py_ssize_t g, Py_ssize_t mapped):
        """What is wrong with the place of clique ``c`` in its tree, or None."""
        cdef Py_ssize_t d, x, u = self.parent[c], before, entries
        cdef unsigned int most = 0
        if u < 0:
            if self.columns[c] != 1:
                return f"clique {c}, a root, must own all of its nodes"
        else:
            if not self.graphs[g] <= u < c:
                return f"the parent of clique {c} must come before it in its graph"
            entries = self.rows[u] * self.columns[u]
            if not 0 <= self.places[c] <= mapped - entries:
                return f"the map of clique {c} must lie among the {mapped} entries of maps"
            for x in range(self.places[c], self.places[c] + entries):
                most = max(most, <unsigned int> self.maps[x])  # what is negative becomes large
            if most >= <size_t> self.columns[c]:
                return f"the map of clique {c} must hold columns 0..{self.columns[c] - 1}"
        d, before = self.child[c], c
        while d != -1:
            if not (before < d < self.graphs[g + 1] and self.parent[d] == c):
                return f"the children of clique {c} must be listed in order"
            before, d = d, self.sibling[d]
        return None
