#include "config.h"

#include "egress/edge.h"
