#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds folded stacks (assay export --no-inline --no-kernel) to a known call chain.

folded.py chain FILE --hot NAME --chain REGEX [--share F] [--names NM-OUTPUT]
    Every stack that NAME is in, cut behind its last NAME, matches REGEX as a whole; these stacks
    are at least F of all samples. Says what does not.
folded.py agree A B --hot NAME
    The sets of stacks, cut behind the last NAME, are equal, but for what chance explains.
--names: nm -n -S of the program with its symbols; names "program+0x..." are looked up there.
"""
import argparse
import collections
import re
import sys


def stacks(path, names):
    for line in open(path, encoding="utf-8", errors="surrogateescape"):
        line = line.rstrip("\n")
        if not line:
            continue
        stack, count = line.rsplit(" ", 1)
        yield [names(f) for f in stack.split(";")], int(count)


def translator(path):
    if not path:
        return lambda f: f
    rows = []
    for line in open(path):
        part = line.split()
        if len(part) == 4 and part[2] in "tTwW":
            rows.append((int(part[0], 16), int(part[1], 16), part[3]))

    def find(frame):
        m = re.fullmatch(r".*\+0x([0-9a-f]+)", frame)
        if m:
            at = int(m.group(1), 16)
            for start, size, name in rows:
                if start <= at < start + size:
                    return name
        return frame
    return find


def cut(frames, hot):
    """The frames down to the last one called hot; None without one."""
    for i in range(len(frames) - 1, -1, -1):
        if re.fullmatch(hot, frames[i]):
            return ";".join(frames[:i + 1])
    return None


def show(title, counts, total):
    print(title)
    for stack, n in counts.most_common(5):
        short = stack if len(stack) < 600 else stack[:300] + " ... " + stack[-300:]
        print(f"  {n} of {total}: {short}")


def check_chain(o):
    total = found = wrong = 0
    odd, without = collections.Counter(), collections.Counter()
    want = re.compile(o.chain)
    for frames, n in stacks(o.files[0], translator(o.names)):
        if frames[0].startswith("[no user stack]"):
            continue
        total += n
        stack = cut(frames, o.hot)
        if stack is None:
            without[";".join(frames)] += n
            continue
        found += n
        if not want.fullmatch(stack) and not frames[0].startswith("[truncated"):
            wrong += n
            odd[stack] += n
    ok = total >= o.samples and found >= o.share * total and not wrong
    if not ok:
        print(f"{total} samples, {found} with {o.hot}, {wrong} in the wrong order")
        show("wrong:", odd, total)
        show("without:", without, total)
    return ok


def check_agree(o):
    sets, totals = [], []
    for path in o.files:
        counts = collections.Counter()
        for frames, n in stacks(path, translator(o.names)):
            stack = cut(frames, o.hot)
            if stack is not None and not frames[0].startswith("["):
                counts[stack] += n
        sets.append(counts)
        totals.append(sum(counts.values()))
    ok = all(totals)
    for a, b, name in ((0, 1, o.files[0]), (1, 0, o.files[1])):
        for stack, n in sets[a].items():
            # all n by chance on one side, if both engines saw it alike: 1 in a million
            if stack not in sets[b] and (totals[a] / sum(totals)) ** n < 1e-6:
                print(f"only in {name}: {n} of {totals[a]}: {stack[:600]}")
                ok = False
    return ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["chain", "agree"])
    p.add_argument("files", nargs="+")
    p.add_argument("--hot", required=True)
    p.add_argument("--chain")
    p.add_argument("--share", type=float, default=0.9)
    p.add_argument("--samples", type=int, default=60)
    p.add_argument("--names")
    o = p.parse_args()
    sys.exit(0 if (check_chain if o.what == "chain" else check_agree)(o) else 1)


main()
