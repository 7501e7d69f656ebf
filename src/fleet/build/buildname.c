/* Decides ownership of images by name: hr_fleet_build_prefix, hr_fleet_build_allows. */
#include "config.h"

#include "fleet/build/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "base/clean.h"
#include "base/text/quote.h"

#define KEY_DIGITS 20
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@"

static size_t
trimmed(const char *prefix)
{
	size_t n = strlen(prefix);

	while (n > 0 && prefix[n - 1] == '/')
		n--;
	return n;
}

void
hr_fleet_build_prefix(const char *prefix, const char *api_key, char ret[HR_FLEET_PREFIX])
{
	unsigned char sum[SHA256_DIGEST_LENGTH];
	char text[256], digits[KEY_DIGITS + 1];

	/* this is not the sum that the store keeps, which must stay secret */
	(void)snprintf(text, sizeof(text), "images of %s", api_key);
	(void)SHA256((const unsigned char *)text, strlen(text), sum);
	hr_quote_hex(digits, sum, KEY_DIGITS / 2);
	(void)snprintf(ret, HR_FLEET_PREFIX, "%.*s/k%s", (int)trimmed(prefix), prefix, digits);
	explicit_bzero(text, sizeof(text));
}

/* Copies a name with its registry in one spelling: names of hosts have no case, and the usual ports
 * of a registry add nothing. */
static char *
spell(const char *name)
{
	static const char *const usual[] = {":443", ":80"};
	char *copy = strdup(name), *end = copy != NULL ? strchr(copy, '/') : NULL, *p;
	size_t i, n;

	if (end == NULL)
		return copy;
	for (p = copy; p < end; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	for (i = 0; i < 2; i++) {
		n = strlen(usual[i]);
		if ((size_t)(end - copy) > n && strncmp(end - n, usual[i], n) == 0) {
			memmove(end - n, end, strlen(end) + 1);
			break;
		}
	}
	return copy;
}

/* Shortens a name as a Docker Engine does: a leading "docker.io/" and "library/" change nothing. */
static const char *
short_name(const char *name)
{
	static const char *const same[] = {"docker.io/", "index.docker.io/", "library/"};
	size_t i;

	for (i = 0; i < 3; i++)
		if (strncmp(name, same[i], strlen(same[i])) == 0)
			name += strlen(same[i]);
	return name;
}

/* Returns true for a key's part of a name: "k", digits and "/". */
static bool
is_of_a_key(const char *name)
{
	return *name == 'k' && strspn(name + 1, "0123456789abcdef") == KEY_DIGITS &&
	       name[1 + KEY_DIGITS] == '/';
}

/* Returns true for a possible id: if no image has that name, an Engine takes it for an id, or for
 * the first digits of one. */
static bool
is_id(const char *name)
{
	return strncmp(name, "sha256:", 7) == 0 ||
	       (*name != '\0' && name[strspn(name, "0123456789abcdefABCDEF")] == '\0');
}

bool
hr_fleet_build_allows(const char *prefix, const char *api_key, const char *image)
{
	HR_FREE char *spelt = spell(image);
	HR_FREE char *above = NULL;
	char own[HR_FLEET_PREFIX];
	char all[HR_FLEET_PREFIX];
	const char *name, *below;
	size_t n;

	/* a malformed name could become another on its way to the Engine */
	if (spelt == NULL || strspn(image, LETTERS) != strlen(image) || is_id(image))
		return false;
	name = short_name(spelt);
	(void)snprintf(all, sizeof(all), "%.*s/", (int)trimmed(prefix), prefix);
	above = spell(all);
	if (above == NULL || is_id(name))
		return false;
	below = short_name(above);
	n = strlen(below);
	if (strncmp(name, below, n) != 0 || !is_of_a_key(name + n))
		return true;
	hr_fleet_build_prefix(prefix, api_key, own);
	return strncmp(name + n, strrchr(own, '/') + 1, 1 + KEY_DIGITS) == 0;
}
