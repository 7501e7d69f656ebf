/* Detects a charset in the contract's order: mark, the file's own declaration, UTF-8, statistics.
 * Bytes that are valid UTF-8 beyond ASCII are UTF-8 whatever the file declares. */
#include "config.h"

#include "files/charset/encoding.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "files/charset/charset.h"
#include "files/charset/guess.h"
#include "base/text/utf8.h"

#define DECLARED_IN 8192
#define SEPARATORS_MAX 10
#define GARBAGE_PERCENT 2

static bool
is_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* Returns the length of the name, and its place, if a declaration begins at p; otherwise 0. */
static size_t
declaration(const char *p, const char *end, const char **ret_name)
{
	static const char *const words[] = {"encoding", "charset", "coding"};
	const char *s = NULL, *name;
	size_t i, n;

	for (i = 0; i < 3 && s == NULL; i++) {
		n = strlen(words[i]);
		if ((size_t)(end - p) > n && strncasecmp(p, words[i], n) == 0)
			s = p + n;
	}
	if (s == NULL)
		return 0;
	for (n = 0; n < SEPARATORS_MAX && s < end && (*s == ':' || *s == '=' || *s == ' '); n++)
		s++;
	if (n == 0)
		return 0;
	if (s < end && (*s == '"' || *s == '\''))
		s++;
	for (name = s; s < end && is_name(*s); s++)
		;
	*ret_name = name;
	return (size_t)(s - name);
}

/* Returns the first known charset that the file declares, or NULL if there is none or it is one
 * that only the bytes can prove. p is ASCII. */
static const struct hr_charset *
find_declared(const char *p, size_t len)
{
	const char *end = p + len, *name = NULL;
	const struct hr_charset *c;
	size_t n;
	bool is_text;

	while (p < end) {
		n = strchr("eEcC", *p) != NULL ? declaration(p, end, &name) : 0;
		if (n == 0) {
			p++;
			continue;
		}
		p = name + n;
		c = hr_charset_find(name, n, &is_text);
		if (c != NULL)
			return is_text ? c : NULL;
	}
	return NULL;
}

static bool
is_garbage(const char *p, size_t len)
{
	const char *end = p + len;
	size_t n, chars = 0, bad = 0;
	int32_t cp;

	for (; p < end; p += n, chars++) {
		cp = hr_utf8_next(p, end, &n);
		bad += (cp < 0x20 && (cp < 0x08 || cp > 0x0D) && cp != 0x1B) ||
		       (cp >= 0x7F && cp < 0xA0);
	}
	return bad * 100 > chars * GARBAGE_PERCENT;
}

static const struct hr_charset *
declared(const char *p, size_t len)
{
	size_t head = len < DECLARED_IN ? len : DECLARED_IN, i, n = 0;
	const struct hr_charset *c;
	char ascii[DECLARED_IN];
	HR_BUF(text, len * 4 + 16);
	bool good;

	for (i = 0; i < head; i++)
		if ((unsigned char)p[i] < 0x80 && p[i] != '\0')
			ascii[n++] = p[i];
	c = find_declared(ascii, n);
	if (c == NULL)
		return NULL;
	good = hr_charset_decode(c, p, len, &text, NULL) == 0 && text.fail == HR_OK &&
	       !is_garbage(hr_buf_str(&text), text.len);
	return good ? c : NULL;
}

/* Returns the sample's length without a character that its end cuts. */
static size_t
sample_len(const char *p, size_t len)
{
	size_t n = HR_ENCODING_SAMPLE;

	if (len <= n)
		return len;
	while (n > HR_ENCODING_SAMPLE - 3 && ((unsigned char)p[n] & 0xC0) == 0x80)
		n--;
	return n;
}

void
hr_encoding_detect(const char *p, size_t len, struct hr_encoding *ret)
{
	enum hr_bom bom = hr_charset_bom(p, len);
	size_t n = sample_len(p, len);
	const struct hr_charset *c = NULL;
	bool high;

	ret->charset = &hr_charset_utf8;
	ret->mark = bom == HR_BOM_UTF8;
	if (bom != HR_BOM_NONE && bom != HR_BOM_ODD) {
		ret->charset = hr_charset_of_bom(bom);
		return;
	}
	high = hr_charset_has_high(p, n);
	if (high && hr_charset_check_utf8(p, n, NULL) == 0)
		return;
	c = declared(p, n);
	if (c == NULL && high)
		c = hr_guess_charset(p, n);
	if (c != NULL)
		ret->charset = c;
}
