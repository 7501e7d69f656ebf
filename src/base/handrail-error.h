/* handrail-error.h: the one error of all that is here, an expected failure as a value on the
 * caller's stack. For programs: handrail.h includes it. */
#ifndef HR_BASE_HANDRAIL_ERROR_H
#define HR_BASE_HANDRAIL_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Few and stable; proto/httperr.c maps the first to API texts and HTTP status codes. */
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
	HR_E_PERMISSION,  /* not for this account */

	/* of sandboxes */
	HR_E_RUNTIME,         /* it was refused, or something else went wrong with one */
	HR_E_BUILD,           /* its image could not be built */
	HR_E_RUNTIME_TIMEOUT, /* what was asked of it took too long */
	HR_E_UNAVAILABLE,     /* what makes sandboxes is not there */
	HR_E_NOT_READY,       /* it does not answer yet */
	HR_E_DISCONNECTED,    /* it does not answer any more */
	HR_E_NO_SANDBOX,      /* there is none of that name */
	HR_E_HTTP_STATUS,     /* it answered with an error: see status */
	HR_E_HTTP_TIMEOUT,
	HR_E_HTTP_NETWORK,
	HR_E_RETRY, /* the last of several attempts failed: see last; not an HTTP error itself */
};

struct hr_err {
	enum hr_errc code;
	enum hr_errc last; /* HR_E_RETRY: what the last attempt failed with */
	int sys;           /* errno, 0 if none */
	int status;        /* HR_E_HTTP_STATUS: 404 and so on */
	const char *cls;   /* a name of its own in messages, constant; NULL: its code has one */
	char msg[1000];
};

/* The kind's name in messages, as the original's: "AgentRuntimeError"; constant. */
const char *hr_err_class(const struct hr_err *err);

#ifdef __cplusplus
}
#endif

#endif
