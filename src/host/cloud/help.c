/* Helps providers with keys, environments, timers, interrupted streams and pages. */
#include "config.h"

#include "host/cloud/cloud.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/err.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define KEY_FILE_MAX 8192
#define CUTS_MAX 20
#define AT_ONCE_MS 1000
#define PAGES_MAX 1000

const char *
hr_cloud_env(const struct hr_cloud *c, const char *name, const char *otherwise)
{
	const char *v = hr_env_get(c->h->environ, name);

	return v != NULL ? v : otherwise;
}

/* Reads a key file without trailing white space. The file must not be readable by others. */
static char *
key_of_file(const char *name, const char *path, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(b, KEY_FILE_MAX);
	char *text = NULL;

	if (hr_path_read(path, &b, &e) != 0) {
		(void)hr_err_set(err, HR_E_INVAL, "%s_FILE: %s", name, e.msg);
	} else {
		while (b.len > 0 && strchr(" \t\r\n", b.p[b.len - 1]) != NULL)
			b.p[--b.len] = '\0';
		text = strdup(hr_buf_str(&b));
		if (text == NULL)
			(void)hr_err_nomem(err);
	}
	return text;
}

char *
hr_cloud_key(struct hr_cloud *c, const char *name, struct hr_err *err)
{
	const char *v = hr_env_get(c->h->environ, name), *path;
	char file[100], *key = NULL;

	(void)snprintf(file, sizeof(file), "%s_FILE", name);
	path = hr_env_get(c->h->environ, file);
	if (v == NULL && path == NULL) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "%s environment variable is required for %s runtime", name, c->ops->title);
		return NULL;
	}
	if (v == NULL)
		key = key_of_file(name, path, err);
	else if ((key = strdup(v)) == NULL)
		(void)hr_err_nomem(err);
	if (key == NULL)
		return NULL;
	if (*key == '\0' || strpbrk(key, "\r\n") != NULL) {
		(void)hr_err_set(err, HR_E_INVAL, "%s is empty, or has several lines", name);
		free(key);
		return NULL;
	}
	if (c->h->secret != NULL)
		c->h->secret(c->h->arg, key);
	return key;
}

struct json_object *
hr_cloud_env_object(const char *const *env, struct hr_err *err)
{
	struct json_object *o = json_object_new_object();
	int r = o != NULL ? 0 : hr_err_nomem(err);

	for (; r == 0 && env != NULL && *env != NULL; env++) {
		const char *eq = strchr(*env, '=');
		HR_FREE char *name = eq != NULL ? strndup(*env, (size_t)(eq - *env)) : NULL;

		if (eq == NULL)
			continue;
		r = name != NULL ? hr_json_set(o, name, json_object_new_string(eq + 1), err)
				 : hr_err_nomem(err);
	}
	if (r == 0)
		return o;
	json_object_put(o);
	return NULL;
}

int
hr_cloud_timer(unsigned ms, struct hr_err *err)
{
	const struct itimerspec t = {
	    .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 + 1}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd >= 0 && timerfd_settime(fd, 0, &t, NULL) == 0)
		return fd;
	(void)hr_err_sys(err, errno, "timer");
	hr_fd_close(&fd);
	return -1;
}

void
hr_cloud_hide(struct hr_buf *out, const char *const *secrets, const char *text, size_t len)
{
	const char *const *s;
	size_t n, longest;

	while (len > 0) {
		longest = 0;
		for (s = secrets; s != NULL && *s != NULL; s++) {
			n = strlen(*s);
			if (n > 2 && n > longest && n <= len && memcmp(*s, text, n) == 0)
				longest = n;
		}
		if (longest > 0)
			hr_buf_adds(out, "******");
		else
			hr_buf_addc(out, *text);
		longest += longest == 0;
		text += longest;
		len -= longest;
	}
}

bool
hr_cloud_goes_on(struct hr_cloud_cuts *k, bool came, int64_t now_ms)
{
	k->idle = came || now_ms - k->since_ms >= AT_ONCE_MS ? 0 : k->idle + 1;
	k->since_ms = now_ms;
	return k->idle < CUTS_MAX;
}

int
hr_cloud_page(const char *who, unsigned *n, struct hr_err *err)
{
	return ++*n <= PAGES_MAX
		   ? 0
		   : hr_err_set(err, HR_E_PROTO,
			 "%s: the list of sandboxes does not end: it has more than %d pages", who,
			 PAGES_MAX);
}
