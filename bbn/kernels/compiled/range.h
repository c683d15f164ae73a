/* Whether a piece of work stayed within the range of a double.

   The processor notes, in flags that stay set, each result that was too small or too large for a double. While no such
   flag is set every product, quotient and sum of non-negative numbers is right to its last bit or so, and that costs
   nothing to know. Work is bracketed: begin, …, left (any time), end. Rounding modes that another library may have left
   behind (denormals taken as zero) are put aside meanwhile. */

#ifndef BBN_RANGE_H
#define BBN_RANGE_H

#include <math.h>

#if defined(__GNUC__)
#define BBN_STORED __asm__ volatile("" ::: "memory") /* what was computed so far is in memory, so its flags are set */
#else
#define BBN_STORED
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define BBN_PLAIN_MODE 0x1F80u /* round to nearest, keep denormals, no traps, no flags */
#define BBN_OUT_OF_RANGE (_MM_EXCEPT_INVALID | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW)

typedef unsigned int bbn_mode;

static inline bbn_mode bbn_range_begin(void) {
    const bbn_mode before = _mm_getcsr();
    BBN_STORED;
    _mm_setcsr(BBN_PLAIN_MODE);
    return before;
}

static inline int bbn_range_left(void) {
    BBN_STORED;
    return (_mm_getcsr() & BBN_OUT_OF_RANGE) != 0;
}

static inline void bbn_range_end(bbn_mode before) {
    BBN_STORED;
    _mm_setcsr(before);
}
#else
#include <fenv.h>

typedef fenv_t bbn_mode;

static inline bbn_mode bbn_range_begin(void) {
    bbn_mode before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    feclearexcept(FE_ALL_EXCEPT);
    return before;
}

static inline int bbn_range_left(void) {
    BBN_STORED;
    return fetestexcept(FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW) != 0;
}

static inline void bbn_range_end(bbn_mode before) {
    BBN_STORED;
    fesetenv(&before);
}
#endif

/* The power of two that brings a total near 1, where it is far from it: scaling by it loses no digit. */
static inline double bbn_taming(double total) {
    int exponent;
    if (!(total > 0.0) || (total > 0x1p-200 && total < 0x1p200)) return 1.0;
    frexp(total, &exponent);
    return ldexp(1.0, exponent > -1000 ? -exponent : 1000);
}

#endif
