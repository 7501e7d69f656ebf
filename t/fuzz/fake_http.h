/* What stands in for src/http in a fuzz target: the answers are the input's. One after the other,
 * each is a byte that chooses the status and a body up to the byte 0x1E; after the last nobody
 * answers any more. */
#ifndef HR_T_FUZZ_FAKE_HTTP_H
#define HR_T_FUZZ_FAKE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* engine: an Engine that answers well, with a container that runs, is there for what goes to a Unix
 * socket; the input is for the others. */
void fake_http_answers(const char *p, size_t len, bool engine);

#endif
