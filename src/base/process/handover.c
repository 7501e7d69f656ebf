/* Keeps descriptors for the next process image. Invariant: each item of the list has an open
 * descriptor of its own or -1. */
#include "config.h"

#include "base/process/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define VARIABLE "HANDRAIL_HANDOVER" /* "PID NAME=FD NAME=FD ..." */
#define FIRST_FD (STDERR_FILENO + 1)
#define NAME_MAX_BYTES 128
#define TEXT_MAX_BYTES (120u << 10) /* the kernel's limit is 128 kB */

/* Takes ownership of name and, on success, of fd. */
static int
append(struct hr_handover *h, char *name, int fd, struct hr_err *err)
{
	struct hr_handed *more = name != NULL ? reallocarray(h->v, h->n + 1, sizeof(*h->v)) : NULL;

	if (more == NULL) {
		free(name);
		return hr_err_nomem(err);
	}
	h->v = more;
	h->v[h->n++] = (struct hr_handed){name, fd};
	return 0;
}

int
hr_handover_add(struct hr_handover *h, int fd, struct hr_err *err, const char *form, ...)
{
	char name[NAME_MAX_BYTES];
	int copy = -1, n;
	va_list ap;

	va_start(ap, form);
	n = vsnprintf(name, sizeof(name), form, ap);
	va_end(ap);
	hr_assert(n > 0 && (size_t)n < sizeof(name) && strpbrk(name, " =") == NULL);
	if (fd >= 0 && (copy = fcntl(fd, F_DUPFD, FIRST_FD)) < 0)
		return hr_err_sys(err, errno, "a copy of %s for the next image", name);
	if (append(h, strdup(name), copy, err) == 0)
		return 0;
	hr_fd_close(&copy);
	return -1;
}

int
hr_handover_show(const struct hr_handover *h, struct hr_err *err)
{
	HR_BUF(text, TEXT_MAX_BYTES);
	size_t i;

	hr_buf_addf(&text, "%ld", (long)getpid());
	for (i = 0; i < h->n; i++)
		hr_buf_addf(&text, " %s=%d", h->v[i].name, h->v[i].fd);
	if (hr_buf_check(&text, err) < 0)
		return -1;
	return setenv(VARIABLE, hr_buf_str(&text), 1) == 0 ? 0 : hr_err_nomem(err);
}

void
hr_handover_hide(void)
{
	(void)unsetenv(VARIABLE); /* fails only for an empty name */
}

static bool
has(const struct hr_handover *h, int fd)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		if (h->v[i].fd == fd)
			return true;
	}
	return false;
}

static int
wrong_form(struct hr_err *err)
{
	return hr_err_set(err, HR_E_PROTO,
	    "the running server hands over its state in a form that this version does not know: "
	    "stop it, then start this version");
}

/* Parses " NAME=FD" and moves *at past it. */
static int
parse_one(struct hr_handover *h, const char **at, struct hr_err *err)
{
	const char *name = *at + 1, *eq;
	char *end;
	long fd;

	eq = **at == ' ' ? strpbrk(name, " =") : NULL;
	if (eq == NULL || *eq != '=' || eq == name)
		return wrong_form(err);
	errno = 0;
	fd = strtol(eq + 1, &end, 10);
	if (end == eq + 1 || (*end != ' ' && *end != '\0') || errno != 0 || fd < -1 ||
	    fd > INT_MAX || (fd >= 0 && (fd < FIRST_FD || has(h, (int)fd))))
		return wrong_form(err);
	*at = end;
	if (fd >= 0 && hr_fd_cloexec((int)fd, err) < 0)
		return -1;
	return append(h, strndup(name, (size_t)(eq - name)), (int)fd, err);
}

static void
close_others(const struct hr_handover *h)
{
	int last = FIRST_FD - 1, fd;
	size_t i;

	for (i = 0; i < h->n; i++)
		last = h->v[i].fd > last ? h->v[i].fd : last;
	hr_fd_close_from(last + 1);
	for (fd = FIRST_FD; fd < last; fd++) {
		if (!has(h, fd))
			(void)close(fd); /* most numbers are not open: EBADF */
	}
}

int
hr_handover_read(struct hr_handover *h, struct hr_err *err)
{
	const char *text = getenv(VARIABLE), *at;
	char *end;
	long pid;
	int r = 0;

	if (text != NULL) {
		pid = strtol(text, &end, 10);
		at = end;
		if (pid != (long)getpid() && pid != (long)getppid())
			at = "";
		while (r == 0 && *at != '\0')
			r = parse_one(h, &at, err);
	}
	hr_handover_hide();
	if (r != 0)
		hr_handover_done(h);
	close_others(h);
	return r;
}

int
hr_handover_take(struct hr_handover *h, const char *name)
{
	size_t i;
	int fd;

	for (i = 0; i < h->n; i++) {
		if (strcmp(h->v[i].name, name) != 0)
			continue;
		fd = h->v[i].fd;
		h->v[i].fd = -1;
		return fd;
	}
	return -1;
}

const char *
hr_handover_next(const struct hr_handover *h, size_t *at, const char *prefix)
{
	while (*at < h->n) {
		const char *name = h->v[(*at)++].name;

		if (strncmp(name, prefix, strlen(prefix)) == 0)
			return name;
	}
	return NULL;
}

void
hr_handover_done(struct hr_handover *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		hr_fd_close(&h->v[i].fd);
		free(h->v[i].name);
	}
	free(h->v);
	*h = (struct hr_handover){NULL, 0};
}
