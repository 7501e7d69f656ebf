/* Parses with one function per group of the format's states. Invariant: in HR_MULTIPART_DATA,
 * `matched` bytes of the boundary have arrived and were not emitted; they are emitted from
 * `boundary` if the next byte shows that they are data. */
#include "config.h"

#include "files/multipart.h"

#include <string.h>

int
hr_multipart_init(struct hr_multipart *m, const char *boundary, size_t len,
    const struct hr_multipart_ops *ops, void *arg)
{
	memset(m, 0, sizeof(*m));
	m->ops = ops;
	m->arg = arg;
	hr_buf_init(&m->name, HR_MULTIPART_HEADERS_MAX);
	hr_buf_init(&m->value, HR_MULTIPART_HEADERS_MAX);
	hr_buf_init(&m->disposition, HR_MULTIPART_HEADERS_MAX);
	if (len == 0 || len > HR_MULTIPART_BOUNDARY_MAX)
		return -1;
	memcpy(m->boundary, "\r\n--", 4);
	memcpy(m->boundary + 4, boundary, len);
	m->boundary_len = len + 4;
	return 0;
}

void
hr_multipart_done(struct hr_multipart *m)
{
	hr_buf_done(&m->name);
	hr_buf_done(&m->value);
	hr_buf_done(&m->disposition);
}

static int
malformed(const char *what, struct hr_err *err)
{
	return hr_err_set(err, HR_E_INVAL, "multipart: %s", what);
}

static bool
is_token(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static void
part_begin(struct hr_multipart *m)
{
	m->state = HR_MULTIPART_NAME;
	m->matched = 0;
	m->headers_len = 0;
	m->has_disposition = false;
	hr_buf_reset(&m->name);
	hr_buf_reset(&m->value);
	hr_buf_reset(&m->disposition);
}

static int
header_end(struct hr_multipart *m, struct hr_err *err)
{
	static const char wanted[] = "content-disposition";
	size_t i;

	m->headers_len += m->name.len + m->value.len;
	if (m->headers_len > HR_MULTIPART_HEADERS_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "multipart: headers too long");
	if (hr_buf_check(&m->name, err) < 0 || hr_buf_check(&m->value, err) < 0)
		return -1;
	for (i = 0; i < m->name.len && i < sizeof(wanted) - 1; i++) {
		/* the name is a token, so only letters differ in this bit */
		if ((m->name.p[i] | 0x20) != wanted[i])
			break;
	}
	if (m->name.len == sizeof(wanted) - 1 && i == m->name.len) {
		hr_buf_reset(&m->disposition);
		hr_buf_add(&m->disposition, hr_buf_str(&m->value), m->value.len);
		m->has_disposition = true;
		if (hr_buf_check(&m->disposition, err) < 0)
			return -1;
	}
	hr_buf_reset(&m->name);
	hr_buf_reset(&m->value);
	return 0;
}

/* Handles one byte before the end of the first boundary, which has no CR LF before it. */
static int
feed_first(struct hr_multipart *m, char c, struct hr_err *err)
{
	switch (m->state) {
	case HR_MULTIPART_START:
		if (c == '\r' || c == '\n')
			return 0;
		m->state = HR_MULTIPART_FIRST;
		m->matched = 2;
		break;
	case HR_MULTIPART_FIRST_PADDING:
		if (c == ' ' || c == '\t')
			return 0;
		if (c != '\r')
			return malformed("no line end behind the boundary's blanks", err);
		m->state = HR_MULTIPART_FIRST_LF;
		return 0;
	case HR_MULTIPART_FIRST_LF:
		if (c != '\n')
			return malformed("no line end behind the boundary", err);
		part_begin(m);
		return 0;
	case HR_MULTIPART_FIRST_HYPHEN:
		if (c != '-')
			return malformed("half an end behind the boundary", err);
		m->state = HR_MULTIPART_END;
		return 0;
	default: break;
	}
	if (m->matched < m->boundary_len) {
		if (c != m->boundary[m->matched])
			return malformed("it does not begin with the boundary", err);
		m->matched++;
	} else if (c == '-') {
		m->state = HR_MULTIPART_FIRST_HYPHEN;
	} else if (c == '\r') {
		m->state = HR_MULTIPART_FIRST_LF;
	} else if (c == ' ' || c == '\t') {
		m->state = HR_MULTIPART_FIRST_PADDING;
	} else {
		return malformed("no line end behind the boundary", err);
	}
	return 0;
}

/* Handles one byte of the headers. */
static int
feed_header(struct hr_multipart *m, char c, struct hr_err *err)
{
	switch (m->state) {
	case HR_MULTIPART_NAME:
		if (c == '\r' && m->name.len == 0) {
			m->state = HR_MULTIPART_HEADERS_LF;
		} else if (c == ':') {
			if (m->name.len == 0)
				return malformed("a header without a name", err);
			m->state = HR_MULTIPART_BLANK;
		} else if (is_token(c)) {
			hr_buf_addc(&m->name, c);
			return hr_buf_check(&m->name, err);
		} else {
			return malformed("a bad character in a header's name", err);
		}
		return 0;
	case HR_MULTIPART_BLANK:
		if (c == ' ')
			return 0;
		m->state = HR_MULTIPART_VALUE;
		/* fall through */
	case HR_MULTIPART_VALUE:
		if (c == '\r') {
			m->state = HR_MULTIPART_VALUE_LF;
			return 0;
		}
		hr_buf_addc(&m->value, c);
		return hr_buf_check(&m->value, err);
	case HR_MULTIPART_VALUE_LF:
		if (c != '\n')
			return malformed("half a line end in the headers", err);
		m->state = HR_MULTIPART_NAME;
		return header_end(m, err);
	default: /* the state is HR_MULTIPART_HEADERS_LF */
		if (c != '\n')
			return malformed("half a line end behind the headers", err);
		m->state = HR_MULTIPART_DATA;
		m->matched = 0;
		return m->ops->begin(m->arg,
		    m->has_disposition ? hr_buf_str(&m->disposition) : NULL, m->disposition.len);
	}
}

/* Handles a byte after a boundary and blanks: RFC 2046, 5.1.1, allows them before the line's end,
 * and no data begins so. */
static int
feed_padding(struct hr_multipart *m, char c, struct hr_err *err)
{
	int r;

	if (m->state == HR_MULTIPART_PADDING && (c == ' ' || c == '\t'))
		return 0;
	if (c != (m->state == HR_MULTIPART_PADDING ? '\r' : '\n'))
		return malformed("no line end behind the boundary's blanks", err);
	if (m->state == HR_MULTIPART_PADDING) {
		m->state = HR_MULTIPART_PADDING_LF;
		return 0;
	}
	r = m->ops->end(m->arg);
	part_begin(m);
	return r;
}

/* Emits bytes that only looked like a boundary. */
static int
give_matched(struct hr_multipart *m)
{
	size_t n = m->matched;

	m->matched = 0;
	return n > 0 ? m->ops->data(m->arg, m->boundary, n) : 0;
}

/* Handles a byte after a whole boundary. *ret_used is set if c belongs to the boundary. */
static int
feed_behind(struct hr_multipart *m, char c, bool *ret_used)
{
	char one = m->state == HR_MULTIPART_CR ? '\r' : '-';
	int r;

	*ret_used = true;
	switch (m->state) {
	case HR_MULTIPART_CR:
	case HR_MULTIPART_HYPHEN:
		if (c != (m->state == HR_MULTIPART_CR ? '\n' : '-'))
			break;
		r = m->ops->end(m->arg);
		if (m->state == HR_MULTIPART_CR)
			part_begin(m);
		else
			m->state = HR_MULTIPART_END;
		return r;
	default: /* the state is HR_MULTIPART_DATA, and all of the boundary has matched */
		if (c == '\r' || c == '-') {
			m->state = c == '\r' ? HR_MULTIPART_CR : HR_MULTIPART_HYPHEN;
			return 0;
		}
		if (c == ' ' || c == '\t') {
			m->state = HR_MULTIPART_PADDING;
			return 0;
		}
		*ret_used = false;
		return give_matched(m);
	}
	*ret_used = false;
	m->state = HR_MULTIPART_DATA;
	r = give_matched(m);
	if (r < 0)
		return r;
	if (one == '-')
		return m->ops->data(m->arg, &one, 1);
	m->matched = 1; /* this CR may begin the real boundary */
	return 0;
}

/* Handles bytes of data; keeps back a possible start of a boundary at their end. */
static int
feed_data(struct hr_multipart *m, const char *p, size_t len, size_t *ret_used)
{
	const char *at;
	size_t n;

	*ret_used = 0;
	if (m->matched > 0) {
		if (*p == m->boundary[m->matched]) {
			m->matched++;
			*ret_used = 1;
			return 0;
		}
		/* the boundary has a CR only at its start, so no other boundary begins within it */
		return give_matched(m);
	}
	at = memmem(p, len, m->boundary, m->boundary_len);
	if (at != NULL) {
		n = (size_t)(at - p);
		m->matched = m->boundary_len;
		*ret_used = n + m->boundary_len;
	} else {
		/* the last CR near the end may begin a boundary */
		n = len < m->boundary_len ? 0 : len - m->boundary_len + 1;
		at = memchr(p + n, '\r', len - n);
		while (at != NULL && memcmp(at, m->boundary, (size_t)(p + len - at)) != 0)
			at = memchr(at + 1, '\r', (size_t)(p + len - at - 1));
		n = at != NULL ? (size_t)(at - p) : len;
		m->matched = len - n;
		*ret_used = len;
	}
	return n > 0 ? m->ops->data(m->arg, p, n) : 0;
}

int
hr_multipart_feed(struct hr_multipart *m, const char *p, size_t len, struct hr_err *err)
{
	size_t n;
	bool used;
	int r;

	while (len > 0) {
		n = 1;
		if (m->state == HR_MULTIPART_END)
			return 0; /* the epilogue is ignored */
		if (m->state < HR_MULTIPART_NAME) {
			r = feed_first(m, *p, err);
		} else if (m->state < HR_MULTIPART_DATA) {
			r = feed_header(m, *p, err);
		} else if (m->state >= HR_MULTIPART_PADDING) {
			r = feed_padding(m, *p, err);
		} else if (m->state > HR_MULTIPART_DATA || m->matched == m->boundary_len) {
			r = feed_behind(m, *p, &used);
			n = used;
		} else {
			r = feed_data(m, p, len, &n);
		}
		if (r < 0)
			return r;
		p += n;
		len -= n;
	}
	return 0;
}
