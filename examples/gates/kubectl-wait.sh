#!/bin/sh
# kubectl alone: wait until the run is over, whatever its verdict, then let nothing but an open gate through.
# kubectl-wait.sh NAMESPACE RUN
set -eu
kubectl wait --namespace "$1" "evalrun/$2" --for=condition=Complete --timeout="${TIMEOUT:-3h}"
kubectl get --namespace "$1" "evalrun/$2" --output=jsonpath='{.status.verdict}: {.status.summary}{"\n"}'
kubectl wait --namespace "$1" "evalrun/$2" --for=condition=Ready --timeout=1s
