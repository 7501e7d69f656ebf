/* Holds two tables: control characters and named keys. */
#include "config.h"

#include "shell/keys.h"

#include <string.h>

#include "shell/text.h"

static const struct {
	const char *name, *bytes;
	const char *app_bytes; /* bytes in application cursor mode; NULL: the same as `bytes` */
} key_table[] = {
    {"Enter", "\r", NULL},
    {"Tab", "\t", NULL},
    {"BTab", "\033[Z", NULL},
    {"Space", " ", NULL},
    {"BSpace", "\177", NULL},
    {"Escape", "\033", NULL},
    {"Up", "\033[A", "\033OA"},
    {"Down", "\033[B", "\033OB"},
    {"Right", "\033[C", "\033OC"},
    {"Left", "\033[D", "\033OD"},
    {"Home", "\033[1~", NULL},
    {"End", "\033[4~", NULL},
    {"PageUp", "\033[5~", NULL},
    {"PageDown", "\033[6~", NULL},
    {"Insert", "\033[2~", NULL},
    {"Delete", "\033[3~", NULL},
    {"F1", "\033OP", NULL},
    {"F2", "\033OQ", NULL},
    {"F3", "\033OR", NULL},
    {"F4", "\033OS", NULL},
    {"F5", "\033[15~", NULL},
    {"F6", "\033[17~", NULL},
    {"F7", "\033[18~", NULL},
    {"F8", "\033[19~", NULL},
    {"F9", "\033[20~", NULL},
    {"F10", "\033[21~", NULL},
    {"F11", "\033[23~", NULL},
    {"F12", "\033[24~", NULL},
    {"c-c", "\003", NULL},
    {"^C", "\003", NULL},
};

bool
hr_key_is_special(const char *text, size_t len)
{
	return len >= 3 && text[0] == 'C' && text[1] == '-' && hr_shell_count(text, len) == 3;
}

/* Returns the byte of C-<c>, or -1. */
static int
control_byte(char c)
{
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 1;
	if (c >= 'A' && c <= 'Z')
		return c - 'A' + 1;
	switch (c) {
	case '@':
	case '2': return 0x00;
	case '[': return 0x1B;
	case '\\': return 0x1C;
	case ']': return 0x1D;
	case '^': return 0x1E;
	case '_':
	case '/':
	case '-': return 0x1F;
	case '?': return 0x7F;
	default: return -1;
	}
}

int
hr_key_bytes(const char *text, size_t len, bool app_cursor, char *ret, size_t room, size_t *ret_len,
    struct hr_err *err)
{
	size_t i;

	hr_assert(room >= HR_KEY_MAX);
	*ret_len = 0;
	if (hr_key_is_special(text, len)) {
		int c = len == 3 ? control_byte(text[2]) : -1;

		if (c < 0)
			return hr_err_set(err, HR_E_INVAL,
			    "ERROR: There is no key %.*s. Control keys are C-a to C-z, C-@, C-[, "
			    "C-\\, "
			    "C-], C-^, C-_ and C-?.",
			    (int)len, text);
		ret[0] = (char)c;
		*ret_len = 1;
		return 0;
	}
	for (i = 0; i < sizeof(key_table) / sizeof(key_table[0]); i++) {
		const char *bytes = key_table[i].bytes;

		if (strlen(key_table[i].name) != len || memcmp(key_table[i].name, text, len) != 0)
			continue;
		if (app_cursor && key_table[i].app_bytes)
			bytes = key_table[i].app_bytes;
		*ret_len = strlen(bytes);
		memcpy(ret, bytes, *ret_len);
		break;
	}
	return 0;
}
