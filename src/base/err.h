/* hr_err: an expected failure as a value, on the caller's stack. */
#ifndef HR_BASE_ERR_H
#define HR_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

/* Few and stable; proto/httperr.c maps them to API texts and HTTP status codes. */
enum hr_errc {
	HR_OK = 0,
	HR_E_INVAL,       /* the caller's input is wrong */
	HR_E_NOTFOUND,    /* nothing of that name */
	HR_E_NOMEM,       /* out of memory */
	HR_E_TOOLARGE,    /* a stated limit would be passed; nothing was allocated */
	HR_E_SYS,         /* a system call failed: see sys */
	HR_E_PROTO,       /* a peer broke the protocol */
	HR_E_GONE,        /* the peer or the thing asked for has ended */
	HR_E_TIMEOUT,     /* a deadline passed */
	HR_E_BUSY,        /* try again later */
	HR_E_UNTRUSTED,   /* somebody else could have written it (base/trust) */
	HR_E_UNSUPPORTED, /* not built in, or not possible here */
};

struct hr_err {
	enum hr_errc code;
	int sys; /* errno, 0 if none */
	char msg[240];
};

/* Fills *err (which may be NULL) and returns -1, so that one writes
 * `return hr_err_set(err, HR_E_INVAL, "...");`. Text that does not fit is cut at a character. */
int hr_err_set(struct hr_err *err, enum hr_errc code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ": strerror(sys)" appended; the code is HR_E_NOMEM for ENOMEM, else HR_E_SYS. */
int
hr_err_sys(struct hr_err *err, int sys, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

int hr_err_nomem(struct hr_err *err); /* no allocation, constant text; returns -1 */

/* Puts "prefix: " before the message. NULL or an empty error: nothing. */
void hr_err_prefix(struct hr_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A programmer's error: stops the process, in release builds as well. Never on a peer's input. */
#define hr_assert(cond) ((cond) ? (void)0 : hr_assert_failed(#cond, __FILE__, __LINE__))
void hr_assert_failed(const char *cond, const char *file, int line) __attribute__((noreturn));

#endif
