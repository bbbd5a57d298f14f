"""The API server and the kubelet as sources: pods, NodeSLO and Node as whole snapshots that survive every fault."""
