"""The procedural memory in plain Python: dictionaries, one row at a time, as the rules say it.

Ids are given by the memory under test; everything else is decided here.
"""

from __future__ import annotations


class Refused(Exception):
    """The call is refused, and nothing changes."""


class Procedures:
    def __init__(self):
        self.reasonlets = {}
        self.runs = {}
        self.feedback = {}
        self.recalls = {}
        self.high_water = {}
        self.stones = {}
        self.order = 0

    # Writing

    def settle(self, scope, graph, parent):
        """(kind, label number) that a capture will have."""
        if parent is None:
            return "new_reasonlet", 0
        if parent not in self.reasonlets or self.reasonlets[parent]["scope"] != scope:
            raise Refused("parent")
        if self.reasonlets[parent]["graph"] == graph:
            return "execution_only", self.reasonlets[parent]["number"]
        return "new_version", self.high_water[self.reasonlets[parent]["root"]] + 1

    def check_stones(self, ts, *, scope=None, subject=None):
        for realm, name in (("scope", scope), ("subject", subject)):
            if name is not None and self.stones.get((realm, name), ts - ts.resolution) >= ts:
                raise Refused("forgotten")

    def capture(self, receipt, scope, question, graph, outcome, subject, parent, ts):
        kind, number = self.settle(scope, graph, parent)
        self.order += 1
        if kind == "execution_only":
            name = parent
        else:
            name = receipt.reasonlet_id
            root = name if parent is None else self.reasonlets[parent]["root"]
            self.reasonlets[name] = {
                "reasonlet_id": name,
                "parent_id": parent,
                "root": root,
                "number": number,
                "scope": scope,
                "question": question,
                "subject": subject,
                "graph": graph,
                "ts_captured": ts,
            }
            self.high_water[root] = number
        self.add_run(receipt.run_id, name, outcome, subject, ts)
        return kind, name, f"1.{number}"

    def add_run(self, run_id, reasonlet_id, outcome, subject, ts):
        self.order += 1
        self.runs[run_id] = {
            "run_id": run_id,
            "reasonlet_id": reasonlet_id,
            "outcome": outcome,
            "subject": subject,
            "ts_run": ts,
        }

    def add_feedback(self, feedback_id, run_id, outcome, subject, ts):
        self.order += 1
        self.feedback[feedback_id] = {
            "run_id": run_id,
            "outcome": outcome,
            "subject": subject,
            "ts_given": ts,
            "seq": self.order,
        }

    def add_recall(self, recall_id, scope, subject, shown, ts):
        self.recalls[recall_id] = {"scope": scope, "subject": subject, "shown": list(shown), "ts": ts}

    # Taking away

    def remove(self, gone):
        """Take reasonlets away with everything on them; their kept children become roots."""
        kept = {name: row for name, row in self.reasonlets.items() if name not in gone}
        for row in kept.values():
            if row["parent_id"] in gone:
                row["parent_id"] = None
        for name, row in kept.items():
            root = name
            while kept[root]["parent_id"] is not None:
                root = kept[root]["parent_id"]
            if root != row["root"]:
                row["root"] = root
                self.high_water[root] = max(self.high_water.get(root, 0), row["number"])
        self.reasonlets = kept
        self.runs = {name: run for name, run in self.runs.items() if run["reasonlet_id"] not in gone}
        for recall in self.recalls.values():
            recall["shown"] = [name for name in recall["shown"] if name not in gone]
        self.drop_loose_feedback()

    def drop_loose_feedback(self):
        self.feedback = {name: row for name, row in self.feedback.items() if row["run_id"] in self.runs}

    def erase_subject(self, subject, ts):
        before = self.size()
        self.remove({name for name, row in self.reasonlets.items() if row["subject"] == subject})
        for table in ("runs", "feedback", "recalls"):
            rows = getattr(self, table)
            setattr(self, table, {name: row for name, row in rows.items() if row["subject"] != subject})
        self.drop_loose_feedback()
        if self.size() != before:
            self.stones["subject", subject] = max(ts, self.stones.get(("subject", subject), ts))

    def erase_scope(self, scope, ts):
        before = self.size()
        self.remove({name for name, row in self.reasonlets.items() if row["scope"] == scope})
        self.recalls = {name: row for name, row in self.recalls.items() if row["scope"] != scope}
        if self.size() != before:
            self.stones["scope", scope] = max(ts, self.stones.get(("scope", scope), ts))

    def prune(self, since):
        """Remove what nothing used after ``since``; returns what went."""
        used = {name for name, row in self.reasonlets.items() if row["ts_captured"] > since}
        used |= {run["reasonlet_id"] for run in self.runs.values() if run["ts_run"] > since}
        used |= {name for recall in self.recalls.values() if recall["ts"] > since for name in recall["shown"]}
        for name in list(used):
            above = name
            while above is not None:
                used.add(above)
                above = self.reasonlets[above]["parent_id"]
        gone = set(self.reasonlets) - used
        self.remove(gone)
        return gone

    def size(self):
        return tuple(len(rows) for rows in (self.reasonlets, self.runs, self.feedback, self.recalls))
