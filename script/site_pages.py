#!/usr/bin/env python3
"""The pages of the site: what a generator reads, and a look at what it wrote.

    site_pages.py stage ROOT GALLERY OUT   writes to OUT, for Sphinx, the pages of the checkout ROOT
                                           and of the pictures that script/gallery.py made
    site_pages.py check SITE               every link of the HTML pages in SITE leads to a file and
                                           an anchor, and no page loads anything from outside
    site_pages.py --self-test

A link to a source file becomes a link to a page that shows it; one to a folder, to its README or
to a list of its files.
"""
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.parse

from tracked import tracked

LINK = re.compile(r"(\[[^\]\[]*\]\()([^)\s]+)(\))")
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".c": "c", ".py": "python",
             ".sh": "sh", ".json": "json"}


class Stage:
    """Copies pages to `out` and what they link to, as pages."""

    def __init__(self, root, out):
        self.root, self.out = root, out
        self.names = set(tracked(root))
        self.pages = sorted(n for n in self.names if n.endswith(".md"))
        self.made = {}  # of a source file or a folder: its page

    def page_of(self, name):
        """The page that a link to `name` of the checkout leads to; None: it is no page."""
        name = "" if name == "." else name.rstrip("/")
        if name in ("README.md", ""):
            return "index.md"
        if name in self.pages:
            return name
        if f"{name}/README.md" in self.pages:
            return f"{name}/README.md"
        inside = [n for n in sorted(self.names) if n.startswith(name + "/")]
        if inside:
            if name not in self.made:
                self.made[name] = f"{name}/index.md"
                files = [n for n in inside if "/" not in n[len(name) + 1:]]
                lines = [f"- [{n[len(name) + 1:]}]"
                         f"({os.path.relpath(self.page_of(n) or n, name)})" for n in files]
                self.write(self.made[name], f"---\norphan: true\n---\n# {name}\n\n" +
                           "\n".join(lines) + "\n")
            return self.made[name]
        if name not in self.names or pathlib.Path(name).suffix in (".svg", ".png"):
            return None
        if name not in self.made:
            self.made[name] = f"{name}.md"
            text = (self.root / name).read_text(encoding="utf-8")
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            self.write(self.made[name], f"---\norphan: true\n---\n# {name}\n\n{fence}"
                       f"{LANGUAGES.get(pathlib.Path(name).suffix, 'text')}\n{text}{fence}\n")
        return self.made[name]

    def write(self, name, text):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def relinked(self, name, text):
        """The text of page `name` with its links as links to pages."""
        here = pathlib.PurePosixPath(name).parent

        def link(match):
            target = match[2]
            path, mark, anchor = target.partition("#")
            if not path or re.match(r"\w+:", target):
                return match[0]
            page = self.page_of(os.path.normpath(here / path))
            if page is None:
                return match[0]
            return match[1] + os.path.relpath(page, here) + mark + anchor + match[3]

        # Blocks and code stay as they are.
        parts = re.split(r"(^ *```.*?^ *```$|`[^`\n]*`)", text, flags=re.M | re.S)
        # Code stands in the words of links: it comes back before links are looked for.
        for i in range(1, len(parts), 2):
            if not parts[i].lstrip().startswith("```"):
                parts[i] = parts[i].replace("[", "\1").replace("]", "\2").replace("(", "\3")
        joined, block = "", []
        for part in parts:
            if part.lstrip().startswith("```"):
                block.append(part)
                part = f"\4{len(block) - 1}\5"
            joined += part
        joined = LINK.sub(link, joined)
        joined = re.sub("\4(\\d+)\5", lambda m: block[int(m[1])], joined)
        return joined.replace("\1", "[").replace("\2", "]").replace("\3", "(")

    def trees(self):
        """The groups of the sidebar: what docs/README.md leads through, then all the rest."""
        readme = (self.root / "docs/README.md").read_text(encoding="utf-8")
        groups, seen = [], {"README.md"}
        for section in re.split(r"^## ", readme, flags=re.M)[1:]:
            title, _, text = section.partition("\n")
            names = []
            for _, target, _ in LINK.findall(text):
                name = os.path.normpath(os.path.join("docs", target.partition("#")[0]))
                if name in self.pages and name not in seen:
                    seen.add(name)
                    names.append(name)
            if names:
                groups.append((title, names))
        rest = [n for n in self.pages if n not in seen]
        groups.insert(0, ("Warpwright", [n for n in ("docs/README.md",) if n in rest] +
                          ["gallery.md"]))
        log = [n for n in rest if n.startswith("docs/log/")]
        groups.append(("More", [n for n in rest if n not in log and n != "docs/README.md"]))
        groups.append(("Measurements", log))
        return "".join("\n```{toctree}\n:hidden:\n:caption: " + title + "\n\n" +
                       "\n".join(n.removesuffix(".md") for n in names) + "\n```\n"
                       for title, names in groups if names)

    def run(self, gallery):
        for name in self.pages:
            text = self.relinked(name, (self.root / name).read_text(encoding="utf-8"))
            if name == "README.md":
                self.write("index.md", text + self.trees())
            else:
                self.write(name, text)
        for name in self.names:
            is_image = pathlib.Path(name).suffix in (".svg", ".png")
            if is_image and name.startswith(("docs", "examples")):
                (self.out / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.root / name, self.out / name)
        self.write("gallery.md", gallery_page(json.loads((gallery / "made.json").read_text(
            encoding="utf-8"))))
        shutil.copytree(gallery, self.out / "extra/pictures",
                        ignore=shutil.ignore_patterns("*.json", ".*"))
        site = self.root / "docs/site"
        shutil.copy(site / "conf.py", self.out)
        (self.out / "static").mkdir()
        shutil.copy(site / "site.css", self.out / "static")


def gallery_page(made):
    """The page of all pictures. `made` is what script/gallery.py wrote: groups of pictures."""
    text = ("# Gallery\n\nEvery picture is made by the command below it. A page needs no network: "
            "choose views, step through what happens, point at cells, save the SVG.\n")
    for group in made["groups"]:
        text += f"\n## {group['title']}\n\n{group['about']}\n\n" + '<div class="ww-gallery">\n'
        for picture in group["pictures"]:
            name = html.escape(picture["title"])
            text += (f'<a class="ww-card" href="pictures/{picture["id"]}.html">'
                     f'<img src="pictures/{picture["id"]}.svg" alt="" loading="lazy">'
                     f'<span class="words"><span class="name">{name}</span>'
                     f'<code>{html.escape(picture["command"])}</code></span></a>\n')
        text += "</div>\n"
    return text


class Links(html.parser.HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], {"", "top"}

    def handle_starttag(self, tag, attributes):
        attributes = {name: value or "" for name, value in attributes}
        self.anchors.update(attributes[a] for a in ("id", "name") if a in attributes)
        if tag in ("a", "area") and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "link" and "href" in attributes:
            self.loads.append(attributes["href"])
        if tag not in ("a", "link") and "src" in attributes:
            self.loads.append(attributes["src"])

    handle_startendtag = handle_starttag


def faults(site):
    pages = {}
    for path in sorted(site.rglob("*.html")):
        parser = Links()
        parser.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = parser
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for target in page.loads + page.links:
            split = urllib.parse.urlsplit(target)
            if split.scheme or split.netloc:
                if target in page.loads and split.scheme != "data":
                    yield f"{name}: loads {target} from outside"
                continue
            place = path
            if split.path:
                place = (path.parent / urllib.parse.unquote(split.path)).resolve()
            if place.is_dir():
                place /= "index.html"
            if not place.is_file():
                yield f"{name}: {target} leads nowhere"
            elif place in pages and not is_state(split.fragment) and (
                    urllib.parse.unquote(split.fragment) not in pages[place].anchors):
                yield f"{name}: {target}: no such anchor"
    for path in sorted(site.rglob("*.css")):
        for target in re.findall(r"""(?:@import\s+(?:url\()?|url\()\s*["']?([^"')\s;]+)""",
                                 path.read_text(encoding="utf-8")):
            if re.match(r"(https?:)?//", target):
                yield f"{path.relative_to(site)}: loads {target} from outside"


def is_state(fragment):
    """What a picture's page keeps there is no anchor."""
    return fragment.startswith("view=")


def self_test():
    docs = "docs"  # apart, where such a page is none of ours
    pages = {
        "README.md": f"# Front\n[docs](docs/README.md) [a `x`]({docs}/a.md#two-words)\n",
        "docs/README.md": "# Docs\n\n## First\n[a](a.md) [src](../src/) [k](../src/k.h)\n",
        f"{docs}/a.md": "# A\n## Two words\n[up](../README.md) `[no](none.md)`\n"
                     "```\n[no](x.md)\n```\n",
        f"{docs}/b.md": "# B\n![p](p.svg)\n",
        "docs/p.svg": "<svg/>", "src/k.h": "int x;\n",
        "docs/site/conf.py": "", "docs/site/site.css": "",
    }
    made = {"groups": [{"title": "G", "about": "All.", "pictures": [
        {"id": "x", "title": "<X>", "command": "warpwright draw 'a<b'"}]}]}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        for name, text in pages.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        gallery = pathlib.Path(folder) / "gallery"
        gallery.mkdir()
        (gallery / "made.json").write_text(json.dumps(made), encoding="utf-8")
        (gallery / "x.html").write_text("<p>x", encoding="utf-8")
        out = pathlib.Path(folder) / "out"
        Stage(root, out).run(gallery)
        index = (out / "index.md").read_text(encoding="utf-8")
        assert f"[docs](docs/README.md) [a `x`]({docs}/a.md#two-words)" in index, index
        assert ":caption: First\n\ndocs/a\n" in index and "docs/b" in index, index
        assert "[src](../src/index.md) [k](../src/k.h.md)" in (out / "docs/README.md").read_text()
        assert "[k.h](k.h.md)" in (out / "src/index.md").read_text()
        assert "```cpp\nint x;\n```" in (out / "src/k.h.md").read_text()
        page = (out / docs / "a.md").read_text()
        assert "[up](../index.md) `[no](none.md)`\n```\n[no](x.md)" in page, page
        assert "&lt;X&gt;" in (out / "gallery.md").read_text()
        assert (out / "extra/pictures/x.html").exists() and (out / "docs/p.svg").exists()

        site = pathlib.Path(folder) / "site"
        (site / "d").mkdir(parents=True)
        (site / "index.html").write_text(
            '<h1 id="top-1"></h1><a href="d/">d</a><a href="d/#q">q</a><a href="none.html">n</a>'
            '<a href="#top-1">t</a><a href="https://a.b/">o</a><a href="d/#view=x&amp;row=1">v</a>'
            '<script src="//a.b/x.js"></script><img src="data:,">', encoding="utf-8")
        (site / "d/index.html").write_text('<a href="../index.html#no">x</a>', encoding="utf-8")
        (site / "x.css").write_text("@import url(https://a.b/f.css); a{b:url(c.png)}")
        found = list(faults(site))
    want = ["d/index.html: ../index.html#no: no such anchor",
            "index.html: loads //a.b/x.js from outside", "index.html: d/#q: no such anchor",
            "index.html: none.html leads nowhere",
            "x.css: loads https://a.b/f.css from outside"]
    assert found == want, found


def main():
    words = sys.argv[1:]
    if words == ["--self-test"]:
        return self_test()
    if len(words) == 4 and words[0] == "stage":
        root, gallery, out = (pathlib.Path(word).resolve() for word in words[1:])
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        return Stage(root, out).run(gallery)
    if len(words) == 2 and words[0] == "check":
        found = list(faults(pathlib.Path(words[1])))
        print("\n".join(found + [f"site: {len(found)} faults"]))
        return 1 if found else 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
