/* egress_names: gives each name that a box asks for an address of 198.18.0.0/15, always the same
 * one, which a later connection of the box leads back to the name. A file keeps them, so that a
 * restarted broker knows the addresses that programs of the box still have. */
#ifndef HR_EGRESS_NAMES_H
#define HR_EGRESS_NAMES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "egress/policy.h"

#define EGRESS_NAMES_MAX 65536

struct egress_names;

/* Opens the file, or makes it. A damaged record costs its own name only. */
struct egress_names *egress_names_open(const char *path, struct hr_err *err);
void egress_names_free(struct egress_names *n);

/* Returns 0 with the address of a name as egress_name() writes it, or -1 if there is no room. */
int egress_names_address(struct egress_names *n, const char *name, struct in_addr *ret);
/* Returns true if the address is in the range of the names. */
bool egress_names_has(struct in_addr a);
/* Returns false if no name has this address. */
bool
egress_names_find(const struct egress_names *n, struct in_addr a, char ret[EGRESS_NAME_MAX + 1]);
size_t egress_names_count(const struct egress_names *n);

#endif
