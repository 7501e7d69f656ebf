/* Finds secrets in a text, the longest first. */
#include "config.h"

#include "host/mask.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define MASK "******"

/* Guards the tokens: a log's thread reads them while a refresh may replace them. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static bool
is_secret(const char *entry, size_t name)
{
	static const char *const marks[] = {"SECRET", "_KEY", "_CODE", "_TOKEN"};
	char upper[256];
	size_t i;

	if (name >= sizeof(upper))
		return false;
	for (i = 0; i < name; i++)
		upper[i] = (char)toupper((unsigned char)entry[i]);
	upper[name] = '\0';
	for (i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (strstr(upper, marks[i]) != NULL)
			return true;
	return false;
}

/* Returns the length of the longest secret at the start of text, or 0. */
static size_t
secret_at(const char *const *env, const char *text, size_t len)
{
	size_t longest = 0;

	for (; env != NULL && *env != NULL; env++) {
		const char *eq = strchr(*env, '=');
		size_t n = eq != NULL ? strlen(eq + 1) : 0;

		if (n > 2 && n > longest && n <= len && memcmp(eq + 1, text, n) == 0 &&
		    strcmp(eq + 1, "default") != 0 && is_secret(*env, (size_t)(eq - *env)))
			longest = n;
	}
	return longest;
}

static size_t
any_secret_at(const struct hr_sandbox *s, const char *text, size_t len)
{
	const char *const *const lists[] = {hr_strv_list(&s->environ), hr_strv_list(&s->tokens),
	    hr_strv_list(&s->secrets), s->host.env};
	size_t longest = 0, n;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		n = secret_at(lists[i], text, len);
		longest = n > longest ? n : longest;
	}
	return longest;
}

void
hr_mask_add(const struct hr_sandbox *s, struct hr_buf *out, const char *text, size_t len)
{
	size_t n;

	(void)pthread_mutex_lock(&changing);
	while (len > 0) {
		n = any_secret_at(s, text, len);
		if (n > 0)
			hr_buf_adds(out, MASK);
		else
			hr_buf_addc(out, *text);
		n += n == 0;
		text += n;
		len -= n;
	}
	(void)pthread_mutex_unlock(&changing);
}

void
hr_mask_text(const struct hr_sandbox *s, const char *text, char *out, size_t cap)
{
	const size_t len = strlen(text);
	HR_BUF(b, len * strlen(MASK) + 1);

	hr_mask_add(s, &b, text, len);
	(void)snprintf(out, cap, "%s", hr_buf_str(&b));
}

int
hr_mask_err_set(
    const struct hr_sandbox *s, struct hr_err *err, enum hr_errc code, const char *fmt, ...)
{
	HR_FREE char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return hr_err_nomem(err);
	(void)hr_err_set(err, code, "%s", "");
	if (err != NULL)
		hr_mask_text(s, text, err->msg, sizeof(err->msg));
	return -1;
}

void
hr_mask_error(const struct hr_sandbox *s, struct hr_err *err)
{
	char text[sizeof(err->msg)];

	if (err == NULL)
		return;
	hr_mask_text(s, err->msg, text, sizeof(text));
	(void)snprintf(err->msg, sizeof(err->msg), "%s", text);
}

void
hr_mask_token(struct hr_sandbox *s, const char *entry)
{
	(void)pthread_mutex_lock(&changing);
	hr_strv_set_env(&s->tokens, entry);
	(void)pthread_mutex_unlock(&changing);
}
