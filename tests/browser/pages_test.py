#!/usr/bin/env python3
"""Pages of pictures in a browser: what one sees, clicks, types and saves.

    pages_test.py WARPWRIGHT_PAGES [FOLDER...]   the pages of tests/browser/pages.cpp, and all that
                                                 lie in the folders (the gallery)
    pages_test.py --shots FOLDER PAGE...         PNGs of pages to look at: wide, narrow, dark

Needs chromium (Debian's package), which script/bootstrap does not install: where there is none, it
says so and exits with 77.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(__file__))
import chromium  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 1_000_000
NARROW = (360, 740)
VISIBLE = "[...document.querySelectorAll('%s')].filter(e => e.getClientRects().length > 0)"


class Page(unittest.TestCase):
    """All tests share one browser; each opens its page anew."""

    browser, folder, more = None, None, []

    def setUp(self):
        self.b = self.browser
        self.b.size(1200, 900)
        self.b.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")

    def open(self, name, fragment=""):
        self.b.open(self.folder / name, fragment)

    def js(self, expression):
        return self.b.evaluate(expression)

    def shown(self):
        return self.js("document.querySelector('section.view:not([hidden])').dataset.id")

    def readout(self):
        return self.js("document.querySelector('section:not([hidden]) .readout').textContent")

    def chosen(self):
        """The rows of the table that are marked as chosen, of all views that are shown."""
        return self.js("[...document.querySelectorAll('section:not([hidden]) tbody tr')]"
                       ".map((r, i) => r.getAttribute('aria-current') === 'true' ? i : -1)"
                       ".filter(i => i >= 0)")

    def lit(self):
        """The cells of the picture that are marked as chosen."""
        return self.js("[...document.querySelectorAll('section:not([hidden]) svg .chosen')]"
                       ".map(e => Number(e.dataset.row))")

    def steps(self):
        """The steps of the picture that are seen."""
        return self.js("[...document.querySelectorAll('section:not([hidden]) [data-step]')]"
                       ".filter(e => e.getClientRects().length > 0).map(e => e.dataset.step)")

    def becomes(self, wanted, what):
        """The address follows a moment later; a file is saved a moment later."""
        until = time.monotonic() + 5
        while (now := what()) != wanted and time.monotonic() < until:
            time.sleep(0.02)
        self.assertEqual(now, wanted)

    def fragment_becomes(self, wanted):
        self.becomes(wanted, lambda: self.js("location.hash"))

    def no_faults(self):
        self.assertEqual(self.b.faults(), [])

    # ---- Every page ---------------------------------------------------------------------------

    def every_page(self):
        return sorted(self.folder.glob("*.html")) + [page for folder in self.more
                                                     for page in sorted(folder.glob("*.html"))]

    def test_every_page(self):
        self.assertGreaterEqual(len(self.every_page()), 4)
        for page in self.every_page():
            with self.subTest(page=page.name):
                self.b.size(1200, 900)
                self.b.open(page)
                self.is_whole(page)
                self.has_names()
                self.b.size(*NARROW, mobile=True)
                self.b.open(page)
                self.is_narrow()
                self.no_faults()

    def is_whole(self, page):
        """It asks for nothing, is small, and names rows that there are."""
        self.assertEqual([r for r in self.b.requests() if not r.startswith("data:")],
                         [f"file://{page.resolve()}"])
        self.assertLess(page.stat().st_size, MOST_BYTES)
        self.assertEqual(self.js("[...document.scripts].filter(s => s.src).length + "
                                 "document.querySelectorAll('link, img, iframe').length"), 0)
        self.assertEqual(self.js(
            "[...document.querySelectorAll('script.data')].map(s => typeof JSON.parse("
            "s.textContent)).filter(t => t !== 'object').length"), 0)
        self.assertEqual(self.js(
            "[...document.querySelectorAll('section')].flatMap(s => { const rows = "
            "s.querySelectorAll('tbody tr').length; return [...s.querySelectorAll("
            "'svg [data-row]')].filter(c => !(Number(c.dataset.row) < rows)); }).length"), 0)
        self.assertEqual(self.js(
            "(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
            "return ids.length - new Set(ids).size; })()"), 0)

    def is_narrow(self):
        """No view is wider than a phone."""
        for at in range(self.js("document.querySelectorAll('section').length")):
            if at > 0:
                self.b.press("n")
            self.assertEqual(self.js("[document.documentElement.scrollWidth, innerWidth]"),
                             [NARROW[0], NARROW[0]], self.shown())

    def has_names(self):
        """What a screen reader offers has a name."""
        for node in self.b.call("Accessibility.getFullAXTree")["nodes"]:
            role = node.get("role", {}).get("value")
            if not node.get("ignored") and role in (
                    "button", "link", "slider", "combobox", "searchbox", "img", "image",
                    "region", "navigation", "dialog", "heading"):
                name = node.get("name", {}).get("value", "")
                self.assertNotEqual(name.strip(), "", f"a {role} without a name")
        self.assertEqual(self.js("document.querySelectorAll('h1').length"), 1)
        self.assertEqual(self.js("document.documentElement.lang"), "en")

    # ---- Texts --------------------------------------------------------------------------------

    def test_no_text_breaks_out(self):
        self.open("hostile.html")
        self.no_faults()
        self.assertEqual(self.js("document.querySelectorAll('section').length"), 6)
        self.assertEqual(self.js("document.querySelectorAll('img, b, section script:not(.data)')"
                                 ".length"), 0)
        self.assertEqual(self.js("document.querySelectorAll('script').length"), 7)
        self.assertEqual(self.js("document.title"),
                         "</script><script>document.title='broken'</script>")
        self.assertEqual(self.js("document.querySelector('dt').textContent"), "</dt></dl>")
        data = "JSON.parse(document.querySelector('script.data').textContent).name"
        self.assertEqual(self.js(data), "</script><script>document.title='broken'</script><!--")
        for i in range(6):  # each view by its link, and by its address
            self.b.click(f"nav a:nth-of-type({i + 1})")
            self.assertEqual(self.js("[...document.querySelectorAll('section')]"
                                     ".findIndex(s => !s.hidden)"), i)
            title = self.js("document.querySelector('section:not([hidden]) h2').textContent")
            cells = "[...document.querySelectorAll('section:not([hidden]) td')]"
            self.assertEqual(self.js(cells + ".pop().textContent"), title)
            self.b.click("section:not([hidden]) [data-row='1']")
            self.becomes(True, lambda: self.js("location.hash.endsWith('&row=1')"))
            fragment = self.js("location.hash")
            self.open("hostile.html", fragment)
            self.assertEqual(self.js("[...document.querySelectorAll('section')]"
                                     ".findIndex(s => !s.hidden)"), i)
            self.assertEqual(self.lit(), [1])
            self.b.click("section:not([hidden]) [data-action='save-svg']")
            name, text = self.b.saved(".svg")
            self.assertRegex(name, r"^[A-Za-z0-9_-]+\.svg$")
            texts = [e.text for e in ElementTree.fromstring(text).iter(f"{SVG}text")]
            self.assertEqual(texts[-1], title)
        self.no_faults()

    # ---- Views, rows, steps -------------------------------------------------------------------

    def test_views(self):
        self.open("plain.html")
        self.assertEqual(self.shown(), "small")
        self.assertEqual(self.js("location.hash"), "")
        self.b.click("nav a:nth-of-type(3)")
        self.assertEqual(self.shown(), "wide")
        now = "document.querySelector('nav a[aria-current]').textContent"
        self.assertEqual(self.js(now), "6 x 48")
        self.js("history.back()")
        self.becomes("small", self.shown)
        self.b.press("n")
        self.assertEqual(self.shown(), "bar")
        self.fragment_becomes("#view=bar&step=0&row=0")
        self.b.press("n")
        self.b.press("n")  # there is none beyond
        self.assertEqual(self.shown(), "wide")
        self.b.press("p")
        self.assertEqual(self.shown(), "bar")
        self.no_faults()

    def test_many_views_are_a_list(self):
        self.open("many.html")
        self.assertEqual(self.js("document.querySelectorAll('nav a').length"), 0)
        self.assertEqual(self.js("document.querySelectorAll('nav option').length"), 40)
        self.assertTrue(self.js("document.querySelector('nav [data-move=\"-1\"]').disabled"))
        self.b.click("nav [data-move='1']")
        self.assertEqual(self.shown(), "v1")
        self.js("document.querySelector('nav select').focus()")
        self.b.press("ArrowDown")
        self.becomes("v2", self.shown)
        self.open("many.html", "#row=9")
        self.b.click("section a")  # a link in a picture
        self.becomes("v7", self.shown)
        self.js("history.back()")
        self.becomes("v0", self.shown)
        self.assertEqual(self.chosen(), [9])
        self.open("many.html", "#view=v39")
        self.assertEqual(self.js("document.querySelector('nav select').selectedIndex"), 39)
        self.assertTrue(self.js("document.querySelector('nav [data-move=\"1\"]').disabled"))
        self.no_faults()

    def test_rows(self):
        self.open("plain.html")
        hint = self.readout()
        self.assertIn("Point at a cell", hint)
        self.b.move("#view\\=small [data-row='9']")
        self.assertEqual(self.readout(), "row: 1 · column: 1 · offset: 5 · thread: T1")
        self.assertEqual(self.js("document.querySelectorAll('.pointed').length"), 2)
        self.b.move("h1")
        self.assertEqual(self.readout(), hint)
        self.assertEqual(self.js("document.querySelectorAll('.pointed').length"), 0)
        self.b.click("#view\\=small [data-row='9']")
        self.assertEqual((self.chosen(), self.lit()), ([9], [9]))
        self.fragment_becomes("#view=small&row=9")
        self.b.click("#view\\=small tbody tr:nth-child(31)")
        self.assertEqual((self.chosen(), self.lit()), ([30], [30]))
        self.fragment_becomes("#view=small&row=30")
        self.b.click("#view\\=small [data-row='30']")  # again: nothing is chosen
        self.assertEqual((self.chosen(), self.lit()), ([], []))
        self.fragment_becomes("#view=small")
        self.no_faults()

    def test_rows_by_keys(self):
        self.open("plain.html")
        for key, row in (("j", 0), ("j", 1), ("k", 0), ("k", 0)):
            self.b.press(key)
            self.assertEqual(self.chosen(), [row])
        self.js("document.querySelector('section:not([hidden]) .picture').focus()")
        for key, row in (("ArrowRight", 1), ("ArrowDown", 9), ("ArrowDown", 17), ("ArrowLeft", 16),
                         ("ArrowUp", 8), ("ArrowLeft", 8)):
            self.b.press(key)
            self.assertEqual(self.chosen(), [row], key)
        self.js("document.querySelector('section:not([hidden]) .rows').focus()")
        self.b.press("ArrowDown")
        self.assertEqual(self.chosen(), [9])
        self.b.press("Escape")
        self.assertEqual(self.chosen(), [])
        self.b.press("j", modifiers=2)  # with Ctrl it is the browser's
        self.assertEqual(self.chosen(), [])
        self.no_faults()

    def test_search(self):
        self.open("plain.html")
        self.b.press("/")
        self.b.call("Input.insertText", text="t2 18")
        rows = VISIBLE % "section:not([hidden]) tbody tr"
        self.assertEqual(self.js(rows + ".map(r => r.textContent)"), ["2418T2"])
        self.assertEqual(self.js("document.querySelector('.found').textContent"), "1 of 32 rows")
        self.b.press("Escape")
        self.assertEqual(self.js(rows + ".length"), 32)
        self.b.press("j")  # the search has lost the focus
        self.assertEqual(self.chosen(), [0])
        self.no_faults()

    def test_steps(self):
        self.open("plain.html", "#view=bar")
        self.assertEqual((self.steps(), self.chosen()), (["0"], [0]))
        self.b.click("#view\\=bar [data-step-by='1']")
        self.assertEqual((self.steps(), self.chosen()), (["1"], [1]))
        self.assertEqual(self.readout(),
                         "Step 2 of 6. cycle: 50 · bytes: 1024 · what: 1024 bytes land")
        self.fragment_becomes("#view=bar&step=1&row=1")
        for key, step in (("ArrowRight", "2"), ("ArrowLeft", "1"), ("End", "5"),
                          ("ArrowRight", "5"), ("Home", "0"), ("ArrowLeft", "0")):
            self.b.press(key)
            self.assertEqual(self.steps(), [step], key)
        self.js("document.querySelector('#view\\\\=bar input.step').focus()")
        self.b.press("ArrowRight")
        self.assertEqual(self.steps(), ["1"])
        said = "document.activeElement.getAttribute('aria-valuetext')"
        self.assertEqual(self.js(said), "step 2 of 6")
        self.b.click("#view\\=bar tbody tr:nth-child(4)")  # a row of another step brings it
        self.assertEqual((self.steps(), self.lit()), (["3"], [3]))
        self.assertEqual(self.js("document.querySelector('.count').textContent"), "4 / 6")
        self.no_faults()

    def test_play(self):
        self.open("plain.html", "#view=bar&step=4")
        self.b.click(".play")
        self.assertEqual(self.js("document.querySelector('.play').textContent"), "Pause")
        self.becomes(["5"], self.steps)
        self.becomes("Play", lambda: self.js("document.querySelector('.play').textContent"))
        self.b.press("s")  # from the end it begins again
        self.assertEqual(self.steps(), ["0"])
        self.b.press("s")
        self.assertEqual(self.js("document.querySelector('.play').textContent"), "Play")
        self.no_faults()

    # ---- The address --------------------------------------------------------------------------

    def test_the_address_brings_a_state_back(self):
        self.open("plain.html", "#view=bar&step=3")
        self.assertEqual((self.shown(), self.steps(), self.chosen()), ("bar", ["3"], [3]))
        self.open("plain.html", "#view=wide&row=287")
        self.assertEqual((self.shown(), self.chosen(), self.lit()), ("wide", [287], [287]))
        inside = ("(() => { const p = document.querySelector('section:not([hidden]) .picture')"
                  ".getBoundingClientRect();"
                  "const c = document.querySelector('.chosen').getBoundingClientRect();"
                  "return c.left >= p.left && c.right <= p.right; })()")
        self.becomes(True, lambda: self.js(inside))  # it scrolls there
        self.js("location.hash = '#view=small&row=5'")  # typed into an open page
        self.becomes("small", self.shown)
        self.assertEqual(self.chosen(), [5])
        self.no_faults()

    def test_a_wrong_address_shows_what_there_is(self):
        for fragment, view, step, row in (
                ("#view=none&step=99&row=-3", "small", [], []), ("#%&=&&", "small", [], []),
                ("#view=bar&step=99&row=99", "bar", ["5"], [5]), ("#row=1e3", "small", [], []),
                ("#view=bar&step=-1", "bar", ["0"], [0]), ("#view=small&row=32", "small", [], []),
                ("#view=bar&step=2&row=4", "bar", ["4"], [4])):
            with self.subTest(fragment=fragment):
                self.open("plain.html", fragment)
                self.assertEqual((self.shown(), self.steps(), self.chosen()), (view, step, row))
                self.no_faults()

    def test_the_link_past_the_head_keeps_the_state(self):
        self.open("plain.html", "#view=wide")
        self.js("document.querySelector('.skip').click()")
        self.assertEqual((self.shown(), self.js("document.activeElement.id")), ("wide", "main"))

    # ---- Light and dark, size, motion ---------------------------------------------------------

    def colours(self):
        return self.js("[getComputedStyle(document.body).backgroundColor, getComputedStyle("
                       "document.querySelector('section:not([hidden]) .ww-ground')).fill,"
                       "getComputedStyle(document.querySelector('section:not([hidden]) svg text'))"
                       ".fill].map(c => c.match(/\\d+/g).slice(0, 3)"
                       ".reduce((a, x) => a + +x, 0) > 384 ? 'light' : 'dark')")

    def test_dark(self):
        light, dark = ["light", "light", "dark"], ["dark", "dark", "light"]
        self.open("plain.html")
        self.assertEqual(self.colours(), light)
        self.b.click("button.theme")
        self.assertEqual(self.colours(), dark)
        self.b.press("d")
        self.assertEqual(self.colours(), light)
        self.b.prefer(prefers_color_scheme="dark")
        self.assertEqual(self.colours(), light)  # what one chose stays
        self.open("plain.html")
        self.assertEqual(self.colours(), dark)
        self.assertEqual(self.js("document.querySelector('button.theme').textContent"), "Light")
        self.b.click("button.theme")
        self.assertEqual(self.colours(), light)
        self.no_faults()

    def test_texts_stand_out(self):
        contrast = """(() => {
          const part = x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
          const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(part);
                               return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = e => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255,255,255)'; };
          return [...document.querySelectorAll('h1, h2, p, a, code, dt, dd, td, th, button, label,'
                                               + ' summary, footer')]
            .filter(e => e.getClientRects().length > 0 && e.textContent.trim() && !e.disabled)
            .map(e => { const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
                        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                        return [ratio, e.tagName + ': ' + e.textContent.slice(0, 20)]; })
            .filter(([ratio]) => ratio < 4.5); })()"""
        for scheme in ("light", "dark"):
            self.b.prefer(prefers_color_scheme=scheme)
            self.open("plain.html", "#view=small&row=3")
            self.b.move("#view\\=small tbody tr:nth-child(2)")
            self.assertEqual(self.js(contrast), [], scheme)

    def test_size(self):
        self.open("plain.html", "#view=wide")
        width = "document.querySelector('section:not([hidden]) svg').getBoundingClientRect().width"
        fit = self.js(width)
        self.assertLess(fit, 48 * 40)
        self.b.press("+")
        self.assertAlmostEqual(self.js(width), 1.25 * fit, delta=2)
        self.b.press("0")
        self.assertEqual(self.js(width), fit)
        self.b.click("section:not([hidden]) [data-zoom-by='0.8']")
        self.assertAlmostEqual(self.js(width), 0.8 * fit, delta=2)

    def test_motion(self):
        scroll = "getComputedStyle(document.querySelector('.rows')).scrollBehavior"
        self.open("plain.html")
        self.assertEqual(self.js(scroll), "smooth")
        self.b.prefer(prefers_reduced_motion="reduce")
        self.assertEqual(self.js(scroll), "auto")

    def test_phone(self):
        self.b.size(*NARROW, mobile=True)
        self.b.call("Emulation.setTouchEmulationEnabled", enabled=True)
        try:
            self.open("plain.html")
            self.b.tap("#view\\=small [data-row='9']")
            self.becomes([9], self.chosen)
            self.b.tap("nav a:nth-of-type(2)")
            self.becomes("bar", self.shown)
            self.b.tap("#view\\=bar [data-step-by='1']")
            self.becomes(["1"], self.steps)
            small = self.js((VISIBLE % "button, nav a, select, input") +
                            ".filter(e => e.type !== 'range')"
                            ".filter(e => e.getBoundingClientRect().height < 24)"
                            ".map(e => e.outerHTML)")
            self.assertEqual(small, [])
            self.no_faults()
        finally:
            self.b.call("Emulation.setTouchEmulationEnabled", enabled=False)

    # ---- Keys, files, no script ---------------------------------------------------------------

    def test_help_of_keys(self):
        self.open("plain.html")
        self.b.press("?")
        self.assertTrue(self.js("document.querySelector('dialog').open"))
        self.b.press("n")  # the page behind does not hear it
        self.assertEqual(self.shown(), "small")
        self.b.press("Escape")
        self.becomes(False, lambda: self.js("document.querySelector('dialog').open"))
        self.b.click("[data-action='keys']")
        self.assertTrue(self.js("document.querySelector('dialog').open"))
        self.b.click("dialog button")
        self.becomes(False, lambda: self.js("document.querySelector('dialog').open"))
        self.no_faults()

    def test_the_keyboard_reaches_all(self):
        self.open("plain.html", "#view=bar")
        seen = []
        for _ in range(40):
            self.b.press("Tab")
            seen.append(self.js("(e => e.className || e.dataset.action || e.tagName)"
                                "(document.activeElement)"))
        for wanted in ("skip", "theme", "step", "play", "save-svg", "picture", "search", "rows"):
            self.assertIn(wanted, seen)
        self.js("document.querySelector('section:not([hidden]) .picture').focus()")
        self.b.press("Tab")
        self.assertEqual(self.js("document.activeElement.tagName"), "SUMMARY")

    def test_files(self):
        self.open("plain.html", "#view=bar&step=2")
        self.b.click("#view\\=bar [data-action='save-svg']")
        name, text = self.b.saved(".svg")
        self.assertEqual(name, "plain-bar-step-2.svg")
        tree = ElementTree.fromstring(text)
        self.assertEqual(tree.tag, SVG + "svg")
        self.assertEqual((tree.get("width"), tree.get("height")), ("400", "120"))
        self.assertEqual([g.get("data-step") for g in tree.iter(SVG + "g")], ["2"])
        self.assertNotIn("chosen", text)
        self.assertIn("prefers-color-scheme:dark", tree.find(SVG + "style").text)
        path = self.folder / "saved.svg"
        path.write_text(text, encoding="utf-8")
        self.b.open(path)
        self.no_faults()
        self.assertEqual(self.js("[...document.querySelectorAll('text')].map(t => t.textContent)"),
                         ["2048 bytes have landed"])
        self.assertEqual(self.js("getComputedStyle(document.querySelector('.ww-ground')).fill"),
                         "rgb(255, 255, 255)")
        self.b.prefer(prefers_color_scheme="dark")
        self.assertNotEqual(self.js("getComputedStyle(document.querySelector('.ww-ground')).fill"),
                            "rgb(255, 255, 255)")
        self.open("plain.html")
        self.b.click("#view\\=small [data-action='save-data']")
        name, text = self.b.saved(".json")
        self.assertEqual(name, "plain-small.json")
        values = json.loads(text)
        self.assertEqual((values["id"], values["data"]), ("small", {"shape": [4, 8]}))
        self.assertEqual(values["header"], ["row", "column", "offset", "thread"])
        self.assertEqual((len(values["rows"]), values["rows"][9]), (32, ["1", "1", "5", "T1"]))

    def test_copy_marks_the_command(self):
        self.open("plain.html")
        self.b.click("[data-action='copy']")
        self.becomes("warpwright draw plain --html plain.html",
                     lambda: self.js("String(getSelection())"))
        self.no_faults()

    def test_without_script_all_is_seen(self):
        self.b.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.open("plain.html")
        finally:
            self.b.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertEqual(self.js((VISIBLE % "section.view") + ".length"), 3)
        self.assertEqual(self.js((VISIBLE % "header button, .tools button, input") + ".length"), 0)
        self.assertEqual(self.js("document.querySelector(decodeURIComponent(document.querySelector("
                                 "'nav a').hash).replace('=', '\\\\=')) !== null"), True)


def shots(folder, pages):
    """Pictures of pages: NAME_wide.png, _dark.png, _narrow.png. PAGE may have a fragment."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium.Browser(chromium.find()) as browser:
        for number, page in enumerate(pages):
            path, mark, fragment = page.partition("#")
            for name, size, scheme in (("wide", (1280, 900), "light"),
                                       ("dark", (1280, 900), "dark"), ("narrow", NARROW, "light")):
                browser.size(*size, mobile=size == NARROW)
                browser.prefer(prefers_color_scheme=scheme)
                browser.open(path, mark + fragment)
                browser.screenshot(folder / f"{number:02}_{pathlib.Path(path).stem}_{name}.png")


def main():
    path = chromium.find()
    if path is None:
        print("did not run: there is no chromium here (apt-get install chromium)")
        return 77
    if sys.argv[1] == "--shots":
        return shots(pathlib.Path(sys.argv[2]), sys.argv[3:])
    script = pathlib.Path(__file__).resolve().parents[2] / "warpwright/pictures/page.js"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 1500
    assert not re.search(r"https?://", script.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, chromium.Browser(path) as browser:
        subprocess.run([sys.argv[1], folder], check=True)
        Page.browser, Page.folder = browser, pathlib.Path(folder)
        Page.more = [pathlib.Path(more) for more in sys.argv[2:]]
        pages = len(list(Page.folder.glob("*.html"))) + sum(
            len(list(more.glob("*.html"))) for more in Page.more)
        print(f"{pages} pages in {browser.call('Browser.getVersion')['product']}")
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(Page)
        return 0 if unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
