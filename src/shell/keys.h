/* Names of keys, as the input of a `run` action may be one, and the bytes they send: those of
 * tmux send-keys. */
#ifndef HR_SHELL_KEYS_H
#define HR_SHELL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HR_KEY_MAX 8 /* bytes any key sends, at most */

/* A special key: exactly three characters, the first two of them "C-". Says nothing about whether
 * the key exists. */
bool hr_key_is_special(const char *text, size_t len);

/* The bytes of the key that `text`, typed for a running program, stands for: special keys; c-c and
 * ^C; and exactly Enter Tab BTab Space BSpace Escape Up Down Left Right Home End PageUp PageDown
 * Insert Delete F1 to F12. `app_cursor`: the program has switched the terminal to application
 * cursor keys.
 *
 * *ret_len is 0 if the text is no key's name. -1 with HR_E_INVAL and a text for the observation if
 * it is a special key that does not exist. `room` must be at least HR_KEY_MAX. */
int hr_key_bytes(const char *text, size_t len, bool app_cursor, char *ret, size_t room,
    size_t *ret_len, struct hr_err *err);

#endif
