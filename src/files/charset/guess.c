/* Decides whether to believe libuchardet. */
#include "config.h"

#include "files/charset/guess.h"

#include <stdint.h>

#include "base/buf.h"
#include "files/charset/charset.h"
#include "files/charset/detect.h"
#include "base/text/utf8.h"

#define NAME_MAX_LEN 64
#define SCRIPT_SHARE 80   /* percent of the characters beyond ASCII */
#define LATIN_HIGH_MAX 30 /* percent of all bytes: prose has about 5, noise 60 */

/* Returns libuchardet's answer; NULL if it has none, or its answer is not a legacy charset. */
static const struct hr_charset *
detect_charset(const char *p, size_t len)
{
	const struct hr_charset *c = NULL;
	bool is_text = false;
	HR_BUF(name, NAME_MAX_LEN);

	hr_detect_charset(&name, p, len);
	if (name.fail == HR_OK && name.len > 0)
		c = hr_charset_find(name.p, name.len, &is_text);
	return is_text ? c : NULL;
}

/* Returns true for letters and marks of the scripts that have their own charsets. */
static bool
in_script(int32_t cp)
{
	static const struct {
		int32_t from, to;
	} ranges[] = {
	    {0x0370, 0x052F}, /* Greek, Cyrillic */
	    {0x0590, 0x05FF}, /* Hebrew */
	    {0x0600, 0x06FF}, /* Arabic */
	    {0x0E00, 0x0E7F}, /* Thai */
	    {0x3000, 0x30FF}, /* CJK punctuation, kana */
	    {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
	    {0xFF00, 0xFFEF}, /* full and half width */
	};
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (cp >= ranges[i].from && cp <= ranges[i].to)
			return true;
	return false;
}

static bool
is_control(int32_t cp)
{
	if (cp == '\t' || cp == '\n' || cp == '\r' || cp == '\f' || cp == 0x1B || cp == '\b')
		return false;
	return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || (cp >= 0xE000 && cp <= 0xF8FF);
}

enum looks { LOOKS_WRONG, LOOKS_LATIN, LOOKS_FOREIGN };

/* Judges decoded text. */
static enum looks
judge_text(const char *p, size_t len)
{
	const char *end = p + len;
	size_t n, high = 0, script = 0;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (is_control(cp))
			return LOOKS_WRONG;
		if (cp < 0x80)
			continue;
		high++;
		script += in_script(cp);
	}
	return high > 0 && script * 100 >= high * SCRIPT_SHARE ? LOOKS_FOREIGN : LOOKS_LATIN;
}

static enum looks
looks_in(const struct hr_charset *c, const char *p, size_t len)
{
	enum looks found = LOOKS_WRONG;
	HR_BUF(text, len * 4 + 16);

	if (hr_charset_decode(c, p, len, &text, NULL) == 0 && text.fail == HR_OK)
		found = judge_text(hr_buf_str(&text), text.len);
	return found;
}

static const struct hr_charset *
western(const char *p, size_t len)
{
	const struct hr_charset *c;
	size_t i, high = 0;
	bool is_text;

	for (i = 0; i < len; i++)
		high += (unsigned char)p[i] >= 0x80;
	if (high * 100 > len * LATIN_HIGH_MAX)
		return NULL;
	c = hr_charset_find("cp1252", 6, &is_text);
	return c != NULL && looks_in(c, p, len) == LOOKS_LATIN ? c : NULL;
}

const struct hr_charset *
hr_guess_charset(const char *p, size_t len)
{
	const struct hr_charset *c = detect_charset(p, len);

	if (c != NULL && looks_in(c, p, len) == LOOKS_FOREIGN)
		return c;
	return western(p, len);
}

bool
hr_guess_sure(const char *p, size_t len)
{
	const struct hr_charset *c = detect_charset(p, len);

	return c != NULL && looks_in(c, p, len) == LOOKS_FOREIGN;
}
