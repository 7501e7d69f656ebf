/* Parses a number and one of the units b, k, m, g, t. */
#include "config.h"

#include "host/config/size.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

long long
hr_size_parse(const char *text)
{
	static const char units[] = "bkmgt";
	const char *at;
	double n;
	char *stop;

	if (*text == '\0')
		return 0;
	if (!isdigit((unsigned char)*text))
		return -1;
	n = strtod(text, &stop);
	if (*stop == '\0')
		return (long long)n;
	at = strchr(units, tolower((unsigned char)*stop));
	if (at == NULL)
		return -1;
	stop++;
	if (*stop != '\0' && tolower((unsigned char)*stop) == 'b')
		stop++;
	if (*stop != '\0')
		return -1;
	for (; at > units; at--)
		n *= 1024;
	return n < 9e18 ? (long long)n : -1;
}
