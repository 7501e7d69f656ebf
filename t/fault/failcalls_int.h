/* What the parts of failcalls.so share: how a call finds the one that it stands before. */
#ifndef HR_T_FAULT_FAILCALLS_INT_H
#define HR_T_FAULT_FAILCALLS_INT_H

#include <stddef.h>

#define FAILCALLS_OWN __attribute__((visibility("hidden")))

/* A call that libc, or a library, has under this name. All stand in one section, a table. */
struct wrapped {
	const char *name;
	void *real;
};

/* What is behind w, looked for once. */
FAILCALLS_OWN void *failcalls_resolve(struct wrapped *w);

/* Without a name: `real` is what is behind this one. */
#define REAL(name)                                                                                 \
	static struct wrapped wrapped                                                              \
	    __attribute__((section("wrapped"), aligned(sizeof(void *)))) = {#name, NULL};          \
	__typeof__(name) *real;                                                                    \
	*(void **)&real = failcalls_resolve(&wrapped)

/* Above 0 memory does not fail. */
extern FAILCALLS_OWN int failcalls_spared;

#endif
