"""Measures a node of a cluster. It travels there by value, so it stands alone and imports nothing of ours."""

from __future__ import annotations


def probe(code: bytes, language: str, catalogue: dict[str, str], workers: list[str], patience: float) -> bytes:
    """The node, measured, as packed JSON; in "worker_logs" the ends of the logs of these of its Ray workers, by name.

    `code`: our own modules, packed: name → compiled by this version of Python, which Ray sees to. `workers`: Ray's
    worker ids, hexadecimal. `patience`: seconds for the GPU driver.
    """
    import importlib.machinery
    import importlib.util
    import json
    import marshal
    import sys
    import types
    import zlib
    from collections.abc import Sequence

    class Carried:
        """Imports from what came with the task: finder and loader, without the weight of importlib.abc."""

        def __init__(self, modules: dict[str, types.CodeType]) -> None:
            self.modules = modules

        def find_spec(
            self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
        ) -> importlib.machinery.ModuleSpec | None:
            if fullname.partition(".")[0] != "advisor":
                return None
            if fullname not in self.modules:  # never from an installed one: it may be of another version
                raise ModuleNotFoundError(fullname, name=fullname)
            is_package = any(name.startswith(fullname + ".") for name in self.modules)
            return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)  # type: ignore[arg-type]

        def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
            return None

        def exec_module(self, module: types.ModuleType) -> None:
            exec(self.modules[module.__name__], module.__dict__)  # noqa: S102

    if not any(type(finder).__name__ == "Carried" for finder in sys.meta_path):  # the first task of this worker
        if importlib.util.find_spec("pynvml") is None:
            try:  # Ray carries one of its own
                from ray._private.thirdparty import pynvml as carried_pynvml

                sys.modules["pynvml"] = carried_pynvml
            except ImportError:
                pass
        for name in [name for name in sys.modules if name.partition(".")[0] == "advisor"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Carried(marshal.loads(zlib.decompress(code))))  # noqa: S302 - our own
    from advisor.language import say, speak
    from advisor.machine.inventory_json import to_json
    from advisor.machine.measure import measure
    from advisor.machine.ray_session import ends_of_workers

    speak(language, catalogue)
    machine = measure(sys.executable, patience=patience, whose=say("Ray's Python"))
    return zlib.compress(json.dumps({**to_json(machine), "worker_logs": ends_of_workers(workers)}).encode(), 1)
