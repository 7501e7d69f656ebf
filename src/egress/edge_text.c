#include "config.h"

#include "egress/edge_text.h"

#include <ctype.h>
#include <string.h>

#include "base/text/percent.h"
#include "base/text/quote.h"

#define FORM_MAX (64u << 10)

void
edge_add_text(struct hr_buf *b, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] == '$')
			hr_buf_adds(b, "${eg_dollar}");
		else if (p[i] == '"' || p[i] == '\\')
			hr_buf_addf(b, "\\%c", p[i]);
		else
			hr_buf_addc(b, (unsigned char)p[i] < ' ' || p[i] == 0x7f ? '?' : p[i]);
}

void
edge_add_regex(struct hr_buf *b, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		hr_buf_addf(b, isalnum((unsigned char)p[i]) || p[i] == '_' ? "%c" : "\\x%02X",
		    (unsigned char)p[i]);
}

void
edge_add_pattern(struct hr_buf *b, const char *p, const char *any)
{
	size_t len = strcspn(p, "*");
	bool last;

	edge_add_regex(b, p, len);
	while (p[len] == '*') {
		p += len + 1;
		len = strcspn(p, "*");
		last = p[len] == '\0';
		hr_buf_addf(b, last ? "%s*" : "(?>%s*?", any);
		edge_add_regex(b, p, len);
		hr_buf_adds(b, last ? "" : ")");
	}
}

void
edge_add_line(struct hr_buf *to, const struct hr_buf *key, const struct hr_buf *value)
{
	hr_buf_addf(to, "\"%s\" \"%s\";\n", hr_buf_str(key), hr_buf_str(value));
	if (to->fail == 0)
		to->fail = key->fail != 0 ? key->fail : value->fail;
}

static void
add_base64(struct hr_buf *b, const char *before, const char *text, const char *after)
{
	HR_BUF(plain, FORM_MAX);

	hr_buf_addf(&plain, "%s%s%s", before, text, after);
	hr_quote_base64(b, hr_buf_str(&plain), plain.len);
}

void
edge_add_replacement(struct hr_buf *b, const char *start, const char *from, const char *to)
{
	HR_BUF(key, EDGE_WORD_MAX);
	HR_BUF(value, EDGE_WORD_MAX);

	hr_buf_addf(&key, "~*(?s)^(?<eg_a>%s.*)", start);
	edge_add_regex(&key, from, strlen(from));
	hr_buf_adds(&key, "(?<eg_b>.*)\\z");
	hr_buf_adds(&value, "${eg_a}");
	edge_add_text(&value, to, strlen(to));
	hr_buf_adds(&value, "${eg_b}");
	edge_add_line(b, &key, &value);
}

/* Appends the digits of `from` that stand for known bytes. A digit in base64 has 6 bits: the first
 * `skip` digits belong to bytes before the ':' at least in part, and stay; all others are known. */
void
edge_add_basic(struct hr_buf *b, const char *from, const char *to)
{
	static const struct {
		const char *digits, *before, *after;
		size_t skip;
	} forms[] = {{"(?:[A-Za-z0-9+/]{4})*", "", "", 0}, {"(?:[A-Za-z0-9+/]{4})*", ":", "", 0},
	    {"(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}", "_:", "", 2}, {"", "", ":", 0},
	    {"", "", ":x-oauth-basic", 0}};
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		HR_BUF(key, EDGE_WORD_MAX);
		HR_BUF(value, EDGE_WORD_MAX);
		HR_BUF(old, FORM_MAX);
		HR_BUF(new, FORM_MAX);

		add_base64(&old, forms[i].before, from, forms[i].after);
		add_base64(&new, forms[i].before, to, forms[i].after);
		hr_buf_addf(&key, "~^(?<eg_a>(?i:Basic) +%s)", forms[i].digits);
		edge_add_regex(&key, hr_buf_str(&old) + forms[i].skip, old.len - forms[i].skip);
		hr_buf_adds(&key, "\\z");
		hr_buf_addf(&value, "${eg_a}%s", hr_buf_str(&new) + forms[i].skip);
		edge_add_line(b, &key, &value);
	}
}

/* Adds the JSON string as PHP writes it. */
static void
add_slashes(struct hr_strv *forms, const char *p, size_t len)
{
	HR_BUF(text, FORM_MAX);
	size_t i;

	for (i = 0; i < len; i++)
		hr_buf_addf(&text, p[i] == '/' ? "\\%c" : "%c", p[i]);
	hr_strv_add(forms, hr_buf_str(&text));
	forms->failed = forms->failed || text.fail != 0;
}

void
edge_list_forms(struct hr_strv *forms, const char *secret)
{
	static const char *const before[] = {"", "_", "__"};
	size_t i, len = strlen(secret), skip;
	char *p;
	HR_BUF(text, FORM_MAX);

	hr_strv_add(forms, secret);
	hr_percent_encode(&text, secret, EDGE_UNRESERVED);
	if (text.len != len)
		hr_strv_add(forms, hr_buf_str(&text));
	hr_buf_reset(&text);
	hr_quote_json(&text, secret, len);
	if (text.len > len + 2)
		hr_strv_addf(forms, "%.*s", (int)text.len - 2, hr_buf_str(&text) + 1);
	if (text.fail == 0 && strchr(secret, '/') != NULL)
		add_slashes(forms, hr_buf_str(&text) + 1, text.len - 2);
	for (i = 0; i < sizeof(before) / sizeof(*before) && text.fail == 0; i++) {
		hr_buf_reset(&text);
		add_base64(&text, before[i], secret, "");
		if (text.fail != 0)
			break;
		/* Only digits in which all bits are the secret's. */
		text.p[(i + len) * 8 / 6] = '\0';
		skip = (i * 8 + 5) / 6;
		hr_strv_add(forms, text.p + skip);
		if (strpbrk(text.p + skip, "+/") == NULL)
			continue;
		for (p = text.p; *p != '\0'; p++)
			*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
		hr_strv_add(forms, text.p + skip);
	}
	if (text.fail != 0)
		forms->failed = true;
}
