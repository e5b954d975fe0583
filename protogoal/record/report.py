"""`protogoal report DIR… --out FILE.html`: what the inspector shows, as one file that opens without a network.

Figures are inline SVG, clips are inline GIFs, goals and maps are inline JSON drawn by a small script; names are data and
are shown as text. Beside FILE.html a folder FILE_files/ holds each figure as PNG and its numbers as CSV. Needs the light
core only (matplotlib). Called by cli.py and at the end of a run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import time
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from protogoal.files import write_whole
from protogoal.record import figures, queries, report_data, seeds, terms
from protogoal.record.measures import MEASURES, CellMap
from protogoal.record.palette import VERDICT
from protogoal.record.queries import Curve
from protogoal.record.reader import StoreReader
from protogoal.record.report_files import FigureFiles
from protogoal.record.run_facts import RunFacts, labels, run_facts
from protogoal.record.schema import SEQUENCE, STATE

MOST_METRICS = 18  # drawn; the CSV has all


def report(run_dirs: list[Path], out: Path, beside: bool = True) -> None:
    """Write the report of the runs to `out`; with `beside`, the figures and tables into a folder next to it."""
    if not run_dirs:
        raise ValueError("name at least one run directory")
    out = Path(out)
    files = FigureFiles(out.with_name(f"{out.stem}_files") if beside else None)
    paths = [Path(path) for path in run_dirs]
    readers = [StoreReader(path) for path in paths]
    try:
        page = _page(list(zip(labels(paths), readers, strict=True)), files)
    finally:
        for reader in readers:
            reader.close()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        files.write()
        write_whole(out, page)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror}") from None


def _page(runs: list[tuple[str, StoreReader]], files: FigureFiles) -> str:
    facts = [run_facts(reader, label) for label, reader in runs]
    parts = [f"<h1>{_text(', '.join(label for label, _ in runs))}</h1>",
             f"<p class=label>Written {time.strftime('%Y-%m-%d %H:%M')}</p>",
             *(_tiles(fact) for fact in facts), _seeds(facts),
             _success(runs, facts, files), _metrics(runs, facts, files)]
    data = []
    for index, ((label, reader), fact) in enumerate(zip(runs, facts, strict=True)):
        parts.append(f"<h2>{_text(label)}</h2>")
        parts.append(f"<div class=pair>{_funnel(label, reader, files)}{_events(queries.events(reader, 9))}</div>")
        _pictures(label, reader, files)
        _goals_csv(label, reader, files)
        told = {"label": label, "goals": report_data.goal_rows(reader, fact), "pictures": report_data.pictures(reader),
                "columns": [[column, *terms.FIGURES[column]] for column in terms.figures_of(fact)]}
        total = reader.rows("SELECT count(*) FROM goals")[0][0]
        if total:
            parts.append(_interactive(index, len(told["goals"]), total, queries.declared(reader)))
            data.append({"run": index, **told})
        parts.append(f"<p class=label>{_text(terms.task_words(fact))}</p>" if fact.task_tries else "")
        parts.append(_clips(report_data.clips(reader)))
    assets = resources.files("protogoal.record") / "report_assets"
    script = (assets / "report.js").read_text(encoding="utf-8")
    style = (assets / "report.css").read_text(encoding="utf-8")
    names = {"verdicts": terms.VERDICTS, "signs": terms.SIGNS, "meanings": terms.MEANINGS, "decided": terms.DECIDED,
             "colours": {**VERDICT, 0: "var(--line)"},
             "measures": [[measure.key, measure.label, measure.title] for measure in MEASURES.values()]}
    return _HTML.format(
        title=_text("protogoal: " + ", ".join(label for label, _ in runs)), style=style, script=script, body="\n".join(parts),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '{_sha(script)}'",
        data=_json({"runs": data, **names}))


_HTML = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><style>{style}</style></head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body></html>
"""


def _text(value: object) -> str:
    return html.escape(str(value))


def _json(value: object) -> str:
    """JSON that ends no script: < is written as an escape."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _sha(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _tiles(facts: RunFacts) -> str:
    tiles = [
        ("", f"<b class=run>{_text(facts.label)}</b>", f"{_text(facts.preset)} · {_text(terms.status_words(facts))}"),
        ("success", terms.percent(facts.success), "" if facts.low is None or facts.high is None else
         f"{100 * facts.low:.0f}–{100 * facts.high:.0f} % · {facts.episodes:,} episodes"),
        ("return", terms.decimal(facts.mean_return), "mean of the evaluation"),
        ("steps", terms.whole(facts.step), f"of {terms.short(facts.total_steps)}" if facts.total_steps else ""),
        ("speed", terms.short(facts.speed), "steps a second"),
        ("time", terms.duration(facts.seconds), "of training")]
    shown = [f"<div class=tile><small>{name}</small><b>{value}</b><small>{below}</small></div>" for name, value, below in tiles]
    if facts.funnel:
        told = {stage: f'<span title="{_text(terms.STAGES[stage])}"><b>{number:,}</b> <small>{stage}</small></span>'
                for stage, number in facts.funnel.items()}
        stages = " <i>→</i> ".join(told[stage] for stage in SEQUENCE)
        shown.append(f"<div class='tile wide'><small>goals</small><div>{stages} <i>|</i> {told['undecided']}</div></div>")
    return f"<div class=tiles>{''.join(shown)}</div>"


def _figure(caption: str, svg: str) -> str:
    return f"<figure><figcaption>{_text(caption)}</figcaption>{svg}</figure>"


def _seeds(facts: list[RunFacts]) -> str:
    """What the seeds of one configuration say together."""
    told = [(group.label, seeds.success_words([facts[place] for place in group.members])) for group in seeds.groups(facts)]
    return "".join(f"<p><b>{_text(label)}</b>: success {_text(words_of)}.</p>" for label, words_of in told if words_of)


def _success(runs: list[tuple[str, StoreReader]], facts: list[RunFacts], files: FigureFiles) -> str:
    curves = [queries.success_curve(reader) for _, reader in runs]
    lines = seeds.lines(curves, facts, "success")
    if not lines:
        return "<p class=label>The task has not been played yet.</p>"
    files.table("success", [{"run": label, **row} for (label, _), curve in zip(runs, curves, strict=True) for row in _rows(curve)])
    drawn = ""
    over = "; of several seeds the mean with its t interval, each seed thin" * any(line.seeds for line in lines)
    if any(np.isfinite(curve["success"]).any() for curve in curves):
        drawn = _figure(f"Success at the task, with its 95 % interval{over}",
                        files.draw("success", figures.success_figure(lines)))
    if any((curve["success"] != curve["mean_return"]).any() for curve in curves):  # else it would be the same curve
        lines = seeds.lines(curves, facts, "mean_return")
        drawn += _figure("Return at the task" + over, files.draw("return", figures.return_figure(lines)))
    return drawn


def _funnel(label: str, reader: StoreReader, files: FigureFiles) -> str:
    curve = queries.funnel_curves(reader)
    if not len(curve["step"]):
        return "<p class=label>This run has no goals.</p>"
    name = f"funnel-{_file_name(label)}"
    files.table(name, _rows(curve))
    return _figure("Goals by stage", files.draw(name, figures.funnel_figure(curve)))


def _metrics(runs: list[tuple[str, StoreReader]], facts: list[RunFacts], files: FigureFiles) -> str:
    names = dict.fromkeys(name for _, reader in runs for name in queries.metric_names(reader))
    if not names:
        return ""
    curves = {name: [queries.metric_curve(reader, name) for _, reader in runs] for name in names}
    files.table("metrics", [{"metric": name, "run": label, **row} for name, each in curves.items()
                            for (label, _), curve in zip(runs, each, strict=True) for row in _rows(curve)])
    shown = {name: seeds.lines(each, facts, "value") for name, each in list(curves.items())[:MOST_METRICS]}
    labels = [group.label for group in seeds.groups(facts)]
    drawn = _figure("Other numbers", files.draw("metrics", figures.metrics_figure(shown, labels)))
    return f"<details><summary>Other numbers: {_text(', '.join(shown))}</summary>{drawn}</details>"


def _pictures(label: str, reader: StoreReader, files: FigureFiles) -> None:
    """The maps and lists as they are now, into the folder; in the page they are drawn by its script."""
    placed: list[CellMap] = []
    rows: list[dict[str, Any]] = []
    for kind in queries.kinds(reader):
        goals = queries.goals_at(reader, kind["kind"])
        rows += [{"kind": kind["kind"], **row} for row in _rows(goals)]
        if kind["rows"]:
            where = ~np.isnan(goals["row"])
            there = {name: column[where] for name, column in goals.items()}
            placed.append(CellMap(kind["kind"], kind["rows"], kind["cols"], there))
        else:
            files.keep(f"list-{_file_name(label)}-{_file_name(kind['kind'])}", figures.bars_figure(kind["kind"], goals))
    if placed:
        for key, measure in MEASURES.items():
            files.keep(f"maps-{_file_name(label)}-{key}", figures.maps_figure(placed, measure))
    if rows:
        files.table(f"pictures-{_file_name(label)}", rows)


def _goals_csv(label: str, reader: StoreReader, files: FigureFiles) -> None:
    columns = f"id, name, kind, row, col, members, parents, created_step, observed_step, {', '.join(STATE)}"
    rows = reader.records(f"SELECT {columns} FROM goals ORDER BY id")
    if rows:
        files.table(f"goals-{_file_name(label)}", [{**row, "verdict": terms.VERDICTS[row["verdict"]]} for row in rows])


def _interactive(index: int, shown: int, total: int, declared: int) -> str:
    more = f"The {shown:,} most counted of {total:,} goals; the CSV has all" if shown < total else f"{total:,} goals"
    more += f" that were observed, of {declared:,} declared."
    return (f"<section class=pictures data-run={index}></section>"
            f"<section class=goals data-run={index}><p class=label>{more}</p></section>"
            "<noscript><p>The table and the maps need JavaScript; the folder beside has them as PNG and CSV.</p></noscript>")


def _clips(clips: list[dict[str, Any]]) -> str:
    cards = []
    for clip in clips:
        end = {1: "✓ won", 0: "✕ failed"}.get(clip["success"], "ended")
        who = "the player, at the task" if clip["kind"] == "player" else clip["name"]
        told = _text(f"{end}: {who}, step {clip['step']:,}")
        cards.append(f'<figure class=card><img src="{clip["url"]}" alt="{told}"><figcaption>{told}</figcaption></figure>')
    return f"<h3>Behaviour</h3><div class=cards>{''.join(cards)}</div>" if cards else ""


def _events(events: list[dict[str, Any]]) -> str:
    rows = "".join(f"<tr><td class=number>{event['step']:,}<td>{_text(event['text'])}" for event in events)
    return f"<figure><figcaption>Events</figcaption><table class=events>{rows}</table></figure>" if rows else ""


def _rows(curve: Curve) -> Iterable[dict[str, Any]]:
    """The rows of a curve for a CSV; NaN is an empty field, a whole number has no point."""
    columns = {name: [_cell(value) for value in column.tolist()] for name, column in curve.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if value != value else int(value) if value.is_integer() else value
    return value


def _file_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip(".-") or "run"
