/* Four neighbouring doubles as one number, where the compiler has such vectors. */

#ifndef BBN_VECTORS_H
#define BBN_VECTORS_H

#include <stdint.h>

#if defined(__GNUC__)
typedef double bbn_four __attribute__((vector_size(32), aligned(8), may_alias));
#define BBN_FOUR(p) (*(bbn_four *)(p))
#define BBN_READ_FOUR(p) (*(const bbn_four *)(p))
#define BBN_FILL_FOUR(x) ((bbn_four){(x), (x), (x), (x)})
typedef double bbn_two __attribute__((vector_size(16), aligned(8), may_alias));
#define BBN_TWO(p) (*(bbn_two *)(p))
#define BBN_READ_TWO(p) (*(const bbn_two *)(p))
typedef int64_t bbn_four_flags __attribute__((vector_size(32)));
#define BBN_INLINE static inline __attribute__((always_inline))
#define BBN_VECTORS 1
#else
#define BBN_INLINE static inline
#define BBN_VECTORS 0
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__)
#define BBN_CLONES __attribute__((target_clones("avx2", "default")))
#define BBN_CLONED 1
#else
#define BBN_CLONES
#define BBN_CLONED 0
#endif

/* Old is the message itself or apart from it, never shifted against it, so lanes do not mix. */
#if defined(__clang__)
#define BBN_LANES _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define BBN_LANES _Pragma("GCC ivdep")
#else
#define BBN_LANES
#endif

#endif
