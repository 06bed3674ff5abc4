/* Whether this processor, and its system, run code for x86-64-v3: AVX2, FMA, BMI1, BMI2, F16C, LZCNT and MOVBE. */
#ifndef NASHLEARN_CPU_H
#define NASHLEARN_CPU_H

#if defined(__x86_64__) || defined(_M_X64)
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
static int cpu_ask(unsigned leaf, unsigned found[4]) {
    int made[4];
    __cpuid(made, (int)(leaf & 0x80000000u));
    if ((unsigned)made[0] < leaf) return 0;
    __cpuidex((int *)found, (int)leaf, 0);
    return 1;
}
static unsigned cpu_saved(void) { return (unsigned)_xgetbv(0); }
#else
#include <cpuid.h>
static int cpu_ask(unsigned leaf, unsigned found[4]) {
    return __get_cpuid_count(leaf, 0, &found[0], &found[1], &found[2], &found[3]);
}
static unsigned cpu_saved(void) {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#endif

static int cpu_runs_v3(void) {
    const unsigned first = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29; /* FMA, MOVBE, OSXSAVE, AVX, F16C */
    const unsigned seventh = 1u << 3 | 1u << 5 | 1u << 8;                        /* BMI1, AVX2, BMI2 */
    const unsigned extended = 1u << 5;                                           /* LZCNT */
    unsigned r[4];
    if (!cpu_ask(1, r) || (r[2] & first) != first) return 0;
    if ((cpu_saved() & 6u) != 6u) return 0; /* the system does not save the wide registers */
    if (!cpu_ask(7, r) || (r[1] & seventh) != seventh) return 0;
    return cpu_ask(0x80000001u, r) && (r[2] & extended) == extended;
}
#else
static int cpu_runs_v3(void) { return 0; }
#endif
#endif
