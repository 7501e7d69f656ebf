/* What failcalls.so, when it is preloaded, does to the calls of a program: counts those of one kind
 * and spoils one of them. Weak: NULL in a program that runs without it.
 *
 * A program that knows nothing of it is told by FAILCALLS=KIND:N in the environment. */
#ifndef HR_T_FAULT_FAILCALLS_H
#define HR_T_FAULT_FAILCALLS_H

#include <stdbool.h>

enum failcalls_kind {
	FAILCALLS_ALLOC, /* malloc and its kin: no memory */
	FAILCALLS_SYS,   /* system calls: an error that they really give */
	FAILCALLS_INTR,  /* those that may be interrupted: EINTR, nothing done */
	FAILCALLS_SHORT, /* read, write and their kin on files, pipes and streams: half of it done
			  */
	FAILCALLS_KINDS,
};

/* From now on the calls of this kind are counted, and the one with number `at` is spoilt; 0: none.
 */
void failcalls_arm(enum failcalls_kind kind, long at) __attribute__((weak));
/* How many there were. */
long failcalls_disarm(void) __attribute__((weak));
/* Between true and false, which may be nested, nothing is counted or spoilt: a scenario sets its
 * table, or looks at it. */
void failcalls_spare(bool on) __attribute__((weak));
/* Blocks of memory given out and not freed since the program started. */
long failcalls_live(void) __attribute__((weak));

#endif
