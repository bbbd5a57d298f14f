"""Whether this node follows Kubernetes: `kubernetes.enable`, with `auto` decided by where the daemon runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from netqos.model.health import Finding, error, warning
from netqos.runtime.inputs import HostFacts
from netqos.runtime.parts import Parts
from netqos.settings.values import Settings, Toggle

if TYPE_CHECKING:
    from netqos.runtime.kube import KubeSources

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


RESOLVER = "timeout:1 attempts:1"
"""resolv.conf(5), in the environment: each source asks again by itself, so that a lost question costs it a second."""


def is_in_cluster(environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process runs in a pod."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) or (service_account / "token").exists()


def decided(settings: Settings, *, in_cluster: bool) -> Settings:
    """The settings with `kubernetes.enable` either on or off."""
    if settings.kubernetes.enable is not Toggle.AUTO:
        return settings
    enable = Toggle.ON if in_cluster else Toggle.OFF
    return replace(settings, kubernetes=replace(settings.kubernetes, enable=enable))


def credentials_missing(settings: Settings, *, in_cluster: bool) -> tuple[Finding, ...]:
    """What is wrong where this node follows Kubernetes and has nothing to log in with; no request is made.

    A warning where the credentials are a pod's and this is none: the file may be meant for one. They may come later,
    so that a daemon that serves only says so and goes on.
    """
    if settings.kubernetes.enable is not Toggle.ON:
        return ()
    from netqos.sources.kube.connection import Connection  # noqa: PLC0415 - as below

    kubeconfig = settings.kubernetes.kubeconfig
    problem = Connection(Path(kubeconfig) if kubeconfig is not None else None).what_is_missing()
    if not problem:
        return ()
    if kubeconfig is None and not in_cluster:
        hint = "run it in a pod, or set kubernetes.kubeconfig"
        return (warning("no-credentials", "kubernetes", problem, hint=hint),)
    hint = "correct kubernetes.kubeconfig" if kubeconfig is not None else "mount the service account's token"
    return (error("no-credentials", "kubernetes", problem, hint=hint),)


def follow_kubernetes(parts: Parts, host: HostFacts, settings: Settings) -> KubeSources | None:
    """The Kubernetes sources, not started; None on a node without."""
    if settings.kubernetes.enable is not Toggle.ON:
        return None
    # The C library reads it with the first name that it looks up, which no thread has done yet.
    os.environ.setdefault("RES_OPTIONS", RESOLVER)
    # A node without Kubernetes loads nothing of it.
    from netqos.runtime.kube import KubeSources  # noqa: PLC0415
    from netqos.runtime.kubememory import KubeMemory  # noqa: PLC0415

    return KubeSources(
        settings,
        parts.node,
        parts.clock,
        own_addresses=lambda: host.own_addresses,
        memory=KubeMemory(parts.state, parts.clock),
    )
