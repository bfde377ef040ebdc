"""One real Kubernetes node on this machine: API server, kubelet, container runtime and network policies.

The node lives in a network, process and mount namespace of its own. When the first process of that namespace ends,
the kernel takes every process, mount, interface and firewall rule of the node with it, however it ended.
"""
