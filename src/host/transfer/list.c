/* Lists directories by pages of the sandbox's server. A server without that endpoint, or a back-end
 * without a server, lists by hr_sandbox_list_files(). */
#include "config.h"

#include "host/transfer/list.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/text/percent.h"
#include "host/handle.h"
#include "host/report.h"
#include "host/transfer/cp.h"
#include "proto/json.h"

#define PAGE_TIMEOUT_S 10
#define PAGE_LIMIT 10000
#define LIST_TIMEOUT_S 120
#define URL_PART_MAX 65536
#define NAME_LEN_MAX 65536
#define LIST_MAX (64u << 20) /* bytes of all names, each with some for its place */
#define NAME_EXTRA 32

/* A list that is being read. */
struct list {
	struct hr_sandbox *s;
	const char *path; /* absolute */
	struct hr_strv *names;
	struct hr_buf after; /* the last name of the previous page; "" before the first page */
	size_t bytes;        /* that all names take */
	int64_t unnamed;     /* names that the server has left out */
	bool more;
};

/* Appends the bytes of a name. */
static void
put_name(struct hr_buf *b, const char *name, bool encoded)
{
	if (encoded)
		hr_percent_decode(b, name, strlen(name), false);
	else
		hr_buf_adds(b, name);
}

static int
too_long(const struct list *l, struct hr_err *err)
{
	return hr_err_set(err, HR_E_TOOLARGE, "the list of %s is too long", l->path);
}

static int
take_page(struct list *l, struct json_object *page, struct hr_err *err)
{
	struct json_object *entries = hr_json_typed_at(page, "entries", HR_PY_LIST);
	const char *next = hr_json_text_at(page, "next"), *name;
	const bool encoded = hr_json_true_at(page, "encoded");
	size_t i;

	if (entries == NULL || (next != NULL && hr_json_count(entries) != PAGE_LIMIT))
		return hr_err_set(
		    err, HR_E_RUNTIME, "the server's list of %s is not a page of names", l->path);
	for (i = 0; i < hr_json_count(entries); i++) {
		HR_BUF(bytes, NAME_LEN_MAX);

		name = hr_json_text_at(hr_json_entry(entries, i), "name");
		if (name == NULL)
			continue;
		put_name(&bytes, name, encoded);
		if (hr_buf_check(&bytes, err) != 0)
			return -1;
		l->bytes += bytes.len + NAME_EXTRA;
		if (l->bytes > LIST_MAX)
			return too_long(l, err);
		hr_strv_add(l->names, hr_buf_str(&bytes));
	}
	l->unnamed = hr_json_int_at(page, "unnamed");
	l->more = next != NULL;
	hr_buf_reset(&l->after);
	put_name(&l->after, next != NULL ? next : "", encoded);
	return l->names->failed ? hr_err_nomem(err) : hr_buf_check(&l->after, err);
}

/* Returns 1; 0 if the server has no such directory, or not this endpoint or no such pages; or -1
 * with *err set. */
static int
read_page(struct list *l, struct hr_err *err)
{
	struct hr_http_request req = {.method = "GET", .timeout_s = PAGE_TIMEOUT_S, .watch_fd = -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_PUT struct json_object *page = NULL;
	struct hr_json_error why = {0};
	struct hr_err e = {0};
	HR_BUF(url, URL_PART_MAX);

	hr_buf_addf(&url, "/handrail/v1/files?limit=%d&encoded=true&path=", PAGE_LIMIT);
	hr_http_escape(&url, l->path);
	hr_buf_adds(&url, "&after=");
	hr_http_escape(&url, hr_buf_str(&l->after));
	if (hr_buf_check(&url, err) != 0)
		return -1;
	req.url = url.p;
	if (hr_client_send(&l->s->client, &req, &a, &e) != 0) {
		if (e.code == HR_E_HTTP_STATUS &&
		    (e.status == 400 || e.status == 404 || e.status == 405))
			return 0;
		if (e.code == HR_E_HTTP_TIMEOUT)
			(void)hr_err_set(
			    &e, HR_E_RUNTIME_TIMEOUT, "List files operation timed out");
		return hr_err_pass(err, &e);
	}
	if (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, &page, &why) != 0)
		return hr_json_err(
		    err, HR_E_RUNTIME, &why, "the server's list of files is not JSON");
	return take_page(l, page, err) == 0 ? 1 : -1;
}

/* Returns as read_page() does. */
static int
read_pages(struct list *l, struct hr_err *err)
{
	const int64_t end = hr_now_ms() + LIST_TIMEOUT_S * 1000;
	int r = read_page(l, err);

	while (r > 0 && l->more) {
		r = hr_now_ms() < end ? read_page(l, err) : too_long(l, err);
		if (r == 0)
			r = hr_err_set(
			    err, HR_E_NOTFOUND, "%s was removed while it was listed", l->path);
	}
	return r;
}

/* Takes the list of a server without the endpoint, or of the back-end itself. */
static int
take_old(struct list *l, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	HR_FREE char *text = NULL;
	struct hr_json_error why = {0};
	const char *name;
	size_t i;

	if (hr_sandbox_list_files(l->s, l->path, &text, err) != 0)
		return -1;
	if (hr_json_decode_foreign(text, strlen(text), &list, &why) != 0 ||
	    hr_json_type(list) != HR_PY_LIST)
		return hr_json_err(
		    err, HR_E_RUNTIME, &why, "the server's list of files is not JSON");
	for (i = 0; i < hr_json_count(list); i++)
		if ((name = hr_json_text(hr_json_entry(list, i))) != NULL)
			hr_strv_add(l->names, name);
	return l->names->failed ? hr_err_nomem(err) : 0;
}

/* Lists a path that the server has not listed as a directory. `given` is the path as the user wrote
 * it. */
static int
list_other(struct list *l, const char *given, bool direct, struct hr_err *err)
{
	enum hr_cp_what there = HR_CP_UNKNOWN;

	if (direct && take_old(l, err) != 0)
		return -1;
	if (l->names->n > 0)
		return 0;
	if (hr_cp_look(l->s, l->path, &there, err) != 0)
		return -1;
	if (there == HR_CP_NOTHING)
		return hr_err_set(
		    err, HR_E_NOTFOUND, "there is no file or directory %s in the sandbox", l->path);
	if (there == HR_CP_FILE) {
		hr_strv_add(l->names, given);
		return l->names->failed ? hr_err_nomem(err) : 0;
	}
	if (direct)
		return 0;
	if (take_old(l, err) != 0)
		return -1;
	if (l->names->n == 0)
		hr_sandbox_log(l->s,
		    "%.900s: the directory is empty, or the sandbox's server, which is old, cannot "
		    "list it",
		    l->path);
	return 0;
}

int
hr_cp_list(struct hr_sandbox *s, const char *path, struct hr_strv *ret, struct hr_err *err)
{
	const bool direct = hr_cp_is_direct(s);
	HR_FREE char *whole = hr_cp_path(s, path);
	struct list l = {.s = s, .path = whole, .names = ret};
	int r;

	if (whole == NULL)
		return hr_err_nomem(err);
	hr_buf_init(&l.after, NAME_LEN_MAX);
	r = direct ? 0 : read_pages(&l, err);
	hr_buf_done(&l.after);
	if (r == 0)
		return list_other(&l, path, direct, err);
	if (r > 0 && l.unnamed > 0)
		hr_sandbox_log(s, "%.900s: %lld names that are not UTF-8 or too long are left out",
		    whole, (long long)l.unnamed);
	return r > 0 ? 0 : -1;
}
