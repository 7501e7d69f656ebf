#include "config.h"

#include "egress/policy.h"

#include <ctype.h>
#include <string.h>

/* Returns true for a last label that makes resolvers take a name for an address: 127.1, 0x7f.1. */
static bool
is_number(const char *label)
{
	const bool hex = label[0] == '0' && label[1] == 'x';
	const char *digits = hex ? label + 2 : label;

	return digits[strspn(digits, hex ? "0123456789abcdef" : "0123456789")] == '\0';
}

bool
egress_name(const char *text, size_t len, char ret[EGRESS_NAME_MAX + 1])
{
	size_t i, label = 0; /* where the current label begins */

	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > EGRESS_NAME_MAX || text[0] == '-')
		return false;
	for (i = 0; i < len; i++) {
		if (text[i] == '.') {
			if (i == label || i - label > 63)
				return false;
			label = i + 1;
		} else if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_') {
			return false;
		}
		ret[i] = (char)tolower((unsigned char)text[i]);
	}
	ret[len] = '\0';
	return len > label && len - label <= 63 && !is_number(ret + label);
}
