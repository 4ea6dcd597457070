"""AutoGen's DockerCommandLineCodeExecutor: one container for all `warm` runs, one of its own for each `cold` one."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
import tempfile

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.code_executors.docker import DockerCommandLineCodeExecutor
from contestant import PROGRAM, measured, serve

IMAGE = sys.argv[1]
loop = asyncio.new_event_loop()
folder = tempfile.mkdtemp(prefix="peer-autogen-")


def executor() -> DockerCommandLineCodeExecutor:
    return DockerCommandLineCodeExecutor(image=IMAGE, work_dir=folder)


def run_in(box: DockerCommandLineCodeExecutor) -> str:
    block = CodeBlock(code=PROGRAM, language="python")
    return str(loop.run_until_complete(box.execute_code_blocks([block], CancellationToken())).output)


warm_box = executor()
loop.run_until_complete(warm_box.start())


def cold() -> dict[str, float]:
    box = executor()

    def once() -> str:
        loop.run_until_complete(box.start())
        return run_in(box)

    return measured(once, lambda: loop.run_until_complete(box.stop()))


try:
    serve(importlib.metadata.version("autogen-ext"), {"warm": lambda: measured(lambda: run_in(warm_box)), "cold": cold})
finally:
    loop.run_until_complete(warm_box.stop())
