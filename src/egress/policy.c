#include "config.h"

#include "egress/policy.h"
