/* Parses the options; each has one row. */
#include "config.h"

#include "fleet/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/build/build.h"
#include "fleet/e2b/e2b.h"

enum { NUMBER, TEXT, SWITCH, SETTING, TEMPLATE };

static const struct row {
	const char *name;
	int type;
	size_t at;
	int64_t least, most;
	const char *help;
} rows[] = {
#define AT(member) offsetof(struct hr_fleetd_options, member)
    {"state-dir", TEXT, AT(of_engine.dir), 0, 0,
	"DIR         where the fleet is kept [" HR_FLEETD_STATE "]"},
    {"listen", TEXT, AT(edge.listen), 0, 0, "ADDR:PORT   address of nginx [127.0.0.1:8000]"},
    {"console", TEXT, AT(edge.console), 0, 0,
	"ADDR:PORT   address of the console, not that of --listen [none]"},
    {"engine", TEXT, AT(engine), 0, 0,
	"NAME        makes the sandboxes: local, kubernetes [local]"},
    {"kind", TEXT, AT(kind), 0, 0, "BACKEND     docker, box or local [docker]"},
    {"image", TEXT, AT(of_engine.image), 0, 0, "NAME        image of starts that name none"},
    {"set", SETTING, 0, 0, 0, "KEY=VALUE   a setting of handrail(1); may be repeated"},
    {"public-url", TEXT, AT(api.public_url), 0, 0,
	"URL         start of the sandboxes' addresses, before the id"},
    {"domain", TEXT, AT(api.domain), 0, 0, "NAME        domain of host names like PORT-ID.NAME"},
    {"url-by-name", SWITCH, AT(api.by_name), 0, 0,
	"            clients get ID.NAME of --domain and not a path"},
    {"e2b-template", TEMPLATE, 0, 0, 0, "NAME=IMAGE  a template of the E2B API; may be repeated"},
    {"e2b-hours", NUMBER, AT(api.most_hours), 1, 1 << 20,
	"N           longest life that its clients may ask for [24]"},
    {"e2b-file-forks", SWITCH, AT(api.file_forks), 0, 0,
	"            its clients may fork and copy boxes, without processes"},
    {"e2b-internet", SWITCH, AT(api.internet), 0, 0,
	"            its sandboxes reach the Internet unless their creates refuse it"},
    {"registry-prefix", TEXT, AT(api.registry_prefix), 0, 0,
	"TEXT        prefix of images, for clients"},
    {"builds", SWITCH, AT(builds), 0, 0, "            build images, below --registry-prefix"},
    {"build-upload", NUMBER, AT(upload_s), 1, 1 << 30,
	"SECONDS     time for a build folder to arrive [600]"},
    {"max-sandboxes", NUMBER, AT(set.limits.sandboxes), 0, 100000,
	"N           at a time [no limit]"},
    {"max-factors", NUMBER, AT(set.limits.factors), 0, 1000000,
	"N           sum of resource factors at a time [no limit]"},
    {"memory-mb", NUMBER, AT(of_engine.memory_mb), 0, 1 << 24,
	"N           memory of a resource factor of 1 [no limit]"},
    {"cpu-percent", NUMBER, AT(of_engine.cpu_percent), 0, 100000,
	"N           of one core, of a resource factor of 1 [no limit]"},
    {"idle-pause", NUMBER, AT(set.idle_pause_s), 0, 1 << 30,
	"SECONDS     idle time until a pause [never]"},
    {"idle-stop", NUMBER, AT(set.idle_stop_s), 0, 1 << 30,
	"SECONDS     paused time until the end [never]"},
    {"snapshots-mb", NUMBER, AT(set.snapshots_mb), 0, 1 << 24,
	"N           of all snapshots of one key; 0: no limit [10240]"},
    {"keep-ended", NUMBER, AT(set.keep_ended_s), 0, 1 << 30,
	"SECONDS     list ended sandboxes for this time; 0: for ever [2592000]"},
    {"wake-without-key", SWITCH, AT(api.wakes), 0, 0,
	"            requests without a sandbox's key wake it, too"},
    {"resume-new-key", SWITCH, AT(api.new_keys), 0, 0,
	"            /resume gives the sandbox a new session key"},
    {"no-nginx", SWITCH, AT(no_nginx), 0, 0, "            use an nginx of yours"},
    {"socket-group", TEXT, AT(group), 0, 0, "GROUP       may connect to the socket"},
    {"log-level", TEXT, AT(level), 0, 0, "LEVEL       error, warning, notice, info, debug"},
    {"init", SWITCH, AT(init), 0, 0, "            make the fleet and a key for its operator"},
    {"doctor", SWITCH, AT(doctor), 0, 0,
	"            print what is missing here and how to get it"},
    {"check", SWITCH, AT(check), 0, 0,
	"            check whether it would start, also beside a running one"},
    {"print-nginx", TEXT, AT(print), 0, 0,
	"PART        print http, server, routes, wildcard, console or all of nginx's "
	"configuration"},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static int
usage(FILE *to)
{
	size_t i;

	(void)fprintf(to, "usage: handrail-fleetd [OPTION]...\n");
	for (i = 0; i < ROWS; i++)
		(void)fprintf(to, "  --%-16s %s\n", rows[i].name, rows[i].help);
	return to == stdout ? 0 : 2;
}

static int
take_setting(struct hr_fleetd_options *o, const char *text)
{
	const char *eq = strchr(text, '=');
	struct hr_err err = {0};
	char key[128];

	if (eq == NULL || (size_t)(eq - text) >= sizeof(key)) {
		(void)fprintf(
		    stderr, "handrail-fleetd: --set must be KEY=VALUE, not \"%s\"\n", text);
		return -1;
	}
	(void)snprintf(key, sizeof(key), "%.*s", (int)(eq - text), text);
	if (hr_config_set(o->config, key, eq + 1, &err) == 0)
		return 0;
	(void)fprintf(stderr, "handrail-fleetd: --set: %s\n", err.msg);
	return -1;
}

/* Takes the settings after all other options: a back-end has settings of its own. */
static int
take_settings(struct hr_fleetd_options *o, const struct hr_strv *settings)
{
	size_t i;

	if (settings->failed || hr_config_set(o->config, "core.runtime", o->kind, NULL) < 0)
		return -1;
	for (i = 0; i < settings->n; i++)
		if (take_setting(o, settings->v[i]) < 0)
			return -1;
	return 0;
}

static int
take_template(struct hr_fleetd_options *o, const char *text)
{
	const char *wrong = hr_e2b_template_wrong(text);

	if (wrong != NULL)
		(void)fprintf(stderr, "handrail-fleetd: --e2b-template: %s\n", wrong);
	hr_strv_add(&o->templates, text);
	return wrong == NULL && !o->templates.failed ? 0 : -1;
}

static int
take(struct hr_fleetd_options *o, const struct row *r, const char *text)
{
	char *at = (char *)o + r->at, *end;
	long long n;

	switch (r->type) {
	case SWITCH: *(bool *)at = true; return 0;
	case TEXT: memcpy(at, &text, sizeof(text)); return 0;
	case TEMPLATE: return take_template(o, text);
	default: break;
	}
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || n < r->least || n > r->most) {
		(void)fprintf(stderr,
		    "handrail-fleetd: --%s takes a number from %lld to %lld, not \"%s\"\n", r->name,
		    (long long)r->least, (long long)r->most, text);
		return -1;
	}
	*(int64_t *)(void *)at = n;
	return 0;
}

int
hr_fleetd_parse(struct hr_fleetd_options *o, int argc, char **argv)
{
	HR_CLEAN(hr_strv_done) struct hr_strv settings = {0};
	struct option known[ROWS + 4] = {{0}};
	int index, c;
	size_t i;

	for (i = 0; i < ROWS; i++)
		known[i] = (struct option){rows[i].name,
		    rows[i].type == SWITCH ? no_argument : required_argument, NULL, 'x'};
	known[ROWS] = (struct option){"help", no_argument, NULL, 'h'};
	known[ROWS + 2] = (struct option){"call", required_argument, NULL, 'e'};
	known[ROWS + 1] = (struct option){"version", no_argument, NULL, 'V'};
	while ((c = getopt_long(argc, argv, "h", known, &index)) != -1) {
		if (c == 'h')
			return usage(stdout);
		if (c == 'V') {
			(void)fprintf(stdout, "handrail-fleetd %s\n", PACKAGE_VERSION);
			return 0;
		}
		if (c == 'e') { /* the engine's own options follow the service's */
			o->call = optarg;
			continue;
		}
		if (c == 'x' && rows[index].type == SETTING) {
			hr_strv_add(&settings, optarg);
			continue;
		}
		if (c != 'x' || take(o, &rows[index], optarg) != 0)
			return c == 'x' ? 2 : usage(stderr);
	}
	if (take_settings(o, &settings) < 0)
		return 2;
	return optind + (o->call != NULL) == argc ? -1 : usage(stderr);
}

#define TEXT_OF(number) #number
#define TEXT(macro) TEXT_OF(macro)

const char *
hr_fleetd_misfit(const struct hr_fleetd_options *o)
{
	if (o->api.by_name && o->api.domain == NULL)
		return "--url-by-name needs a --domain";
	if (o->builds && *o->api.registry_prefix == '\0')
		return "--builds needs a --registry-prefix";
	if (o->builds && strlen(o->api.registry_prefix) > HR_FLEET_PREFIX_MAX)
		return "--builds needs a --registry-prefix of up to " TEXT(
		    HR_FLEET_PREFIX_MAX) " bytes";
	if (o->edge.console != NULL && strcmp(o->edge.console, o->edge.listen) == 0)
		return "--console must not be the address of --listen, which serves the answers of "
		       "sandboxes";
	if (o->edge.console != NULL && strcmp(o->engine, "kubernetes") == 0)
		return "--console requires the engine local, since sign-ins are kept in one "
		       "process";
	if (o->builds && (strcmp(o->kind, "docker") != 0 || strcmp(o->engine, "local") != 0))
		return "--builds requires the engine local and the back-end docker";
	return o->backing == NULL ? "--engine must be local or kubernetes" : NULL;
}
