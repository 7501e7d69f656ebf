/* Implements hr_fleet_form: see its header. Names reach a Docker Engine and a file, so they may
 * have few characters. */
#include "config.h"

#include "fleet/build/buildform.h"

#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "base/text/quote.h"
#include "files/params.h"

#define NAME_MAX_BYTES 255
#define CHUNK 65536
#define BLOCK 512 /* bytes of a tar header */

static int
write_bytes(struct hr_fleet_form *f, const char *p, size_t len)
{
	f->written += len;
	if (f->written > HR_FLEET_CONTEXT_MAX)
		return hr_err_set(&f->why, HR_E_TOOLARGE, "the build folder has more than %u MB",
		    HR_FLEET_CONTEXT_MAX >> 20);
	return hr_fd_write_full(f->fd, p, len, &f->why);
}

/* Decodes as much of `rest` as forms whole bytes; with `last`, nothing may be left. */
static int
decode(struct hr_fleet_form *f, bool last)
{
	size_t n = last ? f->rest.len : f->rest.len / 4 * 4;
	HR_BUF(out, 2 * CHUNK);
	int r = 0;

	if (n == 0)
		return 0;
	if (!hr_quote_unbase64(&out, hr_buf_str(&f->rest), n))
		r = hr_err_set(&f->why, HR_E_INVAL, "the build folder is not base64");
	else if (hr_buf_check(&out, &f->why) != 0)
		r = -1;
	else
		r = write_bytes(f, out.p, out.len);
	hr_buf_drop_front(&f->rest, n);
	return r;
}

/* Returns true for base64. A tar's first block, like a compressor's output, has bytes that base64
 * never has. */
static bool
is_text(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)p[i] < ' ' ? p[i] != '\n' && p[i] != '\r'
					      : (unsigned char)p[i] >= 0x7f)
			return false;
	return true;
}

/* Decides whether the folder is base64. Called with the first block, or the whole of a shorter
 * folder. */
static int
begin_context(struct hr_fleet_form *f)
{
	int r;

	f->begun = true;
	f->plain = !is_text(hr_buf_str(&f->rest), f->rest.len);
	if (!f->plain)
		return decode(f, false);
	r = write_bytes(f, f->rest.p, f->rest.len);
	hr_buf_reset(&f->rest);
	return r;
}

static int
put_context(struct hr_fleet_form *f, const char *p, size_t len)
{
	size_t n;

	for (; len > 0 && !f->plain; p += n, len -= n) {
		n = f->begun ? CHUNK : BLOCK - f->rest.len;
		n = len < n ? len : n;
		hr_buf_add(&f->rest, p, n);
		if (hr_buf_check(&f->rest, &f->why) != 0)
			return -1;
		if (!f->begun && f->rest.len < BLOCK)
			continue;
		if ((f->begun ? decode(f, false) : begin_context(f)) != 0)
			return -1;
	}
	return len > 0 ? write_bytes(f, p, len) : 0;
}

static int
on_begin(void *arg, const char *disposition, size_t len)
{
	struct hr_fleet_form *f = arg;
	const char *name;
	HR_BUF(b, HR_MULTIPART_HEADERS_MAX);

	f->part = HR_FORM_OTHER;
	hr_buf_reset(&f->name);
	if (disposition != NULL && hr_params_get(disposition, len, "name", &b)) {
		name = hr_buf_str(&b);
		f->target = strcmp(name, "target_image") == 0;
		if (strcmp(name, "context") == 0)
			f->part = HR_FORM_CONTEXT;
		else if (f->target || strcmp(name, "tags") == 0)
			f->part = HR_FORM_NAME;
	}
	if ((f->part == HR_FORM_CONTEXT && f->has_context) ||
	    (f->part == HR_FORM_NAME && f->target && f->has_target))
		return hr_err_set(
		    &f->why, HR_E_INVAL, "a build has one context and one target_image");
	if (f->part == HR_FORM_NAME && f->names.n >= HR_FLEET_NAMES_MAX)
		return hr_err_set(
		    &f->why, HR_E_INVAL, "a build has up to %d names", HR_FLEET_NAMES_MAX);
	return 0;
}

static int
on_data(void *arg, const char *p, size_t len)
{
	struct hr_fleet_form *f = arg;

	if (f->part == HR_FORM_CONTEXT)
		return put_context(f, p, len);
	if (f->part == HR_FORM_NAME) {
		if (f->name.len + len > NAME_MAX_BYTES)
			return hr_err_set(&f->why, HR_E_INVAL, "the name of an image is too long");
		hr_buf_add(&f->name, p, len);
	}
	return 0;
}

/* Moves the target to the front of the names, wherever it stood. */
static int
on_end(void *arg)
{
	struct hr_fleet_form *f = arg;
	char *last;

	if (f->part == HR_FORM_CONTEXT) {
		f->has_context = true;
		if (!f->begun && begin_context(f) != 0)
			return -1;
		return decode(f, true);
	}
	if (f->part != HR_FORM_NAME)
		return 0;
	hr_strv_add(&f->names, hr_buf_str(&f->name));
	if (f->names.failed)
		return hr_err_nomem(&f->why);
	if (f->target) {
		last = f->names.v[f->names.n - 1];
		memmove(f->names.v + 1, f->names.v, (f->names.n - 1) * sizeof(*f->names.v));
		f->names.v[0] = last;
		f->has_target = true;
	}
	return 0;
}

static const struct hr_multipart_ops ops = {on_begin, on_data, on_end};

int
hr_fleet_form_init(struct hr_fleet_form *f, const char *type, int fd, struct hr_err *err)
{
	HR_BUF(boundary, HR_MULTIPART_HEADERS_MAX);
	int r = -1;

	memset(f, 0, sizeof(*f));
	f->fd = fd;
	hr_buf_init(&f->rest, 2 * CHUNK);
	hr_buf_init(&f->name, NAME_MAX_BYTES + 1);
	if (strncasecmp(type, "multipart/form-data", 19) == 0 &&
	    hr_params_get(type, strlen(type), "boundary", &boundary))
		r = hr_multipart_init(&f->m, hr_buf_str(&boundary), boundary.len, &ops, f);
	return r == 0 ? 0
		      : hr_err_set(err, HR_E_INVAL,
			    "a build is sent as multipart/form-data with a boundary");
}

int
hr_fleet_form_feed(struct hr_fleet_form *f, const char *p, size_t len, struct hr_err *err)
{
	if (hr_multipart_feed(&f->m, p, len, &f->why) == 0)
		return 0;
	return hr_err_pass(err, &f->why);
}

/* Returns true for an image name with a tag below the prefix. */
static bool
is_below(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);
	const char *tag;

	if (strncmp(name, prefix, n) != 0 || name[n] != '/')
		return false;
	tag = strrchr(name + n + 1, ':');
	return tag != NULL && tag != name + n + 1 && tag[1] != '\0' && strchr(tag, '/') == NULL &&
	       strspn(name + n + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-/:") == strlen(name + n + 1) &&
	       strstr(name, "..") == NULL;
}

int
hr_fleet_form_check(struct hr_fleet_form *f, const char *prefix, struct hr_err *err)
{
	size_t i;

	if (!f->has_context || f->written == 0 || !f->has_target)
		return hr_err_set(
		    err, HR_E_INVAL, "a build has the parts context and target_image");
	for (i = 0; i < f->names.n; i++)
		if (!is_below(f->names.v[i], prefix))
			return hr_err_set(err, HR_E_INVAL,
			    "images are built below \"%s\", with a tag; see /registry_prefix",
			    prefix);
	return 0;
}

void
hr_fleet_form_done(struct hr_fleet_form *f)
{
	hr_multipart_done(&f->m);
	hr_strv_done(&f->names);
	hr_buf_done(&f->rest);
	hr_buf_done(&f->name);
}
