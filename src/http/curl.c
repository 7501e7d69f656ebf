/* dlopen() of libcurl, once for each process. */
#include "config.h"

#include "http/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"

struct hr_curl hr_curl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[200]; /* it cannot be used; "": it can */

static void
load(void)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const struct {
		const char *name;
		void *place;
	} all[] = {
#define PLACE(call) {"curl_" #call, &hr_curl.call},
	    HR_CURL_CALLS(PLACE)
#undef PLACE
	};
	void *found;
	const char *text;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		found = lib != NULL ? dlsym(lib, all[i].name) : NULL;
		if (found == NULL) {
			text = dlerror();
			(void)snprintf(why, sizeof(why), "%s", text != NULL ? text : all[i].name);
			return;
		}
		memcpy(all[i].place, &found, sizeof(found));
	}
}

int
hr_curl_load(struct hr_err *err)
{
	(void)pthread_once(&once, load); /* cannot fail: it was initialised */
	return *why == '\0'
		   ? 0
		   : hr_err_set(err, HR_E_NOTFOUND,
			 "libcurl, which this request needs, cannot be loaded (%s); Debian "
			 "has it in the package libcurl4",
			 why);
}
