#!/usr/bin/env python3
"""script/campaign_pages.py replaces the rows that a campaign wrote and keeps the others.

    campaign_pages_test.py ROOT
"""
import importlib.util
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = None

MUTATION = """# Mutation
Hopper, <!-- Hopper: written -->
old
<!-- end -->
Blackwell, <!-- Blackwell: written -->
old too
<!-- end -->
Words.
"""
SCHEDULES = """# Schedules
Date 2026-01-02, commit aaa, 2 cores.

| problem | plan | schedules | findings |
|---|---|---:|---:|
| one | `p` | 1000 | 0 |
| two, C | `q` | 1000 | 3 |
"""
MUTANTS = """# Mutants
Date 2026-01-03, commit bbb, 2 cores.

## one

`p_c1x1`, 28 sites, 11 s on 2 threads; mutation score: 100% (killed 93 of 93, equivalent 8)

| site | broken | caught by | schedules |
|---|---|---|---:|
| s | dropped | M2 | 2 |

## two, C

`q_c2x1`, 30 sites, 35 s on 2 threads; mutation score: 98% (killed 80 of 81, equivalent 7), of \
those by argument 1

| site | broken | caught by | schedules |
"""


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.docs = (pathlib.Path(folder.name) / name for name in ("out", "docs"))
        self.folder.mkdir()
        self.docs.mkdir()
        (self.docs / "mutation.md").write_text(MUTATION, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("pages", ROOT / "script/campaign_pages.py")
        self.pages = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.pages)

    def write(self, **files):
        for old in self.folder.iterdir():
            old.unlink()
        for name, text in files.items():
            path = self.folder / (name.replace("_tsv", ".tsv") if "_tsv" in name else name + ".md")
            path.write_text(text, encoding="utf-8")
        self.pages.write_pages(self.folder, self.docs)
        return [(self.docs / name).read_text(encoding="utf-8")
                for name in ("campaign.md", "mutation.md")]

    def test_sums_up_the_sets(self):
        campaign, mutation = self.write(schedules=SCHEDULES, mutation=MUTANTS)
        self.assertIn("| Hopper kernels, unbroken, under many schedules | 2 | 2,000 schedules | "
                      "3 findings | 2026-01-02, commit aaa, 2 cores |\n", campaign)
        self.assertIn("| Hopper kernels, mutants | 2 | 189 mutants, up to 64 schedules each | 173 "
                      "of 174 killed, 15 equivalent (1 by argument) | 2026-01-03, commit bbb, 2 "
                      "cores |\n", campaign)
        self.assertIn("<!-- Hopper: written -->\n2026-01-03, commit bbb, 2 cores:\n\n", mutation)
        self.assertIn("| two, C | `q_c2x1` | 30 | 80 of 81 | 7 | 1 | 98% |\n<!-- end -->", mutation)
        self.assertNotIn("old\n", mutation)
        self.assertIn("old too\n<!-- end -->\nWords.\n", mutation)

    def test_keeps_what_was_not_run(self):
        row = "layout\tpassed\t9\t8\t1\t0\t3\t2026-01-04\tccc\t2 threads, a CPU\n"
        self.write(schedules=SCHEDULES, programs_tsv=row + row.replace("layout", "tile"))
        first = (self.docs / "campaign.md").read_text(encoding="utf-8")
        campaign, _ = self.write(programs_tsv=row.replace("passed", "FAILED").replace("ccc", "ddd"))
        self.assertIn("| layout | FAILED | 9 | 8 | 1 | 0 | 3 | 2026-01-04, commit ddd, 2 threads, "
                      "a CPU |\n", campaign)
        for line in first.splitlines():
            if not line.startswith("| layout "):
                self.assertIn(line, campaign)
        self.assertEqual(campaign.count("| layout "), 1)
        self.assertEqual(self.write(), self.write(schedules=""))  # its test has crashed

    def test_the_page_of_mutants_must_have_their_places(self):
        (self.docs / "mutation.md").write_text("# Mutation\n", encoding="utf-8")
        with self.assertRaises(SystemExit):
            self.write(mutation=MUTANTS)

    def test_the_pages_of_this_tree_have_them(self):
        text = (ROOT / "docs/log/mutation.md").read_text(encoding="utf-8")
        for family in self.pages.FAMILIES.values():
            self.assertEqual(text.count(f"<!-- {family}: "), 1)
        self.assertEqual(text.count("<!-- end -->"), len(self.pages.FAMILIES))

    def test_every_set_that_a_test_writes_is_known(self):
        shared = (ROOT / "script/campaign").read_text(encoding="utf-8")
        written = set()
        for source in sorted((ROOT / "tests").rglob("*.cpp")):
            for test in re.split(r"^TEST", source.read_text(encoding="utf-8"), flags=re.M)[1:]:
                sets = re.findall(r'campaign_table\("(\w+)"\)', test)
                name = ".".join(re.match(r"\w*\((\w+), (\w+)\)", test).groups())
                if sets:
                    self.assertRegex(shared, rf"\b{name}\b", source)
                written.update(sets)
        kinds = ("schedules", "mutation")
        self.assertEqual(written, {name + kind for name in self.pages.FAMILIES for kind in kinds})


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop()).resolve()
    unittest.main(verbosity=1)
