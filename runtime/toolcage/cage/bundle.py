"""What the host sends into a new cage before the first frame: the warden's own source, and what a call needs loaded.

Image ids depend on packages only, because our code is not baked in. The bootstrap is the constant command of every
cage: it reads one length-prefixed JSON document from the door and starts the warden from it.
"""

from __future__ import annotations

import base64
import functools
import json
from importlib import resources
from typing import Final

from toolcage.cage import bpf
from toolcage.cage.spec import SHM_BYTES, TMP_INODES, CageSpec

_WARDEN: Final = (
    "toolcage.cage.wire", "toolcage.warden.collect", "toolcage.warden.counters", "toolcage.warden.namespaces",
    "toolcage.warden.supervisor", "toolcage.warden.zygote", "toolcage.warden.door", "toolcage.warden.call",
    "toolcage.warden.init", "toolcage.warden.serial", "toolcage.warden.main",
)  # fmt: skip
_SESSION: Final = ("toolcage.warden.interpreter", "toolcage.warden.lasting")
_CHILD: Final = ("toolcage.warden.document", "toolcage.warden.child")
_DECLARING: Final = (
    "toolcage.tools.base", "toolcage.tools.docstring", "toolcage.tools.annotations", "toolcage.tools.describe",
)  # fmt: skip

BOOTSTRAP: Final = """
import json,os,sys,types
def take(n):
    b=b''
    while len(b)<n:
        c=os.read(0,n-len(b))
        if not c: os._exit(0)
        b+=c
    return b
def package(name):
    if name and name not in sys.modules:
        parent,_,leaf=name.rpartition('.')
        p=package(parent)
        m=sys.modules[name]=types.ModuleType(name)
        m.__path__=[]
        if p: setattr(p,leaf,m)
    return sys.modules.get(name)
def load_module(name,source):
    parent,_,leaf=name.rpartition('.')
    p=package(parent)
    m=sys.modules[name]=types.ModuleType(name)
    m.__package__=parent
    m.__file__='<toolcage>/'+name
    if p: setattr(p,leaf,m)
    exec(compile(source,m.__file__,'exec'),m.__dict__)
    return m
bundle=json.loads(take(int.from_bytes(take(4),'big')))
package('toolcage').load_module=load_module
for name,source in bundle['warden_modules']: last=load_module(name,source)
last.main(bundle)
"""
COMMAND: Final = ("/usr/bin/python3", "-I", "-B", "-c", BOOTSTRAP)


def encode_bundle(spec: CageSpec, *, lease_s: float, modules: tuple[str, ...], preload: tuple[str, ...]) -> bytes:
    """The document that a cage of `spec` reads first. `modules` are our own tool modules to import ahead of any call;
    `preload` names modules of the image that are worth importing there."""
    filters = bpf.filters() if spec.isolation == "namespace" else {}
    *before, main = _WARDEN
    warden = (*before, *(_SESSION if spec.isolation == "session" else ()), main)
    document = {
        "warden_modules": [(name, _source(name)) for name in warden],
        "child_modules": [(name, _source(name)) for name in _CHILD],
        "tool_modules": {name: _source(name) for name in (*_DECLARING, *modules)},
        "preload": list(preload),
        "isolation": spec.isolation,
        "filters": {machine: base64.b64encode(program).decode() for machine, program in filters.items()},
        "limits": {"file_bytes": spec.tmp_bytes, "tmp_inodes": TMP_INODES, "shm_bytes": SHM_BYTES},
        "lease_s": lease_s,
    }
    encoded = json.dumps(document).encode()
    return len(encoded).to_bytes(4, "big") + encoded


@functools.cache
def _source(name: str) -> str:
    _, *folders, leaf = name.split(".")
    return resources.files("toolcage").joinpath(*folders, f"{leaf}.py").read_text(encoding="utf-8")
