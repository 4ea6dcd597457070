"""Makes the peers' image from our `shell` image, so that every contestant runs the same Python: adds the name `python`.

Needs no registry. `--jupyter FOLDER` makes smolagents' image instead, from `data`; FOLDER holds its packages for the
image's Python:
`pip install --target FOLDER --python-version 3.13 --only-binary=:all: jupyter_kernel_gateway jupyter_client ipykernel`.
"""

from __future__ import annotations

import argparse
import io
import tarfile
from pathlib import Path

import docker

from toolcage.cage.images import ImageLock
from toolcage.state import default_state_dir

NAME, JUPYTER = "toolcage-bench/peer:latest", "toolcage-bench/jupyter:latest"
GATEWAY = '["python3", "-m", "kernel_gateway", "--KernelGatewayApp.ip=0.0.0.0", "--KernelGatewayApp.port=8888"]'


def build(name: str, packages: Path | None) -> None:
    image = "shell" if packages is None else "data"  # the gateway's wheels need the C++ library, which data has
    base = ImageLock.load(default_state_dir()).resolve(image).image_id
    venv = "/sandbox/.sandbox-venv/bin"  # where llm-sandbox's pooled session looks, its own set-up being left out
    links = f"ln -s python3 /usr/bin/python && mkdir -p {venv} && ln -s /usr/bin/python3 {venv}/python"
    named = f'RUN ["bash", "-c", "{links}"]'
    lines = [f"FROM {base}", "USER 0:0", "WORKDIR /root", "ENV HOME=/root"]
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        if packages is not None:
            archive.add(packages, "packages")
            lines += ["COPY packages /opt/packages", "ENV PYTHONPATH=/opt/packages", "EXPOSE 8888"]
        lines += [named, 'CMD ["python3"]'] if packages is None else [f"CMD {GATEWAY}"]
        content = "\n".join(lines).encode()
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    context.seek(0)
    client = docker.from_env()
    client.images.build(fileobj=context, custom_context=True, tag=name, network_mode="none", rm=True)
    client.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jupyter", type=Path)
    packages = parser.parse_args().jupyter
    build(NAME if packages is None else JUPYTER, packages)
