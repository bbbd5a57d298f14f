"""The command line of netqosctl as one table: the parser and the shells' completions are made from it."""

from __future__ import annotations

import argparse

from netqos.cli import values
from netqos.cli.client import DEFAULT_SOCKET
from netqos.cli.commandform import Argument, Command

CONFIG = "/etc/netqos/netqos.yaml"


def _overrides_something(arguments: argparse.Namespace) -> str:
    if arguments.egress is None and arguments.ingress is None and arguments.level is None:
        return "nothing to override: give --egress, --ingress or --level"
    return ""


def _names_nodes(arguments: argparse.Namespace) -> str:
    return "for which nodes? give --nodes SELECTOR" if arguments.nodes is None else ""


POD = Argument(
    name="pod",
    metavar="POD",
    help="NAMESPACE/POD, the name of a workload, or a UID",
    type=values.pod,
    is_pod=True,
)
CONFIG_FILE = Argument(
    name="--config", metavar="FILE", type=values.path, help=f"the daemon's configuration (default: {CONFIG})"
)

COMMON = (
    Argument(
        name="--socket",
        metavar="PATH",
        type=values.path,
        help=f"the daemon's socket (default: $NETQOS_SOCKET, else {DEFAULT_SOCKET})",
    ),
    Argument(name="--json", default=False, help="answer in JSON, for programs"),
    Argument(
        name="--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours, with the extra `color`",
    ),
)

COMMANDS = (
    Command(name="status", runs="status:run", help="the whole node at a glance"),
    Command(
        name="top",
        runs="top:run",
        help="levels and the busiest pods, live",
        arguments=(
            Argument(
                name="--interval",
                metavar="SECONDS",
                default=1.0,
                type=values.interval,
                help="between two pictures",
            ),
            Argument(name="--count", metavar="N", type=values.whole_number, help="end after N pictures"),
            Argument(
                name="--pods",
                metavar="N",
                default=10,
                type=values.whole_number,
                help="show the N busiest pods",
            ),
        ),
    ),
    Command(
        name="history",
        runs="history:run",
        help="what the loop decided in the last minutes, and why",
        arguments=(
            Argument(
                name="--since",
                metavar="TIME",
                default="2m",
                type=values.time_span,
                help="only the last 90s, 10m, 1h",
            ),
            Argument(name="--direction", choices=("egress", "ingress"), help="only this direction"),
            Argument(name="--unit", metavar="DEVICE", help="only this device, such as eth0 or netqos-ifb"),
            Argument(name="--all", default=False, help="also what changed nothing"),
        ),
    ),
    Command(
        name="record",
        runs="record:run",
        help="write the loop's rounds from now on into a file",
        arguments=(
            Argument(name="file", metavar="FILE", type=values.path, help="a new file", is_file=True),
            Argument(
                name="--for",
                dest="duration",
                metavar="TIME",
                default="60s",
                type=values.time_span,
                help="90s, 10m, 1h; at most 24h",
            ),
            Argument(
                name="--most",
                metavar="SIZE",
                default="256M",
                type=values.file_size,
                help="end when the file would become larger than 500k, 64M, 1G",
            ),
            Argument(name="--force", default=False, help="replace a file that is there"),
        ),
    ),
    Command(
        name="replay",
        runs="replay:run",
        help="run recorded rounds again, also under another policy",
        arguments=(
            Argument(name="file", metavar="FILE", type=values.path, help="what record wrote", is_file=True),
            Argument(
                name="--policy",
                metavar="FILE",
                type=values.path,
                help="a configuration of netqosd: what would its policy have decided",
            ),
            Argument(
                name="--most",
                metavar="N",
                default=5,
                type=values.whole_number,
                help="show the first N differences",
            ),
        ),
    ),
    Command(
        name="simulate",
        runs="simulate:run",
        help="what a policy and a demand come to, without a daemon",
        arguments=(
            Argument(
                name="file",
                metavar="SCENARIO",
                type=values.path,
                help="YAML or JSON; - for stdin",
                is_file=True,
            ),
        ),
    ),
    Command(
        name="pods",
        runs="pods:run",
        help="every pod with its level and limits",
        arguments=(
            Argument(
                name="--level", choices=("l0", "l1", "l2"), type=str.lower, help="only pods of this level"
            ),
            Argument(name="--names", default=False, help="only the names, one a line"),
        ),
    ),
    Command(name="explain", runs="explain:run", help="why a pod has what it has", arguments=(POD,)),
    Command(name="plan", runs="plan:run", help="what the next reconcile would change"),
    Command(
        name="limit",
        runs="limits:limit",
        help="override a pod's limits or level for a time",
        arguments=(
            POD,
            Argument(
                name="--egress",
                metavar="QUANTITY",
                help="bits per second away from the pod, such as 10M; 0: no limit",
            ),
            Argument(
                name="--ingress", metavar="QUANTITY", help="bits per second towards the pod; 0: no limit"
            ),
            Argument(name="--level", metavar="LEVEL", help="l0, l1 or l2"),
            Argument(
                name="--for",
                dest="duration",
                metavar="TIME",
                default="10m",
                type=values.time_span,
                help="90s, 10m, 1h30m; at most 24h",
            ),
            Argument(name="--reason", metavar="TEXT", default="", help="why, for those who see it"),
        ),
        check=_overrides_something,
    ),
    Command(
        name="limits",
        runs="limits:limits",
        help="the overrides in force",
        arguments=(
            Argument(
                name="--delete",
                metavar="POD",
                type=values.pod,
                help="end the override of this pod now",
                is_pod=True,
            ),
        ),
    ),
    Command(
        name="slo",
        runs="slo:run",
        help="give many nodes of a cluster one NodeSLO",
        arguments=(
            Argument(name="action", choices=("apply",), help="write it, after it was judged as a node would"),
            Argument(
                name="file",
                metavar="FILE",
                type=values.path,
                help="a NodeSLO without a name, YAML or JSON",
                is_file=True,
            ),
            Argument(
                name="--nodes",
                metavar="SELECTOR",
                type=values.selector,
                help="the labels of the nodes, such as pool=batch,zone!=b",
            ),
            Argument(
                name="--kubeconfig",
                metavar="PATH",
                type=values.path,
                help="whose rights to use (default: $KUBECONFIG, else ~/.kube/config)",
            ),
            Argument(name="--force", default=False, help="take over values that another writer has set"),
            Argument(name="--dry-run", default=False, help="ask the server, and let it store nothing"),
        ),
        check=_names_nodes,
    ),
    Command(name="reconcile", runs="plan:reconcile", help="bring the node to the wanted state now"),
    Command(
        name="cleanup",
        runs="cleanup:run",
        help="remove all of netqos from this node; the daemon must be stopped",
        arguments=(
            CONFIG_FILE,
            Argument(name="--dry-run", default=False, help="only show what would be removed"),
        ),
    ),
    Command(
        name="doctor",
        runs="doctor:run",
        help="what this host can do, and what is in the way",
        arguments=(CONFIG_FILE,),
    ),
    Command(
        name="completion",
        runs="completion:run",
        help="a completion script for the shell",
        arguments=(Argument(name="shell", choices=("bash", "zsh", "fish"), help="the shell"),),
    ),
    Command(name="demo", runs="", help="show a node keeping its promises under real traffic"),
)
