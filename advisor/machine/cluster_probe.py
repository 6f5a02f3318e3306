"""What runs on each node of a cluster. It travels there by value, so it stands alone and imports nothing of ours."""

from __future__ import annotations


def probe(carried: tuple[dict[str, str], str, dict[str, str]], workers: list[str]) -> dict[str, object]:
    """The node, measured, as plain JSON; in "worker_logs" the ends of the logs of these of its Ray workers, by name.

    `carried`: our own modules, name → source; the language to speak, and its catalogue. `workers`: Ray's worker ids,
    hexadecimal.
    """
    import glob
    import importlib.abc
    import importlib.machinery
    import importlib.util
    import os
    import sys
    import types
    from collections.abc import Sequence

    modules, language, catalogue = carried

    class Carried(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        """Imports from the texts that came with the task."""

        def find_spec(
            self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
        ) -> importlib.machinery.ModuleSpec | None:
            if fullname not in modules:
                return None
            is_package = any(name.startswith(fullname + ".") for name in modules)
            return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

        def exec_module(self, module: types.ModuleType) -> None:
            exec(compile(modules[module.__name__], f"<{module.__name__}>", "exec"), module.__dict__)  # noqa: S102

    try:
        import pynvml  # noqa: F401
    except ImportError:
        try:  # Ray carries one of its own
            from ray._private.thirdparty import pynvml as carried_pynvml

            sys.modules["pynvml"] = carried_pynvml
        except ImportError:
            pass
    for name in [name for name in sys.modules if name == "advisor" or name.startswith("advisor.")]:
        del sys.modules[name]  # an installed one may be of another version
    sys.meta_path.insert(0, Carried())
    from advisor.language import speak
    from advisor.machine.inventory_json import to_json
    from advisor.machine.measure import measure

    speak(language, catalogue)
    ends = {}
    root = os.environ.get("RAY_TMPDIR", "/tmp")  # noqa: S108 - where Ray puts them
    for worker in workers[:8]:
        for path in glob.glob(f"{root}/ray/session_2*/logs/*worker-{worker}[-_]*")[:4]:
            with open(path, "rb") as file:
                ends[os.path.basename(path)] = file.read()[-65536:].decode("utf-8", "replace")
    return {**to_json(measure(sys.executable)), "worker_logs": ends}
