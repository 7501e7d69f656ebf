/* handrail-office KIND: prints the document on stdin as Markdown on stdout. Exits with 1 and the
 * reason on stdout if it cannot be read. It is a separate program so that a hostile document breaks
 * or exhausts only this process, and no worker maps the libraries. */
#include "config.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "office/office.h"

#define FILE_MAX (11u << 20) /* maximum bytes; the editor accepts 10 MB */
#define CHUNK 65536
#define SECONDS 20

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static void
limit(int what, rlim_t most)
{
	struct rlimit l = {most, most};

	/* a failure is ignored: the limits are a second line of defence */
	(void)setrlimit(what, &l);
}

static int
read_all(struct hr_buf *b, struct hr_err *err)
{
	ssize_t n;
	char *room;

	do {
		room = hr_buf_reserve(b, CHUNK);
		if (room == NULL)
			return hr_buf_check(b, err);
		n = hr_fd_read(STDIN_FILENO, room, CHUNK);
		if (n > 0)
			hr_buf_grew(b, (size_t)n);
	} while (n > 0);
	return n == 0 ? 0 : hr_err_set(err, HR_E_SYS, "the document cannot be read");
}

int
main(int argc, char **argv)
{
	struct hr_err err = {.code = HR_OK};
	HR_BUF(text, HR_OFFICE_TEXT_MAX);
	HR_BUF(bytes, FILE_MAX);
	int r;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: handrail-office docx|pptx|xlsx <DOCUMENT\n");
		return 2;
	}
	limit(RLIMIT_CPU, SECONDS);
	limit(RLIMIT_CORE, 0);
#ifndef SANITIZED
	limit(RLIMIT_AS, (rlim_t)1 << 30);
#endif
	r = read_all(&bytes, &err);
	if (r == 0)
		r = hr_office_text(argv[1], bytes.p, bytes.len, &text, &err);
	if (r != 0) {
		hr_buf_reset(&text);
		hr_buf_adds(&text, err.msg);
	}
	if (hr_fd_write_full(STDOUT_FILENO, hr_buf_str(&text), text.len, &err) < 0)
		r = -1;
	return r == 0 ? 0 : 1;
}
