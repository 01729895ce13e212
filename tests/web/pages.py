"""Reads a page of HTML as a browser does, for what tests ask of it."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "line", "rect", "circle", "path"}


class Reader(HTMLParser):
    """Notes the tags, the ids and the links of a page, and that every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        hrefs = [value or "" for name, value in attrs if name == "href"]
        (self.loaded if tag == "link" else self.links).extend(hrefs)
        self.loaded += [value or "" for name, value in attrs if name == "src"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"script", "style"}:
            self.scripts.append(data)
