/* hr_key: knows the names of keys in the input of a `run` action, and the bytes that they send:
 * those of tmux send-keys. */
#ifndef HR_SHELL_KEYS_H
#define HR_SHELL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HR_KEY_MAX 8 /* maximum bytes of a key */

/* Returns true for the form of a special key: exactly three characters, the first two "C-". The key
 * need not exist. */
bool hr_key_is_special(const char *text, size_t len);

/* Returns the bytes of the key that `text`, typed for a running program, means: special keys; c-c
 * and ^C; and exactly Enter Tab BTab Space BSpace Escape Up Down Left Right Home End PageUp
 * PageDown Insert Delete F1 to F12. `app_cursor`: the program has switched the terminal to
 * application cursor keys. *ret_len is 0 if the text is no key's name. -1 with HR_E_INVAL and a
 * text for the observation: a special key that does not exist. `room` must be at least
 * HR_KEY_MAX. */
int hr_key_bytes(const char *text, size_t len, bool app_cursor, char *ret, size_t room,
    size_t *ret_len, struct hr_err *err);

#endif
