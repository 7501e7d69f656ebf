#include "config.h"

#include "egress/wire.h"
