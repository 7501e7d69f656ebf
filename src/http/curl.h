/* hr_curl: loads libcurl with the first request that needs it. It needs some 35 libraries, which
 * take ten times as long to load as a program of handrail; most requests need none of them. */
#ifndef HR_HTTP_CURL_H
#define HR_HTTP_CURL_H

#include <curl/curl.h>

#include "base/err.h"

/* The libcurl functions in use, by their names without "curl_". */
#define HR_CURL_CALLS(X)                                                                           \
	X(easy_cleanup)                                                                            \
	X(easy_getinfo)                                                                            \
	X(easy_init)                                                                               \
	X(easy_perform)                                                                            \
	X(easy_recv)                                                                               \
	X(easy_send)                                                                               \
	X(easy_setopt)                                                                             \
	X(easy_strerror)                                                                           \
	X(getdate)                                                                                 \
	X(mime_addpart)                                                                            \
	X(mime_filedata)                                                                           \
	X(mime_filename)                                                                           \
	X(mime_free)                                                                               \
	X(mime_init)                                                                               \
	X(mime_name)                                                                               \
	X(multi_add_handle)                                                                        \
	X(multi_cleanup)                                                                           \
	X(multi_info_read)                                                                         \
	X(multi_init)                                                                              \
	X(multi_perform)                                                                           \
	X(multi_poll)                                                                              \
	X(multi_remove_handle)                                                                     \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(version_info)

struct hr_curl {
#define HR_CURL_MEMBER(name) __typeof__(curl_##name) *name;
	HR_CURL_CALLS(HR_CURL_MEMBER)
#undef HR_CURL_MEMBER
};

/* Valid after hr_curl_load() has returned 0. */
extern struct hr_curl hr_curl;

/* Loads libcurl until the process ends; any thread may call it. Returns -1 if libcurl is missing or
 * too old. */
int hr_curl_load(struct hr_err *err);

#endif
