/* Implements the templates of hr_e2b: names that stand for an image of the service. */
#include "config.h"

#include "fleet/e2b/e2b.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define USER "user"
#define HOME "/home/user"

/* Copies the value of ";NAME=" in an option. Returns 1, 0 if it is missing, or -1 if it is too
 * long. */
static int
take(const char *option, const char *name, char *ret, size_t cap)
{
	const char *p = option;
	size_t n = strlen(name), len;

	while ((p = strchr(p, ';')) != NULL) {
		p++;
		len = strcspn(p, ";");
		if (strncmp(p, name, n) != 0 || p[n] != '=')
			continue;
		if (len - n - 1 >= cap)
			return -1;
		(void)snprintf(ret, cap, "%.*s", (int)(len - n - 1), p + n + 1);
		return 1;
	}
	return 0;
}

static bool
is_name(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && strchr("_.-", p[i]) == NULL)
			return false;
	return n > 0;
}

/* Fills *ret from an option. Returns the error text, or NULL. */
static const char *
read_option(const char *option, struct hr_e2b_template *ret)
{
	const char *eq = strchr(option, '=');
	size_t n;

	if (eq == NULL || !is_name(option, (size_t)(eq - option)))
		return "a template is NAME=IMAGE[;user=NAME][;workdir=DIR]";
	n = strcspn(eq + 1, ";");
	if (n >= sizeof(ret->image) || take(option, "user", ret->user, sizeof(ret->user)) < 0 ||
	    take(option, "workdir", ret->workdir, sizeof(ret->workdir)) < 0)
		return "a part of the template is too long";
	(void)snprintf(ret->image, sizeof(ret->image), "%.*s", (int)n, eq + 1);
	if (ret->user[0] != '\0' && (!is_name(ret->user, strlen(ret->user)) || *ret->user == '-'))
		return "the user of a template has letters, digits, '_', '.' and '-'";
	return ret->workdir[0] == '\0' || ret->workdir[0] == '/'
		   ? NULL
		   : "the workdir of a template is an absolute path";
}

const char *
hr_e2b_template_wrong(const char *option)
{
	struct hr_e2b_template t = {.name = NULL};

	return read_option(option, &t);
}

/* Returns true if the service makes accounts in its sandboxes: containers have a root of their own,
 * boxes only that of a service that is root. */
static bool
has_accounts(const struct hr_fleet_api *api)
{
	return strcmp(api->kind, "docker") == 0 ||
	       (strcmp(api->kind, "box") == 0 && geteuid() == 0);
}

bool
hr_e2b_template(const struct hr_fleet_api *api, const char *name, struct hr_e2b_template *ret)
{
	static const char *const own[] = {"base", "code-interpreter-v1"};
	size_t n = strcspn(name, ":"), i;

	memset(ret, 0, sizeof(*ret));
	if (name[n] == ':' && strcmp(name + n, ":default") != 0 && strcmp(name + n, ":latest") != 0)
		return false;
	for (i = 0; ret->name == NULL && i < api->templates->n; i++)
		if (strncmp(api->templates->v[i], name, n) == 0 && api->templates->v[i][n] == '=') {
			(void)read_option(api->templates->v[i], ret);
			ret->name = name;
		}
	for (i = 0; ret->name == NULL && i < sizeof(own) / sizeof(*own); i++)
		if (strlen(own[i]) == n && strncmp(name, own[i], n) == 0)
			ret->name = own[i];
	if (ret->name == NULL)
		return false;
	if (!has_accounts(api))
		ret->user[0] = '\0';
	else if (ret->user[0] == '\0')
		(void)snprintf(ret->user, sizeof(ret->user), USER);
	if (has_accounts(api) && ret->workdir[0] == '\0' && strcmp(ret->user, USER) == 0)
		(void)snprintf(ret->workdir, sizeof(ret->workdir), HOME);
	return true;
}
