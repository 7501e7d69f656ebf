/* br_keys: names of keys, as those of a keyboard of the United States. Pure. */
#ifndef HR_PLUGINS_BROWSER_ACT_KEYS_H
#define HR_PLUGINS_BROWSER_ACT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct br_key {
	const char *code;
	char key[24];
	char text[8];      /* what it types; "" nothing */
	int number;        /* Windows' virtual key code, left and right alike */
	int location;      /* 0; 1 left, 2 right, 3 keypad */
	unsigned modifier; /* its bit (program.h) */
};

/* A key by its code ("KeyA"), its name ("Enter", "Control") or what it types ("a", "A", "!").
 * shifted: Shift is held. false: there is none. */
bool br_key_find(struct br_key *ret, const char *name, size_t len, bool shifted);

#endif
