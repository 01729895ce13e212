"""What of the tools and peers this machine has, and how to get the rest."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "peers"
_LUA_MODULES = ("/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/etc/nginx/modules")


def missing() -> dict[str, str]:
    """Returns what is not there, each with how to get it."""
    found = {}
    if find_spec("uvloop") is None:
        found["uvloop"] = f"{sys.executable} -m pip install uvloop"
    if shutil.which("wrk") is None:
        found["wrk"] = "apt-get install wrk"
    if nginx() is None or lua_modules() is None:
        found["nginx"] = "apt-get install nginx-light libnginx-mod-http-lua lua-cjson"
    if shutil.which("node") is None or shutil.which("npm") is None:
        found["Fastify"] = "apt-get install nodejs npm (node 20 or newer)"
    elif (trouble := install_node_modules()) is not None:
        found["Fastify"] = f"npm has to reach a registry once: {trouble}"
    return found


def nginx() -> str | None:
    """Returns the program, which an ordinary account does not have on its path."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def lua_modules() -> Path | None:
    """Returns the folder of nginx' modules, where Lua is among them."""
    folders = map(Path, _LUA_MODULES)
    return next((each for each in folders if (each / "ngx_http_lua_module.so").exists()), None)


def install_node_modules() -> str | None:
    """Puts what package.json names into the build folder, once; returns why it cannot."""
    wanted, taken = HERE / "package.json", BUILD / "package.json"
    if taken.exists() and taken.read_bytes() == wanted.read_bytes():
        return None
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    shutil.copy(wanted, taken)
    words = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--fetch-retries=1"]
    try:
        subprocess.run(words, cwd=BUILD, capture_output=True, check=True, text=True, timeout=300)
    except subprocess.SubprocessError as error:
        taken.unlink()
        said = getattr(error, "stderr", None) or str(error)
        return str(said).strip().splitlines()[0]
    return None
