/* hr_kube_quantity: Kubernetes' amounts, as "500m" or "2Gi", as numbers. */
#ifndef HR_HOST_KUBERNETES_QUANTITY_H
#define HR_HOST_KUBERNETES_QUANTITY_H

/* 0: there is none, or it is none. */
double hr_kube_quantity(const char *text);

#endif
