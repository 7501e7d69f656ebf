/* A driver in t/fault: a table of scenarios. The engine (engine.c) runs each of them again and
 * again while one call after the other fails, each time in a process of its own, and looks at the
 * end. */
#ifndef HR_T_FAULT_FAULT_H
#define HR_T_FAULT_FAULT_H

#include <stddef.h>

#include "base/err.h"

struct fault_scenario {
	const char *name;
	/* 0, or -1 with *err. Everything that was made is given back either way. May run several
	 * times in one process. */
	int (*run)(struct hr_err *err);
	unsigned flags;
};

/* What it tells may change when a call fails and it says 0 all the same: its contract is to do with
 * less (a terminal that drops history, say). */
#define FAULT_LOSSY 1u
/* System calls are left alone; only memory fails. */
#define FAULT_MEMORY_ONLY 2u

extern const struct fault_scenario fault_scenarios[]; /* ends with a NULL name */

/* The result of the scenario, compared with that of a run without failures. Allocates nothing. */
void fault_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fault_tell_bytes(const void *p, size_t len);

/* What must not be, whatever the scenario returns: half a file, a temporary one. */
void fault_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A directory of this run, empty, removed afterwards. */
const char *fault_dir(void);

#endif
