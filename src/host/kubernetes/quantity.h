/* hr_kube_quantity: parses Kubernetes' quantities, such as "500m" or "2Gi". */
#ifndef HR_HOST_KUBERNETES_QUANTITY_H
#define HR_HOST_KUBERNETES_QUANTITY_H

/* Returns the number, or 0 if there is none. */
double hr_kube_quantity(const char *text);

#endif
