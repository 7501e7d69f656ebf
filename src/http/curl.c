/* Calls dlopen() for libcurl, once per process. */
#include "config.h"

#include "http/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"
#define OLDEST 0x075500 /* the first version with CURLOPT_PROTOCOLS_STR */
#define OLDEST_TEXT "7.85"

struct hr_curl hr_curl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[200]; /* reason why libcurl cannot be used; "": it can be used */

static void
load(void)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	size_t i;
	const struct {
		const char *name;
		void *place;
	} all[] = {
#define PLACE(call) {"curl_" #call, &hr_curl.call},
	    HR_CURL_CALLS(PLACE)
#undef PLACE
	};
	const curl_version_info_data *info;
	void *found;
	const char *text;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		found = lib != NULL ? dlsym(lib, all[i].name) : NULL;
		if (found == NULL) {
			text = dlerror();
			(void)snprintf(why, sizeof(why), "%s", text != NULL ? text : all[i].name);
			return;
		}
		memcpy(all[i].place, &found, sizeof(found));
	}
	info = hr_curl.version_info(CURLVERSION_NOW);
	if (info->version_num < OLDEST)
		(void)snprintf(why, sizeof(why),
		    "it is version %s, and " OLDEST_TEXT " is the oldest that will do",
		    info->version);
}

int
hr_curl_load(struct hr_err *err)
{
	(void)pthread_once(&once, load); /* cannot fail, since `once` is initialised */
	return *why == '\0'
		   ? 0
		   : hr_err_set(err, HR_E_NOTFOUND,
			 "libcurl, which this request needs, cannot be loaded (%s); Debian "
			 "has it in the package libcurl4",
			 why);
}
