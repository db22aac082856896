#!/usr/bin/env python3
"""Makes plan/cost/correction.tar.xz: what floors lack of measured times, learnt by LightGBM.

script/learn.py build/bin/warpwright [--times FILE.tsv.gz]... [--check]
script/learn.py build/bin/warpwright --times FILE.tsv.gz --out FILE.txt
The second is what `warpwright calibrate --learn` calls: a text for --correction, of a card's own
times, 2,000 at least, and of those of bench/times.tsv.gz where that file is at hand.
`pip install lightgbm` first (MIT). Floors and what trees ask for come from `predict times
--features`. One shape of HELD_OUT has no part in what is kept. What is printed, and with --check
only that: regret and errors where each eighth of all shapes was left out in turn, and from card to
card. docs/log/prediction.md keeps the tables.
"""
import argparse
import csv
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

try:
    import lightgbm
    import numpy
except ImportError as missing:
    sys.exit(f"learn: {missing.name} is missing: pip install lightgbm")

ROOT = pathlib.Path(__file__).parents[1]
ARCHIVE = ROOT / "warpwright/plan/cost/correction.tar.xz"
SHIPPED = ROOT / "bench/times.tsv.gz"  # not where this file is installed
TREES = 300
HOW = {"objective": "regression", "learning_rate": 0.1, "num_leaves": 63, "max_depth": 7,
       "min_data_in_leaf": 20, "lambda_l2": 1.0,
       "feature_fraction": 0.6, "bagging_fraction": 0.8, "bagging_freq": 1,
       "seed": 1, "deterministic": True, "num_threads": 1, "verbose": -1}
FOLDS = 8
FEWEST = 2000  # times of a card by which a correction of its own is better than that of others
HELD_OUT = 6  # of so many shapes one is kept back: whose CRC-32 is a multiple
HEAD = """| predicted | products | error near the best | regret | worst | today's plans | worst |
|---|---:|---:|---:|---:|---:|---:|"""
PLAIN = ["card", "product", "kind", "configuration", "microseconds", "chosen", "floor"]


class Times:
    """Measured ways, by rows: floors, features, and which rows are of one product on one card."""

    def __init__(self, rows):
        self.names = [name for name in rows[0] if name not in PLAIN]
        column = lambda name: numpy.array([float(row[name]) for row in rows])
        self.took, self.chosen, self.floor = (column(n) for n in PLAIN[4:])
        self.features = numpy.array([[float(row[n]) for n in self.names] for row in rows])
        self.card, self.shape, self.kind = (numpy.array([r[n] for r in rows]) for n in PLAIN[:3])
        products = {}
        for i, row in enumerate(rows):
            products.setdefault(tuple(row[name] for name in PLAIN[:3]), []).append(i)
        self.products = [numpy.array(each) for each in products.values()]
        # Ways far from the best need not be known well; and products have few ways or hundreds.
        self.weight = numpy.zeros(len(rows))
        for each in self.products:
            self.weight[each] = (self.took[each].min() / self.took[each]) ** 3 / len(each) ** 0.5
        self.weight *= len(rows) / self.weight.sum()

    def learn(self, which):
        """Trees of these rows."""
        data = lightgbm.Dataset(self.features[which], numpy.log(self.took / self.floor)[which],
                                weight=self.weight[which])
        return lightgbm.train(HOW, data, num_boost_round=TREES)

    def kept(self):
        """The rows that what is kept is learnt from."""
        return numpy.array([zlib.crc32(s.encode()) % HELD_OUT != 0 for s in self.shape])

    def predict(self, trees, which):
        """Microseconds of these rows."""
        return self.floor[which] * numpy.exp(trees.predict(self.features[which]))

    def left_out(self, seed):
        """Microseconds of all rows, each by trees that saw none of its shape on any card."""
        shapes = numpy.unique(self.shape)
        order = numpy.random.default_rng(seed).permutation(len(shapes))
        fold = numpy.array([order[numpy.searchsorted(shapes, s)] % FOLDS for s in self.shape])
        predicted = numpy.zeros(len(self.took))
        for each in range(FOLDS):
            predicted[fold == each] = self.predict(self.learn(fold != each), fold == each)
        return predicted

    def judge(self, name, predicted, which):
        """Prints a row of the table: the way of the least time, and errors near the best."""
        regret, error, today = [], [], []
        for each in self.products:
            if not which[each].all():
                continue
            best = self.took[each].min()
            regret.append(self.took[each[predicted[each].argmin()]] / best - 1)
            near = each[self.took[each] < 1.3 * best]
            error.append(numpy.abs(predicted[near] / self.took[near] - 1).mean())
            plans = each[self.chosen[each] > 0]
            if len(plans):
                today.append(self.took[plans[0]] / best - 1)
        if not regret:
            return
        today = today or [numpy.nan]
        percent = lambda of: f"{100 * of:.1f}%"
        print(f"| {name} | {len(regret)} | {percent(numpy.mean(error))} | "
              f"{100 * numpy.mean(regret):.2f}% | {percent(max(regret))} | "
              f"{100 * numpy.mean(today):.2f}% | {percent(max(today))} |")


def rows_of(program, files):
    """What `predict times` says of the files."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for each in files:
            times, out = pathlib.Path(folder, "times.tsv"), pathlib.Path(folder, "features.tsv")
            try:
                times.write_bytes(gzip.open(each).read() if each.endswith(".gz")
                                  else pathlib.Path(each).read_bytes())
            except (OSError, EOFError) as fault:
                sys.exit(f"learn: {each} cannot be read: {fault}")
            done = subprocess.run([program, "predict", "times", times, "--features", out],
                                  check=False, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"learn: {each}: {done.stderr.strip()}")
            with open(out, encoding="utf-8") as text:
                rows += csv.DictReader(text, delimiter="\t")
    return rows


def family(kind):
    """A kind without what many of them have in common."""
    plain = kind.replace(", gated", "")
    return plain.split(" x ")[0] + ", packed weights" if " x " in plain else plain


def tree_words(node):
    """A tree of LightGBM in preorder (cost/correction.h)."""
    if "leaf_value" in node:
        return [f"={node['leaf_value']:.5g}"]
    assert node["decision_type"] == "<="
    return ([f"{node['split_feature']}:{node['threshold']:.7g}"] + tree_words(node["left_child"]) +
            tree_words(node["right_child"]))


def text_of(times, trees, rows):
    """What the archive keeps."""
    cards = ", ".join(sorted(set(times.card[rows])))
    lines = ["warpwright-correction 1", "features " + " ".join(times.names),
             "held-out " + " ".join(numpy.unique(times.shape[~rows])),
             f"times {rows.sum()} of {cards}"]
    for tree in trees.dump_model()["tree_info"]:
        lines.append("tree " + " ".join(tree_words(tree["tree_structure"])))
    return "\n".join(lines) + "\n"


def own_correction(how):
    """Writes --out as a whole or not at all."""
    rows = rows_of(how.program, how.times or [])
    if len(rows) < FEWEST:
        sys.exit(f"learn: {len(rows)} times of ways that plans know are in --times, and a "
                 f"correction needs {FEWEST}: measure for longer (the same call goes on)")
    cards = sorted({row["card"] for row in rows})
    if SHIPPED.exists() and not any(SHIPPED.samefile(each) for each in how.times):
        rows += rows_of(how.program, [str(SHIPPED)])
    times = Times(rows)
    kept = times.kept()
    trees = times.learn(kept)
    print(HEAD)
    for card in cards:
        which = times.card == card
        times.judge(f"{card}: floors", times.floor, which)
        times.judge(f"{card}: what is kept, held-out shapes",
                    times.predict(trees, numpy.ones(len(which), bool)), which & ~kept)
    draft = pathlib.Path(how.out + ".draft")
    draft.write_text(text_of(times, trees, kept), encoding="utf-8")
    os.replace(draft, how.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--times", action="append")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out")
    how = parser.parse_args()
    if how.out:
        own_correction(how)
        return
    times = Times(rows_of(how.program, how.times or [str(SHIPPED)]))
    everything = numpy.ones(len(times.took), bool)
    print(HEAD)
    cards = numpy.unique(times.card)
    for card in cards:
        times.judge(f"{card}: floors", times.floor, times.card == card)
    families = numpy.array([family(kind) for kind in times.kind])
    for seed in (1, 2):
        predicted = times.left_out(seed)
        for card in cards:
            of_card = times.card == card
            times.judge(f"{card}: shapes left out, order {seed}", predicted, of_card)
            for each in numpy.unique(families[of_card]):
                times.judge(f"{card}: the same, {each}", predicted, of_card & (families == each))
    for card in cards:
        if len(cards) > 1:
            other = times.predict(times.learn(times.card != card), everything)
            known = numpy.isin(times.kind, times.kind[times.card != card])
            times.judge(f"{card}: learnt from others", other, known & (times.card == card))
    kept = times.kept()
    trees = times.learn(kept)
    for card in cards:
        times.judge(f"{card}: what is kept, held-out shapes", times.predict(trees, everything),
                    ~kept & (times.card == card))
    if not how.check:
        from counts import keep  # which lies only in the source tree
        keep({"correction.txt": text_of(times, trees, kept)}, ARCHIVE)


if __name__ == "__main__":
    main()
