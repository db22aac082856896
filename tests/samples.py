"""The seed of a run, and samples by it, as tests/campaign.h has them for C++."""
import functools
import os
import random
import subprocess

CAMPAIGN = os.environ.get("WARPWRIGHT_CAMPAIGN") == "1"


@functools.cache
def run_seed():
    """WARPWRIGHT_SEED, by script/test the commit; elsewhere it is drawn once. It is printed."""
    given = os.environ.get("WARPWRIGHT_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 32)
    print(f"WARPWRIGHT_SEED={seed} draws these cases", flush=True)
    return seed


def changed(root):
    """The files that differ from what origin's branch and this one have in common, before the
    last commit; none where git does not know that (a clone of depth 1, no clone)."""
    def git(*words):
        ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        return ran.stdout.split("\n")[:-1] if ran.returncode == 0 else []
    base = git("merge-base", "origin/HEAD", "HEAD~1") or git("rev-parse", "--verify", "HEAD~1")
    return {root / name for name in git("diff", "--name-only", *base)} if base else set()


def sampled(cases, step):
    """All of them in a campaign; elsewhere every step-th, at least one, and a line about it."""
    cases = list(cases)
    if CAMPAIGN or step == 1:
        return cases
    step = max(1, min(step, len(cases)))
    # Samples of other sizes begin elsewhere.
    some = cases[random.Random(run_seed() + 1000003 * len(cases) + step).randrange(step)::step]
    print(f"{len(some)} of {len(cases)} cases; script/campaign runs all", flush=True)
    return some
