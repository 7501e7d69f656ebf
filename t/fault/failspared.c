/* Calls of libraries in which memory does not fail. */
#define _GNU_SOURCE
#include "failcalls_int.h"

#include <dlfcn.h>
#include <pwd.h>
#include <stdint.h>
#include <sys/types.h>

/* Libraries that do not bear it, inside of which memory does not fail: that is known, and not for
 * each test to find out again. json-c 0.16 looks at few of its parser's own allocations: without
 * memory it crashes, or puts null in place of a value. uchardet is C++ and throws. libarchive 3.6
 * ends the process where a string cannot grow, and loses what it had made already. glibc's name
 * service keeps what it has made so far when it runs out of memory, and makes it anew. */
#define SPARED(type, name, params, args)                                                           \
	type name params;                                                                          \
	type name params                                                                           \
	{                                                                                          \
		type v;                                                                            \
		REAL(name);                                                                        \
		failcalls_spared++;                                                                \
		v = real args;                                                                     \
		failcalls_spared--;                                                                \
		return v;                                                                          \
	}

struct json_tokener;
struct json_object;
struct archive;
struct archive_entry;
SPARED(struct json_object *, json_tokener_parse_ex,
    (struct json_tokener * tok, const char *p, int len), (tok, p, len))
SPARED(struct passwd *, getpwnam, (const char *name), (name))
SPARED(struct passwd *, getpwuid, (uid_t uid), (uid))
SPARED(void *, uchardet_new, (void), ())
SPARED(int, uchardet_handle_data, (void *ud, const char *p, size_t len), (ud, p, len))
SPARED(struct archive *, archive_read_new, (void), ())
SPARED(int, archive_read_support_format_zip_seekable, (struct archive * a), (a))
SPARED(int, archive_read_set_options, (struct archive * a, const char *text), (a, text))
SPARED(int, archive_read_open_fd, (struct archive * a, int fd, size_t block), (a, fd, block))
SPARED(int, archive_read_next_header, (struct archive * a, struct archive_entry **e), (a, e))
SPARED(int, archive_read_data_block, (struct archive * a, const void **p, size_t *len, int64_t *at),
    (a, p, len, at))
SPARED(const char *, archive_entry_pathname, (struct archive_entry * e), (e))
SPARED(const char *, archive_entry_symlink, (struct archive_entry * e), (e))
SPARED(struct archive *, archive_write_new, (void), ())
SPARED(int, archive_write_set_format_zip, (struct archive * a), (a))
SPARED(int, archive_write_open,
    (struct archive * a, void *arg, void *open, void *write, void *close),
    (a, arg, open, write, close))
SPARED(int, archive_write_header, (struct archive * a, struct archive_entry *e), (a, e))
SPARED(ssize_t, archive_write_data, (struct archive * a, const void *p, size_t len), (a, p, len))
SPARED(int, archive_write_close, (struct archive * a), (a))

void uchardet_data_end(void *ud);
void
uchardet_data_end(void *ud)
{
	REAL(uchardet_data_end);
	failcalls_spared++;
	real(ud);
	failcalls_spared--;
}

void archive_entry_set_pathname(struct archive_entry *e, const char *name);
void
archive_entry_set_pathname(struct archive_entry *e, const char *name)
{
	REAL(archive_entry_set_pathname);
	failcalls_spared++;
	real(e, name);
	failcalls_spared--;
}
