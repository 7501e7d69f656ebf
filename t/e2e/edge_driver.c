/* Writes what a box's edge needs, for test_egress_edge.py: a configuration of nginx, or an
 * authority and certificates. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/path.h"
#include "egress/edge.h"
#include "egress/policy.h"
#include "proto/json.h"

#define HOSTS_MAX 16
#define TEXT_MAX (4u << 20)

static struct json_object *
read_json(const char *path, struct hr_err *err)
{
	HR_BUF(text, TEXT_MAX);
	struct json_object *o = NULL;

	if (hr_path_read(path, &text, err) == 0 &&
	    hr_json_decode(hr_buf_str(&text), text.len, &o, NULL) < 0)
		(void)hr_err_set(err, HR_E_INVAL, "%s is no JSON", path);
	return o;
}

/* POLICY SECRETS PLACEHOLDERS DIR {ID NAME PORT s|p}... */
static int
write_config(char **args, int n, struct hr_err *err)
{
	struct egress_host hosts[HOSTS_MAX];
	HR_PUT struct json_object *policy = NULL;
	HR_PUT struct json_object *secrets = NULL;
	HR_PUT struct json_object *placeholders = NULL;
	HR_BUF(text, TEXT_MAX);
	HR_BUF(path, 4096);
	struct egress_policy *p;
	size_t i, nhosts = (size_t)(n - 4) / 4;
	int r = -1;

	if ((policy = read_json(args[0], err)) == NULL ||
	    (secrets = read_json(args[1], err)) == NULL ||
	    (placeholders = read_json(args[2], err)) == NULL ||
	    (p = egress_policy_read(policy, NULL, err)) == NULL)
		return -1;
	for (i = 0; i < nhosts && i < HOSTS_MAX; i++) {
		char **a = args + 4 + 4 * i;

		hosts[i] = (struct egress_host){
		    (unsigned)atoi(a[0]), a[1], atoi(a[2]), strcmp(a[3], "s") == 0};
	}
	hr_buf_addf(&path, "%s/nginx.conf", args[3]);
	if (egress_edge_config(p, args[3], hosts, i, secrets, placeholders, &text, err) == 0)
		r = hr_path_write(hr_buf_str(&path), text.p, text.len, 0600, err);
	egress_policy_free(p);
	return r;
}

int
main(int argc, char **argv)
{
	struct hr_err err = {0};
	char placeholder[EGRESS_PLACEHOLDER_TEXT];
	int r = -1, i;

	if (argc >= 6 && strcmp(argv[1], "config") == 0) {
		r = write_config(argv + 2, argc - 2, &err);
	} else if (argc == 2 && strcmp(argv[1], "placeholder") == 0) {
		r = egress_placeholder(placeholder, &err);
		if (r == 0)
			puts(placeholder);
	} else if (argc >= 3 && strcmp(argv[1], "certify") == 0) {
		r = egress_authority_make(argv[2], "tried", &err);
		for (i = 3; i < argc && r == 0; i++)
			r = egress_authority_certify(argv[2], argv[i], &err);
	}
	if (r < 0)
		fprintf(stderr, "%s\n", err.msg);
	return r == 0 ? 0 : 1;
}
