/* hr_schema: lists every configuration key with its type and default (doc/host.md, "Settings"). */
#ifndef HR_HOST_CONFIG_SCHEMA_H
#define HR_HOST_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

enum hr_key_type { HR_KEY_TEXT, HR_KEY_INT, HR_KEY_FLOAT, HR_KEY_BOOL, HR_KEY_LIST, HR_KEY_MAP };

struct hr_key {
	const char *section; /* "sandbox", "sandbox.limits" */
	const char *name;
	enum hr_key_type type;
	const char *fallback; /* JSON; NULL: there is no default */
	bool secret;
};

extern const struct hr_key hr_keys_all[];
extern const size_t hr_keys_all_n;

const struct hr_key *hr_key_find(const char *section, const char *name, size_t len);
/* Returns true if there is a section of this name. */
bool hr_section_known(const char *section);
/* Returns the section's key most similar to a wrong one, or NULL if none is similar. */
const char *hr_key_nearest(const char *section, const char *name);
/* Returns true for a section of other programs, which is ignored. */
bool hr_section_foreign(const char *section);

#endif
