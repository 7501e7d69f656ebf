/* hr_origins: the words of the setting cors_origins. Pure. */
#ifndef HR_SUPERVISOR_SETTINGS_ORIGINS_H
#define HR_SUPERVISOR_SETTINGS_ORIGINS_H

#include <stddef.h>

#define HR_ORIGINS_SEPARATORS ", \t"

enum hr_origins_word {
	HR_ORIGINS_BAD,
	HR_ORIGINS_ANY,    /* "*": pages of any origin */
	HR_ORIGINS_ORIGIN, /* a scheme, "://" and a host, perhaps with a port */
	HR_ORIGINS_HOST    /* a host: any scheme and port */
};

/* Returns the type of a word; a good one has no character with a meaning in nginx's configuration.
 */
enum hr_origins_word hr_origins_type(const char *word, size_t len);

#endif
