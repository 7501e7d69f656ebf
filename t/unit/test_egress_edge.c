/* The configuration of a box's nginx, with values that try to become configuration. */
#include "config.h"

#include "egress/edge.h"

#include <check.h>

#include "lines.h"

int
main(void)
{
	return 0;
}
