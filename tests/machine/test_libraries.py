"""Versions of the training environment, from files alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from advisor.machine.libraries import normalised, read_libraries, training_environment


def nowhere(program: str) -> None:
    return None


def python(prefix: Path, version: str = "3.10", packages: str = "site-packages") -> Path:
    """A prefix with bin/python3 → pythonX.Y and a package folder, which is returned."""
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    (prefix / "bin" / f"python{version}").write_text("not a program: nothing may run it")
    for link in ("python", "python3"):
        (prefix / "bin" / link).symlink_to(f"python{version}")
    site = prefix / "lib" / f"python{version}" / packages
    site.mkdir(parents=True)
    return site


def install(site: Path, name: str, version: str, stated: str | None = None) -> Path:
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {stated or version}\n\nVersion: 9.9\n"
    )
    return info


# --- which environment ---------------------------------------------------------------------------------------------


def test_the_python_the_script_names_comes_first(tmp_path: Path):
    named, active = python(tmp_path / "named"), python(tmp_path / "active")
    interpreter = str(tmp_path / "named/bin/python")
    said, sites = training_environment(interpreter, {"VIRTUAL_ENV": str(tmp_path / "active")}, nowhere)
    assert sites == (named,)
    assert active not in sites
    assert said == f"{tmp_path}/named (python named by the script)"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_a_bare_python3_means_the_active_environment(tmp_path: Path, variable: str):
    active, first = python(tmp_path / "active"), python(tmp_path / "first")
    said, sites = training_environment(
        "python3", {variable: str(tmp_path / "active")}, lambda _: str(tmp_path / "first/bin/python3")
    )
    assert sites == (active,)
    assert first not in sites
    assert f"${variable}" in said


def test_without_an_environment_the_first_python_on_the_path(tmp_path: Path):
    site = python(tmp_path / "usr-local")
    said, sites = training_environment(None, {}, lambda name: str(tmp_path / f"usr-local/bin/{name}"))
    assert sites == (site,)
    assert "first python3 on PATH" in said


def test_nothing_found_is_empty(tmp_path: Path):
    assert training_environment(None, {}, nowhere) == ("", ())
    assert training_environment("/no/such/bin/python", {"VIRTUAL_ENV": str(tmp_path)}, nowhere) == ("", ())


def test_a_named_python_that_is_not_here_is_said(tmp_path: Path):
    python(tmp_path / "active")
    said, _ = training_environment("/opt/x/bin/python", {"VIRTUAL_ENV": str(tmp_path / "active")}, nowhere)
    assert "/opt/x/bin/python, which the script names, is not here" in said


def test_a_program_names_its_python_in_its_first_line(tmp_path: Path):
    site = python(tmp_path / "conda")
    torchrun = tmp_path / "torchrun"
    torchrun.write_text(f"#!{tmp_path}/conda/bin/python3.10\nimport sys\n")
    _, sites = training_environment("torchrun", {}, lambda name: str(torchrun) if name == "torchrun" else None)
    assert sites == (site,)


def test_a_shell_script_names_no_python(tmp_path: Path):
    program = tmp_path / "swift"
    program.write_text("#!/bin/bash\nexec python\n")
    assert training_environment("swift", {}, lambda name: str(program) if name == "swift" else None) == ("", ())


def test_a_virtual_environment_does_not_see_the_system(tmp_path: Path):
    python(tmp_path / "base")
    site = tmp_path / "venv/lib/python3.10/site-packages"
    site.mkdir(parents=True)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to(tmp_path / "base/bin/python")
    (tmp_path / "venv/pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\ninclude-system-site-packages = false\n")
    _, sites = training_environment(None, {"VIRTUAL_ENV": str(tmp_path / "venv"), "HOME": str(tmp_path)}, nowhere)
    assert sites == (site,)


def test_a_virtual_environment_may_see_the_system_behind_its_own(tmp_path: Path):
    base = python(tmp_path / "base")
    site = tmp_path / "venv/lib/python3.10/site-packages"
    site.mkdir(parents=True)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to(tmp_path / "base/bin/python")
    (tmp_path / "venv/pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\ninclude-system-site-packages = true\n")
    _, sites = training_environment(None, {"VIRTUAL_ENV": str(tmp_path / "venv")}, nowhere)
    assert sites == (site, base)


def test_debian_keeps_packages_in_three_places(tmp_path: Path):
    apt = tmp_path / "usr/lib/python3/dist-packages"
    apt.mkdir(parents=True)
    python(tmp_path / "usr", "3.12", "unused")
    pip = tmp_path / "usr/local/lib/python3.12/dist-packages"
    pip.mkdir(parents=True)
    _, sites = training_environment(None, {}, lambda name: str(tmp_path / f"usr/bin/{name}"))
    assert sites == (pip, apt)


def test_the_users_own_packages_come_first_outside_of_venvs(tmp_path: Path):
    site = python(tmp_path / "opt")
    mine = tmp_path / "home/.local/lib/python3.10/site-packages"
    mine.mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "home"), "CONDA_PREFIX": str(tmp_path / "opt")}
    assert training_environment(None, environ, nowhere)[1] == (mine, site)
    assert training_environment(None, environ | {"PYTHONNOUSERSITE": "1"}, nowhere)[1] == (site,)


def test_a_python_linked_from_elsewhere_is_followed(tmp_path: Path):
    site = python(tmp_path / "real")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(tmp_path / "real/bin/python3")
    assert training_environment(None, {}, lambda name: str(tmp_path / "bin" / name))[1] == (site,)


def test_links_in_a_circle_are_survived(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(tmp_path / "bin/python")
    (tmp_path / "bin/python").symlink_to(tmp_path / "bin/python3")
    assert training_environment(None, {}, lambda name: str(tmp_path / "bin" / name)) == ("", ())


def test_a_pyenv_shim_is_looked_up_in_its_version_file(tmp_path: Path):
    site = python(tmp_path / ".pyenv/versions/3.10.9")
    (tmp_path / ".pyenv/shims").mkdir()
    (tmp_path / ".pyenv/shims/python3").write_text("#!/usr/bin/env bash\n")
    (tmp_path / ".pyenv/version").write_text("3.10.9\n")
    assert training_environment(None, {}, lambda name: str(tmp_path / ".pyenv/shims" / name))[1] == (site,)


# --- which versions ------------------------------------------------------------------------------------------------


def test_versions_come_from_the_metadata_and_names_are_normalised(tmp_path: Path):
    install(tmp_path, "torch", "2.5.1", "2.5.1+cu124")
    install(tmp_path, "flash_attn", "2.7.4.post1")
    install(tmp_path, "Flask", "3.0")
    assert read_libraries([tmp_path]) == {"cuda": "12.4", "flash-attn": "2.7.4.post1", "torch": "2.5.1+cu124"}


def test_metadata_without_a_file_gives_the_version_of_its_name(tmp_path: Path):
    (tmp_path / "deepspeed-0.16.3.dist-info").mkdir()
    (tmp_path / "ray-2.40.0-py3.10.egg-info").mkdir()
    assert read_libraries([tmp_path]) == {"deepspeed": "0.16.3", "ray": "2.40.0"}


def test_the_first_directory_wins_as_in_imports(tmp_path: Path):
    install(tmp_path / "first", "ray", "2.9.0")
    install(tmp_path / "second", "ray", "2.40.0")
    install(tmp_path / "second", "trl", "0.15.0")
    assert read_libraries([tmp_path / "first", tmp_path / "second"]) == {"ray": "2.9.0", "trl": "0.15.0"}


def test_cuda_is_what_torch_states_then_the_runtime_package(tmp_path: Path):
    install(tmp_path / "conda", "torch", "2.5.1")
    (tmp_path / "conda/torch").mkdir()
    (tmp_path / "conda/torch/version.py").write_text(
        "__version__ = '2.5.1'\ncuda: Optional[str] = '12.1'\nhip = None\n"
    )
    install(tmp_path / "conda", "nvidia_cuda_runtime_cu12", "12.4.127")
    install(tmp_path / "wheels", "nvidia_cuda_runtime_cu12", "12.4.127")
    assert read_libraries([tmp_path / "conda"])["cuda"] == "12.1"
    assert read_libraries([tmp_path / "wheels"]) == {"cuda": "12.4"}


def test_hostile_metadata_is_cleaned_and_cut(tmp_path: Path):
    install(tmp_path, "ray", "1", "2.40.0\x1b[31m" + "9" * 300)
    version = read_libraries([tmp_path])["ray"]
    assert version.startswith("2.40.0")
    assert "\x1b" not in version
    assert len(version) <= 64


def test_of_two_left_by_an_upgrade_the_later_counts_and_conda_knows_what_has_no_metadata(tmp_path: Path):
    site = tmp_path / "lib/python3.10/site-packages"
    for name, age in (("vllm-0.10.1.dist-info", 9), ("vllm-0.8.5.dist-info", 0)):
        (site / name).mkdir(parents=True)
        os.utime(site / name, (time.time() - age,) * 2)
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/pytorch-2.5.1-py3.10_cuda12.4_cudnn9.1.0_0.json").write_text("{}")
    assert read_libraries([site]) == {"torch": "2.5.1", "vllm": "0.8.5"}


def test_missing_and_unreadable_directories_are_no_versions(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert read_libraries([tmp_path / "gone", tmp_path / "file"]) == {}


def verl(package: Path, start: str, version: str = "0.2.0.dev0") -> None:
    (package / "verl/trainer").mkdir(parents=True)
    (package / "verl/trainer" / start).write_text("")
    (package / "verl/__init__.py").write_text(f'import os\n__version__ = "{version}"\n')


def test_verl_and_easyr1_are_told_apart(tmp_path: Path):
    for name, start in (("a", "main_ppo.py"), ("b", "main.py")):
        install(tmp_path / name, "verl", "0.2.0.dev0")
        verl(tmp_path / name, start)
    assert read_libraries([tmp_path / "a"]) == {"verl": "0.2.0.dev0"}
    assert read_libraries([tmp_path / "b"]) == {"verl": "0.2.0.dev0", "easyr1": "0.2.0.dev0"}


def test_verl_with_both_ways_to_start_is_verl(tmp_path: Path):
    install(tmp_path, "verl", "0.2.0")
    verl(tmp_path, "main_ppo.py", "0.2.0")
    (tmp_path / "verl/trainer/main.py").write_text("")
    assert read_libraries([tmp_path]) == {"verl": "0.2.0"}


def test_an_editable_install_is_followed_to_its_source(tmp_path: Path):
    source = tmp_path / "Easy R1"
    verl(source, "main.py", "0.3.1")
    info = install(tmp_path / "site", "verl", "0.3.1.dev0")
    url = f"file://{tmp_path}/Easy%20R1"
    (info / "direct_url.json").write_text(f'{{"dir_info": {{"editable": true}}, "url": "{url}"}}')
    assert read_libraries([tmp_path / "site"])["easyr1"] == "0.3.1"


def test_an_editable_install_of_a_path_file_is_followed(tmp_path: Path):
    verl(tmp_path / "src", "main.py", "0.3.2")
    install(tmp_path / "site", "verl", "0.3.2")
    (tmp_path / "site/__editable__.verl-0.3.2.pth").write_text(f"{tmp_path}/src\n")
    assert read_libraries([tmp_path / "site"])["easyr1"] == "0.3.2"


def test_a_development_install_of_old_is_followed(tmp_path: Path):
    verl(tmp_path / "src", "main_ppo.py", "0.1")
    (tmp_path / "src/verl.egg-info").mkdir()
    (tmp_path / "src/verl.egg-info/PKG-INFO").write_text("Name: verl\nVersion: 0.1\n")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/verl.egg-link").write_text(f"{tmp_path}/src\n.")
    assert read_libraries([tmp_path / "site"]) == {"verl": "0.1"}


@pytest.mark.parametrize("text", ["", "[", "[]", '{"url": 5}', '{"url": "https://x/y"}', "[" * 5000])
def test_a_broken_direct_url_changes_nothing(tmp_path: Path, text: str):
    info = install(tmp_path, "verl", "0.2")
    (info / "direct_url.json").write_text(text)
    assert read_libraries([tmp_path]) == {"verl": "0.2"}


def test_names_people_say_for_a_distribution():
    assert [normalised(name) for name in ("Flash_Attn", "swift", "pytorch", "ms.swift")] == [
        "flash-attn",
        "ms-swift",
        "torch",
        "ms-swift",
    ]
