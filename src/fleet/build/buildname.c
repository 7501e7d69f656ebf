/* Decides ownership of images by name: hr_fleet_build_prefix, hr_fleet_build_allows. */
#include "config.h"

#include "fleet/build/build.h"

#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

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
	char own[HR_FLEET_PREFIX];
	char all[HR_FLEET_PREFIX];
	const char *name = short_name(image), *below;
	size_t n;

	/* a malformed name could become another on its way to the Engine */
	if (strspn(image, LETTERS) != strlen(image) || is_id(image) || is_id(name))
		return false;
	(void)snprintf(all, sizeof(all), "%.*s/", (int)trimmed(prefix), prefix);
	below = short_name(all);
	n = strlen(below);
	if (strncmp(name, below, n) != 0 || !is_of_a_key(name + n))
		return true;
	hr_fleet_build_prefix(prefix, api_key, own);
	below = short_name(own);
	n = strlen(below);
	return strncmp(name, below, n) == 0 && name[n] == '/';
}
