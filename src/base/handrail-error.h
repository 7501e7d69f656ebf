/* handrail-error.h: defines the error struct of all functions, an expected failure as a value on
 * the caller's stack. Programs get it through handrail.h. */
#ifndef HR_BASE_HANDRAIL_ERROR_H
#define HR_BASE_HANDRAIL_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* The codes are few and stable; proto/httperr.c maps the first ones to API texts and HTTP status
 * codes. */
enum hr_errc {
	HR_OK = 0,
	HR_E_INVAL,       /* the caller's input is wrong */
	HR_E_NOTFOUND,    /* there is nothing of that name */
	HR_E_NOMEM,       /* out of memory */
	HR_E_TOOLARGE,    /* a stated limit would be exceeded; nothing was allocated */
	HR_E_SYS,         /* a system call failed: see sys */
	HR_E_PROTO,       /* a peer broke the protocol */
	HR_E_GONE,        /* the peer or the requested thing has ended */
	HR_E_TIMEOUT,     /* a deadline passed */
	HR_E_BUSY,        /* try again later */
	HR_E_UNTRUSTED,   /* another account could have written the file (base/trust) */
	HR_E_UNSUPPORTED, /* not built in, or not possible here */
	HR_E_PERMISSION,  /* this account has no permission */

	/* the codes from here on are errors of sandboxes */
	HR_E_RUNTIME,         /* the sandbox was refused or failed otherwise */
	HR_E_BUILD,           /* the image could not be built */
	HR_E_RUNTIME_TIMEOUT, /* the sandbox took too long */
	HR_E_UNAVAILABLE,     /* the service that creates sandboxes is not available */
	HR_E_NOT_READY,       /* the sandbox does not answer yet */
	HR_E_DISCONNECTED,    /* the sandbox no longer answers */
	HR_E_NO_SANDBOX,      /* there is no sandbox of that name */
	HR_E_HTTP_STATUS,     /* the sandbox answered with an error: see status */
	HR_E_HTTP_TIMEOUT,
	HR_E_HTTP_NETWORK,
	HR_E_RETRY, /* the last of several attempts failed: see last; not an HTTP error itself */
};

struct hr_err {
	enum hr_errc code;
	enum hr_errc last; /* HR_E_RETRY: code of the last attempt's failure */
	int sys;           /* errno, 0 if none */
	int status;        /* HR_E_HTTP_STATUS: 404 and so on */
	const char *cls;   /* class name for messages, constant; NULL: that of the code */
	char msg[1000];
};

/* Returns the error's class name in messages, which is the original's: "AgentRuntimeError";
 * constant. */
const char *hr_err_class(const struct hr_err *err);

#ifdef __cplusplus
}
#endif

#endif
