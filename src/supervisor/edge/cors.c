/* Composes nginx's comparisons of the header Origin. */
#include "config.h"

#include "supervisor/edge/cors.h"

#include <string.h>

#include "supervisor/settings/origins.h"

static int
put_word(struct hr_buf *b, const char *word, size_t len, struct hr_err *err)
{
	bool bare = *word != '[' && memchr(word, ':', len) != NULL; /* an address of IPv6 */

	hr_buf_adds(b, "if ($handrail_cors_asked ");
	switch (hr_origins_type(word, len)) {
	case HR_ORIGINS_ANY: hr_buf_adds(b, "~ \"^Origin .\""); break;
	case HR_ORIGINS_ORIGIN: hr_buf_addf(b, "= \"Origin %.*s\"", (int)len, word); break;
	case HR_ORIGINS_HOST:
		hr_buf_addf(b, "~* \"^Origin [a-z][a-z0-9+.-]*://%s\\Q%.*s\\E%s(:[0-9]*)?$\"",
		    bare ? "\\[" : "", (int)len, word, bare ? "\\]" : "");
		break;
	default:
		return hr_err_set(err, HR_E_INVAL,
		    "cors_origins: \"%.*s\" must be an origin such as https://app.example.org, a "
		    "host, or \"*\"",
		    (int)len, word);
	}
	hr_buf_adds(b, ") {\n\tset $handrail_cors_origin $http_origin;\n}\n");
	return 0;
}

int
hr_cors_compose(struct hr_buf *b, const char *origins, struct hr_err *err)
{
	const char *at = origins + strspn(origins, HR_ORIGINS_SEPARATORS);
	size_t len;

	for (; *at != '\0'; at += len, at += strspn(at, HR_ORIGINS_SEPARATORS)) {
		len = strcspn(at, HR_ORIGINS_SEPARATORS);
		if (put_word(b, at, len, err) < 0)
			return -1;
	}
	return 0;
}
