/* Reads content types like Python's email package. */
#include "config.h"

#include "worker/request/body.h"

#include <string.h>
#include <strings.h>

/* Returns the media type: the part before the first ';', without blanks around it. */
static const char *
media_of(const char *content_type, size_t *ret_len)
{
	size_t len = strcspn(content_type, ";");

	while (len > 0 && strchr(" \t\r\n\f\v", content_type[len - 1]) != NULL)
		len--;
	while (len > 0 && strchr(" \t\r\n\f\v", *content_type) != NULL) {
		content_type++;
		len--;
	}
	*ret_len = len;
	return content_type;
}

bool
hr_body_is_type(const char *content_type, const char *media)
{
	size_t len;
	const char *m = media_of(content_type, &len);

	return len == strlen(media) && strncasecmp(m, media, len) == 0;
}

bool
hr_body_is_json(const char *content_type)
{
	static const char prefix[] = "application/";
	const size_t prefix_len = sizeof(prefix) - 1;
	size_t len;
	const char *m = media_of(content_type, &len);

	if (content_type[0] == '\0')
		return true;
	if (len < prefix_len || strncasecmp(m, prefix, prefix_len) != 0)
		return false;
	m += prefix_len;
	len -= prefix_len;
	if (memchr(m, '/', len) != NULL)
		return false;
	return (len == 4 && strncasecmp(m, "json", 4) == 0) ||
	       (len >= 5 && strncasecmp(m + len - 5, "+json", 5) == 0);
}
