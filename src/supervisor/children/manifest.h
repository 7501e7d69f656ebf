/* hr_manifest: what a plugin says of itself in its plugin.json (handrail-plugin(5)). Nothing is
 * started or looked for here. */
#ifndef HR_SUPERVISOR_CHILDREN_MANIFEST_H
#define HR_SUPERVISOR_CHILDREN_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

#define HR_MANIFEST_API 1

/* What ${name} stands for in the texts of a manifest; "" where it is not known yet. */
struct hr_manifest_vars {
	const char *plugin_dir, *state_dir, *workspace, *username, *user_id, *runtime_id;
	const char *libexecdir, *datadir, *vscode_port;
	const char *session_username, *runtime_username;
};

enum hr_manifest_auth {
	HR_MANIFEST_SESSION, /* the session key, as everywhere */
	HR_MANIFEST_BEARER,  /* that and the same key as a bearer token */
	HR_MANIFEST_NONE,    /* the plugin asks for something of its own */
};

struct hr_manifest_http {
	char *prefix; /* begins with '/'; with '/' at its end all paths below, else this path */
	enum hr_manifest_auth auth;
	char *port; /* of loopback, where the program itself listens; NULL: on the socket it is
		       given */
	bool strip; /* the program knows nothing of the prefix, but from X-Forwarded-Prefix */
};

enum hr_manifest_start {
	HR_MANIFEST_FIRST_USE,
	HR_MANIFEST_AT_START,   /* the server's port opens when it is ready */
	HR_MANIFEST_BACKGROUND, /* with the server, which does not wait for it */
};

struct hr_manifest {
	char *name, *version, *dir;
	struct hr_strv exec; /* empty: there is no process */
	struct hr_strv needs, requires, after, pass_env, actions;
	struct hr_strv env, provides; /* "NAME=text" */
	struct hr_manifest_http *http;
	size_t nhttp;
	bool as_server; /* runs as we do, not as the user of the shell */
	bool disables;  /* a failure at start costs the plugin, not the server */
	bool implied;   /* there without being named */
	bool token;     /* gets the token that /vscode/connection_token answers */
	enum hr_manifest_start start;
	long long ready_timeout_s;
	char *unavailable; /* why it cannot be had at all; NULL: it can */
};

/* Letters, digits, '_' and '-'; at most 64. */
bool hr_manifest_name_ok(const char *name);

/* The text of DIR/plugin.json. Unknown keys are ignored, another api is an error, and so is an
 * unknown ${name}. On an error nothing is left to free. */
int hr_manifest_parse(
    struct hr_manifest *m, const char *dir, const char *text, size_t len, struct hr_err *err);
int hr_manifest_read(struct hr_manifest *m, const char *dir, struct hr_err *err);
void hr_manifest_done(struct hr_manifest *m);

/* Appends text with its ${name}s replaced. */
int hr_manifest_expand(
    struct hr_buf *b, const char *text, const struct hr_manifest_vars *vars, struct hr_err *err);

#endif
