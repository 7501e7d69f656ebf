/* br_keys: knows the names of keys, those of a US keyboard. Pure. */
#ifndef HR_PLUGINS_BROWSER_ACT_KEYS_H
#define HR_PLUGINS_BROWSER_ACT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct br_key {
	const char *code;
	char key[24];
	char text[8];      /* text that the key types; "": none */
	int number;        /* Windows virtual key code, left and right alike */
	int location;      /* 0: one place only; 1: left; 2: right; 3: keypad */
	unsigned modifier; /* bit of a modifier (program.h) */
};

/* Finds a key by its code ("KeyA"), its name ("Enter", "Control") or its text ("a", "A", "!").
 * `shifted`: Shift is held. Returns false if there is none. */
bool br_key_find(struct br_key *ret, const char *name, size_t len, bool shifted);

#endif
