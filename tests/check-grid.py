#!/usr/bin/env python3
"""Checks `tombolo grid`: files with mistakes are refused with file, line and what was expected; the sample grids are
right, are drawn, and say in a comment what they are; new files can be read. A case for each."""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOMBOLO = os.path.join(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"), "bin", "tombolo")
GRIDS = os.path.join(ROOT, "examples", "grids")
SAMPLES = ["cluster8", "cluster16", "cluster32", "two-clusters", "three-clusters", "three-sites", "karonis", "pacx-32+32",
           "pacx-16+48", "pacx-8+56", "pacx-4+60", "pacx-2+62", "pacx-1+63", "pacx-2-machines", "pacx-3-machines",
           "pacx-4-machines", "transatlantic", "transatlantic-lossy", "hub", "chain", "two-gateways", "laptop-relay",
           "star3", "mesh3", "five-levels", "sites", "half-duplex", "ipv6"]

GOOD = """clusters:
- {name: a, hosts: [a1, a2], gateways: [a1], nat: true}
- {name: b, hosts: [b1:3]}
links:
- {from: a, to: b, bandwidth: 10, latency: 5}
"""
# name: (what is replaced in the good file, by what, line, expectation)
BAD = {
    "unknown-key": ("gateways:", "gateway:", 2, "expected name, hosts, gateways"),
    "host-twice": ("[a1, a2]", "[a1, a1]", 2, "expected it once"),
    "link-to-nowhere": ("to: b", "to: c", 5, "expected a cluster, a gateway or a site"),
    "gateway-elsewhere": ("gateways: [a1]", "gateways: [b1]", 2, "not among the hosts"),
    "negative-rate": ("bandwidth: 10", "bandwidth: -10", 5, "expected a rate above 0"),
    "negative-latency": ("latency: 5", "latency: -5", 5, "expected a time"),
    "bad-multicast": ("hosts: [b1:3]", "hosts: [b1:3], ethernet: {multicast: 3}", 3, "expected true or false"),
    "wrong-type": ("nat: true", "nat: [1]", 2, "expected true or false"),
    "cluster-twice": ("name: b", "name: a", 3, "expected another name"),
    "bad-loss": ("latency: 5", "loss: 7", 5, "expected a share"),
    "bad-slots": ("b1:3", "b1:many", 3, "expected a number of slots"),
    "syntax": ("[b1:3]", "[b1:3", 3, "no YAML"),
    "range-unquoted": ("[b1:3]", "[b[1-4]:3]", 3, "needs quotes"),
    "link-twice": ("latency: 5}", "latency: 5}\n- {from: a, to: b}", 6, "expected it once"),
}


def tombolo(*words):
    return subprocess.run([TOMBOLO, "grid", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                          check=False)


def write(folder, text):
    path = os.path.join(folder, "grid.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def refused(folder, old, new, line, expected):
    assert old in GOOD
    path = write(folder, GOOD.replace(old, new, 1))
    svg = os.path.join(folder, "picture.svg")
    done = tombolo("check", path, "--svg", svg)
    return (done.returncode == 1 and f"{path}:{line}: " in done.stderr and expected in done.stderr and not done.stdout and
            not os.path.exists(svg)) or done


def drawn(svg):
    """The texts of a picture."""
    tree = ElementTree.parse(svg)
    return [e.text for e in tree.iter("{http://www.w3.org/2000/svg}text")]


def good(folder):
    svg = os.path.join(folder, "picture.svg")
    done = tombolo("check", write(folder, GOOD), "--svg", svg)
    summary = "0 sites, 2 clusters, 3 hosts, 5 slots, 1 link"
    reach = "b1 cannot connect to a2, only the reverse"
    quiet = tombolo("check", write(folder, GOOD.replace("[b1:3]", "[b1:3], ethernet: {multicast: no}"))).stdout
    if "switch, no multicast; " not in quiet or quiet.count("no multicast") != 1 or "no multicast" in done.stdout:
        return quiet
    return (done.returncode == 0 and summary in done.stdout and reach in done.stdout and
            {"a", "b", "a1", "b1", "NAT", "10 Mbit/s · 5 ms"} <= set(drawn(svg))) or done


def sample(folder, name):
    path = os.path.join(GRIDS, name + ".yaml")
    svg = os.path.join(folder, "picture.svg")
    done = tombolo("check", path, "--svg", svg)
    with open(path, encoding="utf-8") as f:
        commented = f.read().startswith("# ")
    closed = name in ("three-clusters", "chain", "two-gateways", "laptop-relay", "star3", "mesh3", "five-levels", "ipv6")
    reach = "not every host can connect" if closed else "every host with slots can connect to every other"
    return (done.returncode == 0 and commented and "is right" in done.stdout and f"reach: {reach}" in done.stdout and
            name + ".yaml" in drawn(svg) and all(links_named(done.stdout, drawn(svg)))) or done


def links_named(summary, texts):
    """Whether each link of the summary has its name in the picture, if there are not so many that none is labelled."""
    names = set(re.findall(r"^  (\S+): \S+ to \S+", summary.partition("links:")[2], re.M))
    return [any(text and (text == name or text.startswith(name + ",")) for text in texts) for name in names if len(names) <= 40]


def all_listed(_):
    there = {name[:-5] for name in os.listdir(GRIDS) if name.endswith(".yaml")}
    return there == set(SAMPLES) or there ^ set(SAMPLES)


def advice(folder):
    """Links that are faster than an agent are spoken of, unless ranks may cross them anyway."""
    text = ("clusters: [{name: a, hosts: a1, clusters: [{name: n, hosts: n1}]}, {name: b, hosts: b1}, {name: c, hosts: c1}]\n"
            "links: [{from: a, to: b, bandwidth: 10 Gbit/s}, {from: b, to: c, bandwidth: 40 Gbit/s, direct: yes},\n"
            "        {from: a, to: c, bandwidth: 1000}, {from: n, to: a, bandwidth: 10 Gbit/s}]\n")
    done = tombolo("check", write(folder, text))
    said = [line for line in done.stdout.splitlines() if line.startswith("link ")]
    return (len(said) == 2 and said[0].startswith("link a-b: at 10 Gbit/s one agent on each host") and
            "`direct: yes` lets ranks connect" in said[0] and
            said[1] == "link b-c: ranks connect across it directly, not encrypted") or done


def uplinks(_):
    """What is shared, and by whom, is said."""
    done = tombolo("check", os.path.join(GRIDS, "sites.yaml"))
    half = tombolo("check", os.path.join(GRIDS, "half-duplex.yaml"))
    return (all(line in done.stdout.splitlines() for line in
                ("uplinks:", "  site Delft: outward, 100 Mbit/s, 1 ms; inward, 200 Mbit/s, 1 ms",
                 "  cluster saturn: both ways, 50 Mbit/s",
                 "  canal: site Delft to site Utrecht, 40 Mbit/s, 3 ms, shared by all that has no link of its own")) and
            "    n5 to n6, 10 Mbit/s, half duplex\n" in half.stdout and
            "    n7 to n8, queue 64 KiB, half duplex\n" in half.stdout) or (done, half)


KEYS = ("gateways", "nat", "ethernet", "uplink", "start", "start_inside", "tombolo", "port", "program", "directory", "environment")


def all_keys(text):
    """A new file with the keys of clusters that it shows in comments."""
    return re.sub(r"^    # (\w+:)", r"    \1", text, flags=re.M)


def new_empty(folder):
    done = tombolo("new")
    checked = tombolo("check", write(folder, done.stdout))
    whole = all_keys(done.stdout)
    with_all = tombolo("check", write(folder, whole))
    return (done.returncode == 0 and "# " in done.stdout and checked.returncode == 0 and with_all.returncode == 0 and
            all(f"\n    {key}: " in whole for key in KEYS)) or (done, checked, with_all)


def cannot_run(folder):
    """A file that can be read, of a grid on which no job can run."""
    wayless = GOOD.replace("[b1:3]", "[b1:3], nat: true").replace("gateways: [a1], ", "")
    no_slots = GOOD.replace("[a1, a2]", "[a1:0, a2:0]").replace("[b1:3]", "[b1:0]")
    for text, why in ((wayless, "no way for messages between them"), (wayless, "a laptop with `slots: 0`"), (no_slots, "slot for a rank")):
        svg = os.path.join(folder, "picture.svg")
        done = tombolo("check", write(folder, text), "--svg", svg)
        if done.returncode != 1 or "a job cannot run on this grid" not in done.stderr or why not in done.stderr or \
           "is right" in done.stdout or "can be read" not in done.stdout or not drawn(svg):
            return done
    return True


def started_inside(_):
    done = tombolo("check", os.path.join(GRIDS, "laptop-relay.yaml"))
    return (done.returncode == 0 and "start: on host laptop" in done.stdout) or done


def new_from_hosts(folder):
    hosts, path = os.path.join(folder, "hosts"), os.path.join(folder, "new.yaml")
    with open(hosts, "w", encoding="utf-8") as f:
        f.write("a1 slots=4 cluster=east\nkate@b1:2 port=2222 cluster=west\n# more\na2 cluster=east\n")
    done = tombolo("new", "--hostfile", hosts, "-o", path)
    checked = tombolo("check", path)
    again = tombolo("new", "-o", path)
    listed = tombolo("new", "-H", "x:4,y:2")
    return (done.returncode == 0 and "2 clusters, 3 hosts, 7 slots, 1 link" in checked.stdout and again.returncode == 1 and
            "exists" in again.stderr and "- x:4\n" in listed.stdout) or (done, checked, again, listed)


def usage(_):
    codes = [tombolo(*words).returncode for words in
             ((), ("--help",), ("draw",), ("check",), ("check", "a", "b"), ("check", "a", "--svg"), ("new", "-x"),
              ("new", "-H"), ("new", "-H", ","), ("check", "/nonexistent"), ("new", "-o", "/nonexistent/x"))]
    return codes == [2, 0, 2, 2, 2, 2, 2, 2, 2, 1, 1] or codes


def main():
    cases = {f"refuses-{name}": (refused, *row) for name, row in BAD.items()}
    cases.update({f"sample-{name}": (sample, name) for name in SAMPLES})
    cases.update({"good": (good,), "samples-listed": (all_listed,), "advice": (advice,), "uplinks": (uplinks,), "new": (new_empty,),
                  "cannot-run": (cannot_run,), "started-inside": (started_inside,), "new-hosts": (new_from_hosts,),
                  "usage": (usage,)})
    if "built without libyaml" in tombolo("check", os.path.join(GRIDS, "hub.yaml")).stderr:
        print("skipped: this build has no libyaml")
        return 77
    bad = 0
    for name, (call, *arguments) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                verdict = call(folder, *arguments)
            except (OSError, ElementTree.ParseError, subprocess.SubprocessError) as e:
                verdict = e
        if verdict is not True:
            print(f"{name}: {verdict}")
            bad += 1
        print(f"case: {name} {'ok' if verdict is True else 'failed'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
