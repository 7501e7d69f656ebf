/* hr_manifest: parses a plugin's plugin.json (handrail-plugin(5)). It starts and looks up
 * nothing. */
#ifndef HR_SUPERVISOR_CHILDREN_MANIFEST_H
#define HR_SUPERVISOR_CHILDREN_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

#define HR_MANIFEST_API 1

/* Values of ${name} in a manifest's strings; "" if not known yet. */
struct hr_manifest_vars {
	const char *plugin_dir, *state_dir, *workspace, *username, *user_id, *runtime_id;
	const char *libexecdir, *datadir, *vscode_port;
	const char *session_username, *runtime_username;
};

enum hr_manifest_auth {
	HR_MANIFEST_SESSION, /* the session key, as everywhere */
	HR_MANIFEST_BEARER,  /* the session key, also as a bearer token */
	HR_MANIFEST_NONE,    /* the plugin checks access itself */
};

struct hr_manifest_http {
	char *prefix; /* begins with '/'; a final '/' means all paths below, else one path */
	enum hr_manifest_auth auth;
	/* loopback port on which the program listens; NULL: the program uses its socket */
	char *port;
	bool strip;       /* remove the prefix, which the program learns from X-Forwarded-Prefix */
	bool user;        /* pass the header Authorization if it names a user (Basic) */
	bool stream_body; /* pass requests by TRACE, before their bodies */
	/* bytes; 0: the server's limit alone. nginx refuses larger bodies: it would answer 503 if
	 * the program did so while nginx still sends. */
	long long body_max;
};

enum hr_manifest_start {
	HR_MANIFEST_FIRST_USE,
	HR_MANIFEST_AT_START,   /* the server's port opens when the plugin is ready */
	HR_MANIFEST_BACKGROUND, /* the plugin starts with the server, which does not wait for it */
};

struct hr_manifest {
	char *name, *version, *dir;
	struct hr_strv exec; /* empty: the plugin has no process */
	struct hr_strv needs, requires, after, pass_env, actions;
	struct hr_strv env, provides; /* "NAME=value" */
	struct hr_manifest_http *http;
	size_t nhttp;
	bool as_server; /* the plugin runs as the server's user, not the shell's */
	bool disables;  /* a failure at start disables the plugin, not the server */
	bool implied;   /* the plugin is loaded without being named */
	bool outlives;  /* the plugin leaves processes to its successor, and restarts at once */
	bool token;     /* the plugin gets the token of /vscode/connection_token */
	bool v1;        /* the plugin's paths need the setting openhands_v1 */
	bool direct;    /* the plugin also has a socket beside the server's own, and checks keys */
	enum hr_manifest_start start;
	long long ready_timeout_s;
	char *unavailable; /* why the plugin is not available at all; NULL: it is */
};

/* Accepts letters, digits, '_' and '-', at most 64 characters. */
bool hr_manifest_name_ok(const char *name);

/* Parses the text of DIR/plugin.json. Unknown keys are ignored; another api or an unknown ${name}
 * is an error. After an error nothing must be freed. */
int hr_manifest_parse(
    struct hr_manifest *m, const char *dir, const char *text, size_t len, struct hr_err *err);
int hr_manifest_read(struct hr_manifest *m, const char *dir, struct hr_err *err);
void hr_manifest_done(struct hr_manifest *m);

/* Appends text with its ${name}s replaced. */
int hr_manifest_expand(
    struct hr_buf *b, const char *text, const struct hr_manifest_vars *vars, struct hr_err *err);

#endif
