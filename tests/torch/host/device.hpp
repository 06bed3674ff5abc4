// CUDA's threads on a host, for tests: the threads of a block are fibres that take turns in a random order, and wait at
// barriers and shuffles. What is not ordered by a barrier therefore happens in another order for another seed.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static

struct dim { unsigned x; };
namespace emulator {

constexpr size_t STACK = 1 << 18, BEHIND = 1 << 12;

// Fibres that wait here go on when the last of those that have not ended has come.
struct Barrier {
    unsigned members = 0, waiting = 0, generation = 0;

    void open_if_complete() {
        if (waiting < members || !members) return;
        waiting = 0;
        generation++;
    }
};

struct Fibre {
    ucontext_t context;  // how it begins
    jmp_buf place;       // and goes on: a jump asks nothing of the system
    Barrier* at = nullptr;  // where it waits
    unsigned generation = 0, exchanges = 0;
    bool begun = false, done = false;
};

inline std::vector<std::unique_ptr<char[]>> stacks;
inline std::vector<Fibre> fibres;
inline std::vector<Barrier> warps;
inline Barrier block;
inline jmp_buf scheduler;
inline unsigned current;
inline std::vector<char> room;
inline std::vector<uint64_t> exchanged[2];
inline void (*body)(void*);
inline void* argument;
}  // namespace emulator

inline dim threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
inline void entry() {
    body(argument);
    fibres[current].done = true;
    for (Barrier* one : {&block, &warps[current / 32]}) {
        one->members--;
        one->open_if_complete();
    }
    _longjmp(scheduler, 1);
}

inline void meet(Barrier& barrier) {
    Fibre& mine = fibres[current];
    mine.generation = barrier.generation;
    barrier.waiting++;
    barrier.open_if_complete();
    if (barrier.generation != mine.generation) return;
    mine.at = &barrier;
    if (!_setjmp(mine.place)) _longjmp(scheduler, 1);
}

inline void resume(Fibre& one) {
    if (_setjmp(scheduler)) return;
    if (one.begun) _longjmp(one.place, 1);
    one.begun = true;
    setcontext(&one.context);
}

inline void run_block(unsigned threads, std::mt19937& random) {
    fibres.assign(threads, Fibre());
    for (auto& one : exchanged) one.assign(threads, 0);
    warps.assign((threads + 31) / 32, Barrier());
    block = Barrier();
    block.members = threads;
    std::vector<unsigned> order(threads);
    for (unsigned i = 0; i < threads; i++) {
        order[i] = i;
        warps[i / 32].members++;
        if (stacks.size() <= i) stacks.emplace_back(new char[STACK]);
        ucontext_t& context = fibres[i].context;
        getcontext(&context);
        context.uc_stack.ss_sp = stacks[i].get();
        context.uc_stack.ss_size = STACK;
        context.uc_link = nullptr;
        makecontext(&context, entry, 0);
    }
    for (unsigned left = threads; left;) {
        bool moved = false;
        std::shuffle(order.begin(), order.end(), random);
        for (unsigned i : order) {
            Fibre& one = fibres[i];
            if (one.done || (one.at && one.at->generation == one.generation)) continue;
            one.at = nullptr;
            threadIdx.x = current = i;
            resume(one);
            moved = true;
            left -= fibres[i].done;
        }
        if (!moved) std::abort();  // threads wait for one another for ever
    }
}

template <class... A, size_t... I>
void unpack(void (*kernel)(A...), void** values, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(values[I])...);
}

// A kernel is called with pointers to its arguments, as cuLaunchKernel does; shared memory begins as noise. Whether what
// lies behind that was left alone.
template <class... A>
bool launch(void (*kernel)(A...), unsigned blocks, unsigned threads, size_t shared, void** values, unsigned seed) {
    std::mt19937 random(seed);
    struct Call {
        void (*kernel)(A...);
        void** values;
    } call{kernel, values};
    argument = &call;
    body = [](void* it) {
        Call* own = static_cast<Call*>(it);
        unpack(own->kernel, own->values, std::index_sequence_for<A...>());
    };
    blockDim.x = threads;
    gridDim.x = blocks;
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx.x = block;
        room.resize(shared + 32 + BEHIND);
        for (char& byte : room) byte = static_cast<char>(random());
        std::vector<char> behind(room.end() - BEHIND, room.end());
        run_block(threads, random);
        if (!std::equal(behind.begin(), behind.end(), room.end() - BEHIND)) return false;
    }
    return true;
}
}  // namespace emulator

// Kernels take their dynamic shared memory by this name.
#define DYNAMIC_SHARED(name) \
    double* name = reinterpret_cast<double*>((reinterpret_cast<uintptr_t>(emulator::room.data()) + 15) / 16 * 16)

inline void __syncthreads() { emulator::meet(emulator::block); }
inline int __syncthreads_or(int yes) {
    static int found, again;
    if (again++ % int(blockDim.x) == 0) found = 0;
    found |= yes != 0;
    __syncthreads();
    int all = found;
    __syncthreads();
    return all;
}
inline void __syncwarp(unsigned = 0xffffffffu) { emulator::meet(emulator::warps[threadIdx.x / 32]); }

// Two rooms in turn: who writes into one again has met all others since they read it.
template <class T>
T emulator_exchange(T x, unsigned from) {
    unsigned first = threadIdx.x / 32 * 32;
    auto& room = emulator::exchanged[emulator::fibres[threadIdx.x].exchanges++ % 2];
    std::memcpy(&room[threadIdx.x], &x, sizeof x);
    __syncwarp();
    if (first + from < blockDim.x) std::memcpy(&x, &room[first + from], sizeof x);
    return x;
}

template <class T>
T __shfl_sync(unsigned, T x, int lane, int width = 32) {
    unsigned own = threadIdx.x % 32;
    return emulator_exchange(x, own / width * width + lane % width);
}

template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, int = 32) {
    return emulator_exchange(x, (threadIdx.x % 32) ^ mask);
}

template <class T>
T __shfl_up_sync(unsigned, T x, unsigned step, int = 32) {
    unsigned own = threadIdx.x % 32;
    return emulator_exchange(x, own < step ? own : own - step);
}

inline unsigned __ballot_sync(unsigned, bool yes) {
    unsigned first = threadIdx.x / 32 * 32, votes = 0;
    auto& room = emulator::exchanged[emulator::fibres[threadIdx.x].exchanges++ % 2];
    room[threadIdx.x] = yes;
    __syncwarp();
    for (unsigned i = first; i < std::min(first + 32, blockDim.x); i++) votes |= unsigned(room[i]) << (i - first);
    return votes;
}

inline bool __any_sync(unsigned mask, bool yes) { return __ballot_sync(mask, yes) != 0; }
inline bool __all_sync(unsigned mask, bool yes) { return __ballot_sync(mask, !yes) == 0; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline float __int_as_float(int x) { float y; std::memcpy(&y, &x, 4); return y; }
inline double __longlong_as_double(long long x) { double y; std::memcpy(&y, &x, 8); return y; }
inline int __float_as_int(float x) { int y; std::memcpy(&y, &x, 4); return y; }
inline long long __double_as_longlong(double x) { long long y; std::memcpy(&y, &x, 8); return y; }
inline float __expf(float x) { return std::exp(x); }
inline float exp2f_(float x) { return std::exp2(x); }
using std::exp2;
using std::max;
using std::min;
