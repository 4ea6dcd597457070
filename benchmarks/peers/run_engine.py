"""The engine alone, by its own client: `docker exec` in a running container, and a plain container without any flag."""

from __future__ import annotations

import importlib.metadata
import sys

import docker
from contestant import PROGRAM, measured, serve

IMAGE = sys.argv[1]
COMMAND = ["python3", "-c", PROGRAM]
client = docker.from_env()
warm_box = client.containers.run(IMAGE, ["sleep", "3600"], detach=True, network_mode="none")


def cold() -> dict[str, float]:
    box = client.containers.create(IMAGE, COMMAND, network_mode="none")

    def once() -> str:
        box.start()
        box.wait()
        return bytes(box.logs()).decode()

    return measured(once, lambda: box.remove(force=True))


try:
    serve(
        f"docker {importlib.metadata.version('docker')}",
        {"warm": lambda: measured(lambda: bytes(warm_box.exec_run(COMMAND).output).decode()), "cold": cold},
    )
finally:
    warm_box.remove(force=True)
