/* A string of bytes as a play of client, shell and clock around hr_core. */
#ifndef HR_T_CORE_PLAY_H
#define HR_T_CORE_PLAY_H

#include <stddef.h>
#include <stdint.h>

/* Stops the program where something that must always hold does not: one result for each request,
 * results that are whole, no request that waits for ever, no wait that does not end. */
void core_play(const uint8_t *p, size_t len);

#endif
