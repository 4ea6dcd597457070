"""What the host sends into a new cage before the first frame: the warden's own program, and what a call needs loaded.

Image ids depend on packages only, because our code is not baked in. The bootstrap is the constant command of every
cage: it reads one length-prefixed JSON document and the modules that it lists, and starts the warden from them. The
modules are source text, or what an earlier cage of the same image compiled of exactly that text (`compiled`); such code
is only ever unmarshalled inside a cage. A cage that is asked to tell what it compiled does so before it has received
anything but this bundle.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Final

from toolcage.cage import bpf
from toolcage.cage.spec import SHM_BYTES, TMP_INODES, CageSpec

_WARDEN: Final = (
    "toolcage.cage.wire", "toolcage.warden.collect", "toolcage.warden.counters", "toolcage.warden.namespaces",
    "toolcage.warden.portals", "toolcage.warden.supervisor", "toolcage.warden.zygote", "toolcage.warden.door",
    "toolcage.warden.call", "toolcage.warden.init", "toolcage.warden.serial", "toolcage.warden.main",
)  # fmt: skip
_SESSION: Final = ("toolcage.warden.interpreter", "toolcage.warden.lasting")
_CHILD: Final = ("toolcage.warden.document", "toolcage.warden.child")
_DECLARING: Final = (
    "toolcage.tools.base", "toolcage.tools.docstring", "toolcage.tools.annotations", "toolcage.tools.describe",
)  # fmt: skip

BOOTSTRAP: Final = """
import json,marshal,os,sys,types
def take(n):
    b=b''
    while len(b)<n:
        c=os.read(0,n-len(b))
        if not c: os._exit(0)
        b=b+c if b else c
    return b
def package(name):
    if name and name not in sys.modules:
        parent,_,leaf=name.rpartition('.')
        p=package(parent)
        m=sys.modules[name]=types.ModuleType(name)
        m.__path__=[]
        if p: setattr(p,leaf,m)
    return sys.modules.get(name)
def code_of(name):
    piece=pieces[name]
    return marshal.loads(piece) if bundle['compiled'] else compile(piece,bundle['files'][name],'exec',dont_inherit=True)
def load_module(name):
    parent,_,leaf=name.rpartition('.')
    p=package(parent)
    m=sys.modules[name]=types.ModuleType(name)
    m.__package__=parent
    m.__file__=bundle['files'][name]
    if p: setattr(p,leaf,m)
    exec(code_of(name),m.__dict__)
    return m
bundle=json.loads(take(int.from_bytes(take(4),'big')))
pieces={name:take(size) for name,size in bundle['pieces']}
top=package('toolcage')
top.code_of,top.load_module=code_of,load_module
for name in bundle['warden_modules']: last=load_module(name)
last.main(bundle)
"""
COMMAND: Final = ("/usr/bin/python3", "-I", "-B", "-c", BOOTSTRAP)


def sources(spec: CageSpec, modules: tuple[str, ...]) -> dict[str, bytes]:
    """The text of every module that a cage of `spec` is sent, by name. `modules` are our own tool modules."""
    return {name: _source(name) for name in (*_warden(spec), *_CHILD, *_DECLARING, *modules)}


def encode_bundle(
    spec: CageSpec,
    *,
    lease_s: float,
    modules: tuple[str, ...],
    preload: tuple[str, ...],
    compiled: Mapping[str, bytes] | None = None,
    tell: bool = False,
) -> bytes:
    """What a cage of `spec` reads first. `modules` are our own tool modules to import ahead of any call; `preload`
    names modules of the image that are worth importing there. `compiled` takes the place of `sources`, name by name;
    without it, `tell` asks the cage for what it compiled."""
    filters = bpf.filters(internet=spec.internet) if spec.isolation == "namespace" else {}
    pieces = sources(spec, modules) if compiled is None else compiled
    document = {
        "warden_modules": _warden(spec),
        "child_modules": _CHILD,
        "tool_modules": [*_DECLARING, *modules],
        "import_first": [_DECLARING[0], *modules],
        "pieces": [(name, len(piece)) for name, piece in pieces.items()],
        "files": {name: f"{name}.py" if name in _DECLARING or name in modules else f"<toolcage>/{name}"
                  for name in pieces},
        "compiled": compiled is not None,
        "tell": tell and compiled is None,
        "preload": list(preload),
        "isolation": spec.isolation,
        "filters": {machine: base64.b64encode(program).decode() for machine, program in filters.items()},
        "limits": {"file_bytes": spec.tmp_bytes, "tmp_inodes": TMP_INODES, "shm_bytes": SHM_BYTES},
        "lease_s": lease_s,
    }  # fmt: skip
    encoded = json.dumps(document).encode()
    return b"".join((len(encoded).to_bytes(4, "big"), encoded, *pieces.values()))


def _warden(spec: CageSpec) -> list[str]:
    *before, main = _WARDEN
    return [*before, *(_SESSION if spec.isolation == "session" else ()), main]


@functools.cache
def _source(name: str) -> bytes:
    _, *folders, leaf = name.split(".")
    return resources.files("toolcage").joinpath(*folders, f"{leaf}.py").read_bytes()
