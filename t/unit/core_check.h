/* What the tests of the core have in common: one world, ready for its first command. */
#ifndef HR_T_CORE_CHECK_H
#define HR_T_CORE_CHECK_H

#include "core_fake.h"

extern struct fake f;

void core_setup(void);
void core_teardown(void);
/* Exactly the result number n was given, and these are its texts. */
void check_result(unsigned n, const char *content, const char *prefix, const char *suffix);
void check_no_metadata(void);
void check_completed(unsigned n, const char *content, int exit_code);
/* A command that has started and was answered with B; `shown` was its output. */
void leave_running(const char *shown);
void check_nothing_typed(void);

#endif
