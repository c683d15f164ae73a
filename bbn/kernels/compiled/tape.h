/* The words of a tape, as constants for the compiled kernels; see `tape`. */

#ifndef BBN_TAPE_H
#define BBN_TAPE_H

enum { CLEAR = 0, SCALAR = 1, SWEEP = 2, RESCALE = 3, NORM = 4, TOTAL = 5, RATIO = 6, FINISH = 7, BANDS = 8 };
enum { MUL = 0, LIKELY = 1, ADD = 2 };
enum { NOTHING = 0, TABLES = 0, BASE = 1, WORK = 2, OUT = 3 };
enum { DEEPEST = 64 };
enum { NOTED = 1, READ = 2 };
enum { BAND_LANES = 4, BAND_STEPS = 16 };

#endif
