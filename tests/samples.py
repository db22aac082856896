"""The seed of a run, and samples by it, as tests/campaign.h has them for C++."""
import functools
import os
import random

CAMPAIGN = os.environ.get("WARPWRIGHT_CAMPAIGN") == "1"


@functools.cache
def run_seed():
    """WARPWRIGHT_SEED, which .ci/run makes of the commit; elsewhere it is drawn once. Printed."""
    given = os.environ.get("WARPWRIGHT_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 32)
    print(f"WARPWRIGHT_SEED={seed} draws these cases", flush=True)
    return seed


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
