/* hr_execcred: runs a program named by a kubeconfig, which prints credentials. */
#ifndef HR_HOST_KUBERNETES_EXECCRED_H
#define HR_HOST_KUBERNETES_EXECCRED_H

#include "base/buf.h"
#include "base/strv.h"

struct json_object;

/* Runs exec: {"command", "args", "env", "apiVersion"}. Appends the program's output to out; its
 * messages go to this process's stderr. The time limit is a minute. */
int hr_execcred_run(struct json_object *exec, const char *dir, const struct hr_strv *own_env,
    struct hr_buf *out, struct hr_err *err);

#endif
