/* Asks for memory that is read a little later, so that nobody has to wait for it; changes no result. */
#ifndef NASHLEARN_AHEAD_H
#define NASHLEARN_AHEAD_H

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#if defined(_M_X64)
#define ahead(place) _mm_prefetch((const char *)(place), _MM_HINT_T0)
#else
#define ahead(place) __prefetch(place)
#endif
#else
#define ahead(place) __builtin_prefetch(place)
#endif

#endif
