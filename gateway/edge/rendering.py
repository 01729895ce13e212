"""The proxy's file as text, of the templates beside this module."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from gateway.edge.site import Site

TEMPLATES = Path(__file__).with_name("templates")
# Program -> the name of its template.
FILES = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}


def rendered(program: str, site: Site) -> str:
    """The whole configuration of `haproxy` or `nginx`."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(FILES[program]).render(site=site)
