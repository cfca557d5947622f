"""A grid file, as far as the programs of this folder need it: which hosts have ranks, and where each rank goes."""
import re


def names(text):
    """n[01-03] is n01, n02, n03."""
    match = re.fullmatch(r"(.*)\[([\d,-]+)\](.*)", text)
    if not match:
        return [text]
    found = []
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        width = len(first) if first.startswith("0") else 0
        found += [f"{match[1]}{i:0{width}}{match[3]}" for i in range(int(first), int(last or first) + 1)]
    return found


def mentions(cluster):
    """What the list of hosts of a cluster says, a map for each name."""
    hosts = cluster.get("hosts") or []
    for host in hosts if isinstance(hosts, list) else [hosts]:
        said = dict(host) if isinstance(host, dict) else {"name": str(host).rsplit("@", maxsplit=1)[-1]}
        name, _, slots = str(said["name"]).partition(":")
        if slots:
            said["slots"] = int(slots)
        for one in names(name):
            yield {**said, "name": one}


def outermost(text):
    """The clusters of a file that nest in no other."""
    return [c for site in text.get("sites") or [] for c in site["clusters"]] + (text.get("clusters") or [])


def nested(cluster):
    """It and all that is in it."""
    yield cluster
    for inner in cluster.get("clusters") or []:
        yield from nested(inner)


class Grid:
    """Hosts with ranks, in the order of the file; `slots` and the outermost `cluster` of each."""

    def __init__(self, path):
        import yaml  # only here: what runs without a lab needs none
        self.path, self.yaml = path, yaml
        with open(path, encoding="utf-8") as f:
            self.text = yaml.safe_load(f)
        said, self.cluster = {}, {}
        for outer in outermost(self.text):
            for cluster in nested(outer):
                for one in mentions(cluster):
                    self.cluster.setdefault(one["name"], outer["name"])
                    if "slots" in one:
                        said[one["name"]] = one["slots"]
        self.slots = {host: said.get(host, 1) for host in self.cluster}
        self.hosts = [host for host, slots in self.slots.items() if slots]

    def clusters(self):
        """Names of those that have ranks."""
        return list(dict.fromkeys(self.cluster[host] for host in self.hosts))

    def ranks(self, way):
        """The host of each rank: "blocks" fill host after host; "dealt" goes from cluster to cluster, as `tombolo explain
        --deal` and `mpiexec --map cluster` do."""
        blocks = [host for host in self.hosts for _ in range(self.slots[host])]
        if way == "blocks":
            return blocks
        rest, dealt = {name: [] for name in self.clusters()}, []
        for host in blocks:
            rest[self.cluster[host]].append(host)
        while any(rest.values()):
            dealt += [hosts.pop(0) for hosts in rest.values() if hosts]
        return dealt

    def pair(self, one, other):
        """The text of this grid with two ranks only, on these hosts, which may be the same one."""
        text = self.yaml.safe_load(self.yaml.safe_dump(self.text))
        for outer in outermost(text):
            for cluster in nested(outer):
                if "hosts" in cluster:
                    cluster["hosts"] = [{**said, "slots": [one, other].count(said["name"])} for said in mentions(cluster)]
        return self.yaml.safe_dump(text, sort_keys=False)
