// What all kernels of this folder share. They are compiled for a device by NVRTC and, in tests, for the host by a
// compiler that finds the built-in names (threadIdx, __syncthreads, __shfl_xor_sync, ...) in a header of its own.
#pragma once

#define FULL 0xffffffffu

#ifndef DYNAMIC_SHARED  // the shared memory that a launch gives to each block
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) double name[]
#endif

// The sum of x over groups of WIDTH neighbouring lanes, a power of two of at most 32, in each of them.
template <int WIDTH, class real>
__device__ __forceinline__ real group_sum(real x) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) x += __shfl_xor_sync(FULL, x, step);
    return x;
}

// The largest x, or NaN if there is one: a comparison with NaN is false.
template <int WIDTH, class real>
__device__ __forceinline__ real group_max(real x) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        real other = __shfl_xor_sync(FULL, x, step);
        x = x >= other || x != x ? x : other;
    }
    return x;
}

// The larger of two numbers, or NaN if one is.
__device__ __forceinline__ double most(double x, double y) { return x >= y || x != x ? x : y; }

struct Total {
    double sum, most;
};

// The sum of one number and the largest of another over all threads of the block, in each of them; `room` holds one
// total for each warp. Always in the same order.
__device__ __noinline__ Total block_total(double sum, double largest, Total* room) {
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    Total total = {group_sum<32>(sum), group_max<32>(largest)};
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[warp] = total;
    __syncthreads();
    total = room[0];
#pragma unroll 1
    for (int i = 1; i < warps; i++) total = {total.sum + room[i].sum, most(total.most, room[i].most)};
    return total;
}
