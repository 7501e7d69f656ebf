/* Parses a number with a suffix for a power of 1000 or 1024. */
#include "config.h"

#include "host/kubernetes/quantity.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double
hr_kube_quantity(const char *text)
{
	size_t i;

	static const struct {
		const char *end;
		double factor;
	} ends[] = {{"", 1}, {"n", 1e-9}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6},
	    {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}, {"Ki", 0x1p10}, {"Mi", 0x1p20},
	    {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
	char *end;
	double n;

	if (text == NULL || !(isdigit((unsigned char)*text) || *text == '.'))
		return 0;
	n = strtod(text, &end);
	for (i = 0; isfinite(n) && i < sizeof(ends) / sizeof(*ends); i++)
		if (strcmp(end, ends[i].end) == 0)
			return n * ends[i].factor;
	return 0;
}
