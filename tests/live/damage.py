# SPDX-License-Identifier: MIT OR Apache-2.0
"""Damage for the tests, always the same.

damage.py read SESSION FLIPS   runs assay on SESSION cut at every 16th and with FLIPS bytes changed
                               one at a time: never a signal, a hang or memory without bound
damage.py elf FILE SECTION…    overwrites the middle half of those sections with noise
"""
import random
import resource
import struct
import subprocess
import sys

LIMIT = 400 << 20


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(what, data, command, faults):
    with open("hurt.assay", "wb") as f:
        f.write(data)
    try:
        p = subprocess.run(["assay"] + command + ["hurt.assay"], capture_output=True, timeout=20,
                           preexec_fn=limit)
    except subprocess.TimeoutExpired:
        faults.append((what, command, "hangs"))
        return None
    message = p.stderr.decode(errors="replace")
    if p.returncode not in (0, 1) or (p.returncode == 1 and not message.startswith("assay: ")):
        faults.append((what, command, p.returncode, message[:300]))
    return p.returncode, p.stdout.decode(errors="replace"), message


def read(path, flips):
    commands = [["report"], ["report", "--format", "json"], ["export", "--to", "folded"],
                ["flame", "-o", "hurt.svg"]]
    data = open(path, "rb").read()
    rng = random.Random(20)
    faults, silent = [], []
    cases = [("cut at %d/16" % i, data[:len(data) * i // 16]) for i in range(16)]
    # as a recorder that is killed leaves it: whole chunks (docs/formats/session.md)
    at = 24
    while at < len(data):
        cases.append(("cut after %d bytes, between chunks" % at, data[:at]))
        at += 32 + struct.unpack_from("<I", data, at + 4)[0]
    if at != len(data):
        faults.append("the layout is not as documented")
    for _ in range(flips):
        at = rng.randrange(len(data))
        hurt = bytearray(data)
        hurt[at] ^= rng.randrange(1, 256)
        cases.append(("byte %d changed" % at, bytes(hurt)))
    for i, (what, hurt) in enumerate(cases):
        got = run(what, hurt, commands[0], faults)
        if got and got[0] == 0 and not any(
                w in got[1] for w in ("cut short", "damaged", "ends early", "end properly")):
            silent.append(what)
        if i % 4 == 0 and got:
            run(what, hurt, commands[1 + i // 4 % 3], faults)
    print("faults", faults, "silent", silent)
    # 8 bytes of the file's head may be ignored by a reader
    return 1 if faults or len(silent) > flips // 20 else 0


def elf(path, names):
    data = bytearray(open(path, "rb").read())
    rng = random.Random(7)
    shoff, = struct.unpack_from("<Q", data, 40)
    size, count, strings = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, shoff + i * size) for i in range(count)]
    text = heads[strings][4]
    hit = set()
    for name, _, _, _, offset, length in heads:
        end = data.index(b"\0", text + name)
        if data[text + name:end].decode() in names:
            hit.add(data[text + name:end].decode())
            for i in range(offset + length // 4, offset + 3 * length // 4):
                data[i] = rng.randrange(256)
    open(path, "wb").write(data)
    return 0 if hit == set(names) else "no such sections: %s" % (set(names) - hit)


if __name__ == "__main__":
    if sys.argv[1] == "read":
        sys.exit(read(sys.argv[2], int(sys.argv[3])))
    sys.exit(elf(sys.argv[2], sys.argv[3:]))
