"""smolagents' DockerExecutor: one kernel for all `warm` runs, a container and kernel of its own for each `cold` one.

It needs an image with the Jupyter kernel gateway (`image.py --jupyter`) and an engine that publishes ports.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import sys

from contestant import PROGRAM, measured, serve
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import DockerExecutor

IMAGE = sys.argv[1]
logger = AgentLogger(level=LogLevel.OFF)
ports = itertools.count(18_888)


def executor() -> DockerExecutor:
    return DockerExecutor([], logger, port=next(ports), image_name=IMAGE, build_new_image=False)


def run_in(box: DockerExecutor) -> str:
    return str(box.run_code_raise_errors(PROGRAM).logs)


warm_box = executor()


def cold() -> dict[str, float]:
    made: list[DockerExecutor] = []

    def once() -> str:
        made.append(executor())
        return run_in(made[0])

    return measured(once, lambda: made[0].cleanup())


try:
    serve(importlib.metadata.version("smolagents"), {"warm": lambda: measured(lambda: run_in(warm_box)), "cold": cold})
finally:
    warm_box.cleanup()
