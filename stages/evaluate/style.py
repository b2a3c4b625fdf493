"""How the report looks: light and dark, wide and narrow, without anything from outside the page."""

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --rule: #d5dae0; --band: #f5f7f9;
  --accent: #0b5cad; --c0: #0b5cad; --c1: #c2410c; --c2: #15803d; --c3: #7e22ce; --c4: #b4155b; --c5: #0e7490;
  --c6: #8a6100; --c7: #76818e; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e6eaee; --soft: #a3adb8; --rule: #39424c; --band: #1c2229; --accent: #79b8ff;
    --c0: #6cb6ff; --c1: #ff9e64; --c2: #6fd08c; --c3: #c9a2ff; --c4: #ff8ab8; --c5: #5fd4e6; --c6: #e3c04f;
    --c7: #b6c0cb; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .75rem; padding-top: .75rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.02rem; margin: 1.75rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--accent); }
nav a { margin-right: 1rem; }
.lead, caption, figcaption, .soft { color: var(--soft); }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem;
  margin: 1.25rem 0; padding: 0; }
.numbers div { background: var(--band); border-radius: .5rem; padding: .6rem .8rem; }
.numbers dt { color: var(--soft); font-size: .85rem; }
.numbers dd { margin: 0; font-size: 1.3rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.notes { padding-left: 1.2rem; max-width: 46rem; }
.notes li { margin: .35rem 0; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; font-size: .92rem; font-variant-numeric: tabular-nums;
  margin: .25rem 0 .75rem; }
caption { text-align: left; padding: 0 0 .4rem; font-size: .88rem; }
th, td { padding: .28rem .75rem; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: baseline;
  overflow-wrap: normal; }
tbody th { font-weight: 400; }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; overflow-wrap: break-word; max-width: 12rem; }
thead tr.over th { border-bottom: 0; padding-bottom: 0; max-width: none; text-align: center; color: var(--soft);
  font-weight: 400; }
tbody th, thead th:first-child { text-align: left; padding-left: 0; white-space: nowrap;
  position: sticky; left: 0; background: var(--paper); overflow-wrap: normal; }
tr.group th { color: var(--soft); font-weight: 600; padding-top: .9rem; white-space: normal; position: static; }
tr.first:not(:first-child) th, tr.first:not(:first-child) td { border-top: 1px solid var(--soft); }
td small { display: block; color: var(--soft); font-size: .8rem; white-space: nowrap; }
td.words, th.words { text-align: left; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.25rem 2rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 3rem; }
.tables section, .stack { min-width: 0; max-width: 100%; }
figure { margin: 0; min-width: 0; }
figure h3 { margin: .75rem 0 .25rem; }
.alone { max-width: 34rem; }
figure > svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .88rem; margin-top: .25rem; }
svg text { fill: var(--soft); font-size: 12.5px; text-anchor: middle; font-variant-numeric: tabular-nums; }
svg text.end { text-anchor: end; }
svg text.start { text-anchor: start; }
svg text.axis { fill: var(--ink); }
svg text.value { fill: var(--ink); font-size: 12px; }
.grid { stroke: var(--rule); stroke-width: 1; }
.zero { stroke: var(--soft); stroke-width: 1.2; }
.rule { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 4; }
.line { fill: none; stroke: var(--c); stroke-width: 2.25; stroke-linejoin: round; }
.dot, .bar { fill: var(--c); }
.whisker { fill: none; stroke: var(--ink); stroke-width: 1.25; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; margin: .15rem 0; padding: 0;
  font-size: .9rem; }
.key { width: 28px; height: 12px; margin-right: .4rem; vertical-align: middle; }
.terms dt { font-weight: 600; margin-top: .6rem; }
.terms dd { margin: 0; max-width: 46rem; }
@media (max-width: 36rem) {
  svg text { font-size: 15px; }
  svg text.value { font-size: 13px; }
  table { font-size: .86rem; }
  th, td { padding: .28rem .25rem; }
  td small { font-size: .68rem; }
}
""" + "".join(f".c{i} {{ --c: var(--c{i}); }}\n" for i in range(8))
