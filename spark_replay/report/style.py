"""The page's style sheet and script. The page allows these two by their hashes and nothing else."""

from typing import Final

STYLE: Final = """
:root{--paper:#fff;--ink:#1d2329;--soft:#5a6570;--rule:#dde2e7;--faint:#f4f6f8;--link:#1f5f8b;
--up:#b7c6d2;--leads:#4f7490;--leads-next:#86a3b8;--idle:#d3dbe2;--written:#4f7490;
--bad:#c23b22;--warn:#dd8a1c;--mild:#e6c36a;--starting:#e9d5a3;--planned:#5b8fc0;--planned-soft:#a9c4de;
--good:#5a9a6e;--good-soft:#a5cbb0;--worst:#7a1f5c;--bad-2:#d9694f;--bad-3:#e59a86;--bad-4:#a85a42;--other:#9aa4ad}
@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#dfe5ea;--soft:#98a4af;--rule:#2c343b;--faint:#1b2126;
--link:#7db7e0;--up:#40525f;--leads:#7fa6c3;--leads-next:#56758c;--idle:#323c44;--written:#7fa6c3;
--bad:#e4644b;--warn:#e39a3b;--mild:#a88a3d;--starting:#6e6138;--planned:#6ea3d4;--planned-soft:#3f5f7d;
--good:#6fb184;--good-soft:#3f6a4c;--worst:#cf6bb0;--bad-2:#b8523c;--bad-3:#8c4636;--bad-4:#d08a74;--other:#66717b}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:2.2rem 1.5rem 4rem}
h1,h2,h3{font-weight:600;line-height:1.25;margin:0}
h1{font-size:1.6rem}h2{font-size:1.12rem;margin:2.8rem 0 .5rem}
h3{font-size:.74rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft)}
h4{font-size:.95rem;font-weight:600;margin:1.4rem 0 .3rem}
p{margin:.4rem 0}.lead,.sub{color:var(--soft);max-width:52rem}.sub{margin:.3rem 0 1.4rem}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
code{font:.92em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.2rem,1fr));margin:1.2rem 0;
border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}
.facts div{padding:.6rem .9rem .6rem 0}.facts dt{color:var(--soft);font-size:.78rem}
.facts dd{margin:0;font-size:1.12rem;overflow-wrap:anywhere}
.facts dd small{color:var(--soft);font-size:.78rem;display:block}
.highlights{list-style:none;margin:1rem 0;padding:0}
.highlights li{padding:.22rem 0 .22rem 1.3rem;position:relative;max-width:60rem}
.highlights li::before{content:"";position:absolute;left:0;top:.72rem;width:.62rem;height:.62rem;border-radius:50%}
.highlights .is-bad::before{background:var(--bad)}.highlights .is-warn::before{background:var(--warn)}
.highlights .is-good::before{background:var(--good)}.highlights .is-note::before{background:var(--other)}
.timeline{position:relative;margin:.8rem 0;--names:13rem}
.grid{position:absolute;left:var(--names);top:0;width:calc(100% - var(--names));height:100%}
.grid line{stroke:var(--rule);stroke-width:1}.veil{pointer-events:none}
.idle-gap{fill:var(--faint)}.hatched{fill:url(#hatch)}.hatch-line{stroke:var(--soft);stroke-width:1;opacity:.42}
.lanes{position:relative;padding:.5rem 0 .35rem;border-top:1px solid var(--rule);pointer-events:none}
.lanes h3{padding-bottom:.25rem}.lanes a,.lanes rect,.lanes g{pointer-events:auto}
.lane{display:grid;grid-template-columns:var(--names) 1fr;align-items:center;margin:3px 0;position:relative}
.name{display:flex;justify-content:space-between;gap:.5rem;padding-right:.8rem;font-size:.82rem;line-height:1.15}
.note{color:var(--soft);font-size:.74rem;text-align:right;flex-shrink:0;max-width:60%}
.plot,.ticks{display:block;overflow:visible}.ticks text{font-size:11px;fill:var(--soft)}
.axis{position:relative;pointer-events:none}.axis.top{position:sticky;top:0;background:var(--paper);z-index:2}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.25rem 0 .3rem var(--names);padding:0;
font-size:.76rem;color:var(--soft)}
.quiet{color:var(--soft);margin-left:var(--names)}
#cursor{position:absolute;top:0;bottom:0;width:1px;background:var(--ink);opacity:.45;pointer-events:none;display:none;z-index:3}
#cursor span{position:sticky;top:1.2rem;margin-left:5px;padding:0 .35rem;background:var(--ink);color:var(--paper);
font-size:.74rem;white-space:nowrap;border-radius:2px}
#cursor.flipped span{float:right;margin:0 5px 0 0}
.scrolls{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-size:.86rem;min-width:min(100%,32rem)}
caption{text-align:left;color:var(--soft);font-size:.8rem;padding-bottom:.25rem}
th{font-weight:500;color:var(--soft);text-align:left;font-size:.78rem;vertical-align:bottom;
border-bottom:1px solid var(--rule)}
th,td{padding:.3rem 1.1rem .3rem 0}
td{border-bottom:1px solid var(--rule);vertical-align:top;overflow-wrap:anywhere;min-width:6.2rem}
.number,td.number{min-width:0;text-align:right;white-space:nowrap}.whole{white-space:nowrap}.dim{color:var(--soft)}
tr:target td{background:var(--faint)}
details{margin:.7rem 0}summary{cursor:pointer;color:var(--link);font-size:.88rem}
.bad-word{color:var(--bad);font-weight:600}.warn-word{color:var(--warn);font-weight:600}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:0 2.5rem}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--rule);color:var(--soft);font-size:.82rem}
.broker-unfenced{fill:var(--up)}.broker-fenced{fill:var(--bad)}.broker-shutting-down{fill:var(--warn)}
.broker-stopped{fill:var(--mild)}.broker-registered{fill:var(--starting)}
.leads{fill:var(--leads)}.leads.next{fill:var(--leads-next)}.elected{fill:var(--leads)}
.idle{fill:var(--idle)}.written{fill:var(--written)}
.bad{fill:var(--bad)}.warn{fill:var(--warn)}.mild{fill:var(--mild)}.planned{fill:var(--planned)}
.cause-unclean{fill:var(--worst)}.cause-fencing{fill:var(--bad)}.cause-unregistration{fill:var(--bad-4)}
.cause-restart{fill:var(--bad-2)}.cause-directory_failure{fill:var(--bad-3)}.cause-shutdown{fill:var(--warn)}
.cause-reassignment{fill:var(--planned)}.cause-preferred{fill:var(--planned-soft)}
.cause-unfencing{fill:var(--good)}.cause-recovery{fill:var(--good-soft)}.cause-other{fill:var(--other)}
rect:hover,g:hover>rect{filter:brightness(.88)}
@media (max-width:720px){main{padding:1.2rem .9rem 3rem}.timeline{--names:0rem}.lane{grid-template-columns:1fr}
.name{justify-content:flex-start;padding:.2rem 0 .05rem;position:relative;z-index:2}.name span{background:var(--paper)}
.note{text-align:left}.ticks .minor{display:none}}
@media print{:root{--paper:#fff;--ink:#111;--soft:#555;--rule:#ccc;--faint:#f4f4f4}
main{max-width:none;padding:0}body{font-size:11px}h2{margin-top:1.4rem}.lane,tr,.highlights li{break-inside:avoid}
h2,h3,h4{break-after:avoid}.axis.top{position:static}.scrolls{overflow:visible}a{color:inherit}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""

# A line under the pointer with the time there, across all rows; and everything unfolded for the printer.
SCRIPT: Final = """
(function () {
  var timeline = document.querySelector(".timeline"), grid = document.querySelector(".grid");
  if (timeline && grid) {
    var start = Number(timeline.dataset.start), length = Number(timeline.dataset.length);
    var cursor = document.createElement("div"), label = document.createElement("span");
    cursor.id = "cursor";
    cursor.appendChild(label);
    timeline.appendChild(cursor);
    timeline.addEventListener("mousemove", function (event) {
      var box = grid.getBoundingClientRect(), outer = timeline.getBoundingClientRect();
      var share = (event.clientX - box.left) / box.width;
      if (share < 0 || share > 1) { cursor.style.display = "none"; return; }
      cursor.style.display = "block";
      cursor.style.left = (event.clientX - outer.left) + "px";
      cursor.classList.toggle("flipped", share > 0.8);
      label.textContent = new Date(start + share * length).toISOString().slice(0, 19).replace("T", " ");
    });
    timeline.addEventListener("mouseleave", function () { cursor.style.display = "none"; });
  }
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (each) { each.open = true; });
  });
})();
"""
