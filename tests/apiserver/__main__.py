"""`python -m tests.apiserver build | serve`: build the API server of the tests, or run one to play with."""

from __future__ import annotations

import signal
import sys

from netqos.testing.namespaces import scratch_folder, sweep_folders
from tests.apiserver.fixtures import install_crd
from tests.apiserver.gobuild import Unavailable
from tests.apiserver.programs import Programs, find_programs
from tests.apiserver.server import ApiServer


def main(arguments: list[str]) -> int:
    if arguments not in (["build"], ["serve"]):
        print("usage: python -m tests.apiserver build | serve", file=sys.stderr)
        return 2
    try:
        programs = find_programs()
    except Unavailable as problem:
        print(problem, file=sys.stderr)
        return 1
    if arguments == ["build"]:
        print(programs)
        return 0
    serve(programs)
    return 0


def serve(programs: Programs) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sweep_folders()
    with scratch_folder("apiserver") as folder:
        server = ApiServer(programs, folder / "data")
        try:
            server.start()
            install_crd(server.admin)
            print(f"export KUBECONFIG={server.access.kubeconfig}", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            pass
        finally:
            server.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
