// Rows of tools/bench (tab-separated: contender, keys, connections, requests/s, p50, p99, p99.9, CPU s, MiB, failed;
// or contender, "disk", connections, bytes a record) as Markdown; with a folder, plots too.
//
//   node bench/report.mjs ROWS [FOLDER]
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const contenders = [
  ['nginx', 'nginx, plain proxy'], ['sqlite', 'einmal on SQLite'], ['postgres', 'einmal on PostgreSQL'],
  ['store', 'einmal on the store given'],
  ['express-redis', 'Express + Redis'], ['express-redis-everysec', 'Express + Redis, fsync each second'],
  ['express-redis-alone', 'Express + Redis, no upstream'], ['express-idempotency', 'express-idempotency'],
  ['node-idempotency', 'node-idempotency'], ['nginx-tls', 'TLS: nginx'], ['sqlite-tls', 'TLS: einmal on SQLite'],
];
const loads = { none: 'no key', new: 'new keys', '10 %': '10 % replays', '90 %': '90 % replays', replays: 'replays only' };

// Rows of the same measurement, from several runs, are averaged.
const measured = new Map();
const disk = new Map();
for (const line of readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean)) {
  const [contender, keys, connections, ...figures] = line.split('\t');
  const into = keys === 'disk' ? disk : measured;
  const name = [contender, keys, connections].join('\t');
  into.set(name, [...(into.get(name) ?? []), figures.map(Number)]);
}
const mean = (lists) => lists[0].map((_, i) => lists.reduce((sum, list) => sum + list[i], 0) / lists.length);
function figures(contender, keys, connections) {
  const found = measured.get([contender, keys, connections].join('\t'));
  if (!found) return undefined;
  const [rate, p50, p99, p999, cpu, memory, failed] = mean(found);
  return { rate, p50, p99, p999, cpu, memory, failed: Math.round(failed * found.length) };
}
const all = [...measured.keys()].map((name) => name.split('\t'));
const counts = [...new Set(all.map(([, , connections]) => Number(connections)))].sort((a, b) => a - b);

const row = (cells) => console.log(`| ${cells.join(' | ')} |`);
row(['contender', 'keys', 'connections', 'requests/s', 'of nginx', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU s / 100k', 'MiB',
  'failed']);
console.log(`|---|---|${'---:|'.repeat(9)}`);
for (const connections of counts) {
  const nginx = figures('nginx', 'new', connections)?.rate;
  for (const [contender, label] of contenders) {
    for (const [keys, load] of Object.entries(loads)) {
      const f = figures(contender, keys, connections);
      if (!f) continue;
      row([label, contender.startsWith('nginx') ? '–' : load, connections, Math.round(f.rate),
        nginx ? (f.rate / nginx).toFixed(2) : '–', f.p50.toFixed(2), f.p99.toFixed(2), f.p999.toFixed(2),
        f.cpu.toFixed(1), Math.round(f.memory), f.failed]);
    }
  }
}
if (disk.size) {
  console.log();
  row(['contender', 'bytes on disk a record']);
  console.log('|---|---:|');
  for (const [contender, label] of contenders) {
    const found = counts.flatMap((count) => disk.get([contender, 'disk', count].join('\t')) ?? []).map(([bytes]) => bytes);
    if (!found.length) continue;
    const [least, most] = [Math.min(...found), Math.max(...found)];
    row([label, least === most ? least : `${least} to ${most}`]);
  }
}

// --- plots: one panel for each number of connections, one bar for each contender, a scale for each panel

const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
const short = (value) => (value >= 10000 ? `${(value / 1000).toFixed(1)} k` : value >= 100 ? Math.round(value)
  : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const kind = (contender) => (contender.startsWith('nginx') ? 'plain' : /^(sqlite|postgres|store)/.test(contender)
  ? 'ours' : 'other');

function plot({ title, unit, better, keys, figure }) {
  const shown = contenders.filter(([contender]) => !contender.includes('tls')
    && counts.some((count) => figures(contender, contender === 'nginx' ? 'new' : keys, count)));
  const [left, panel, gap, bar, top] = [225, 150, 62, 24, 74];
  const width = left + counts.length * (panel + gap);
  const height = top + shown.length * bar + 14;
  const parts = [];
  counts.forEach((count, at) => {
    const x = left + at * (panel + gap);
    const values = shown.map(([contender]) => figures(contender, contender === 'nginx' ? 'new' : keys, count));
    const most = Math.max(...values.map((value) => (value ? figure(value) : 0)));
    parts.push(`<text x="${x}" y="${top - 12}" class="head">${count} connection${count === 1 ? '' : 's'}</text>`);
    values.forEach((value, i) => {
      const y = top + i * bar;
      if (!value) return;
      const length = Math.max(1, (figure(value) / most) * panel);
      const failed = value.failed ? `, ${value.failed} failed` : '';
      parts.push(`<rect x="${x}" y="${y}" width="${length.toFixed(1)}" height="${bar - 7}" class="${kind(shown[i][0])}"/>`
        + `<text x="${(x + length + 5).toFixed(1)}" y="${y + 13}" class="value">${short(figure(value))}${failed}</text>`);
    });
  });
  shown.forEach(([contender, label], i) => parts.push(
    `<text x="${left - 10}" y="${top + i * bar + 13}" text-anchor="end" class="${kind(contender) === 'ours' ? 'head' : ''}">`
    + `${escape(label)}</text>`));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escape(title)}</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .head { font-weight: 600 } .value, .unit { fill: #57606a; font-size: 12px }
  .plain { fill: #8c959f } .ours { fill: #1f6feb } .other { fill: #d4853b } .back { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .value, .unit { fill: #9da7b3 } .back { fill: #0d1117 }
    .plain { fill: #6e7681 } .ours { fill: #4493f8 } .other { fill: #db8b42 }
  }
</style>
<rect width="100%" height="100%" rx="6" class="back"/>
<text x="14" y="24" class="title">${escape(title)}</text>
<text x="14" y="42" class="unit">${escape(`${unit}; ${better}. Each panel has its own scale.`)}</text>
${parts.join('\n')}
</svg>
`;
}

const folder = process.argv[3];
if (folder) {
  mkdirSync(folder, { recursive: true });
  const more = 'longer is better';
  const less = 'shorter is better';
  const plots = {
    'throughput-new-keys': { title: 'Throughput, every request with a new key', unit: 'requests a second', better: more,
      keys: 'new', figure: (f) => f.rate },
    'throughput-replays': { title: 'Throughput in a retry storm, 90 % replays', unit: 'requests a second', better: more,
      keys: '90 %', figure: (f) => f.rate },
    'latency-new-keys': { title: 'Latency, every request with a new key', unit: '99th percentile in milliseconds',
      better: less, keys: 'new', figure: (f) => f.p99 },
    'cpu-new-keys': { title: 'Processor time, every request with a new key',
      unit: 'seconds for 100,000 requests, all processes of the contender', better: less, keys: 'new', figure: (f) => f.cpu },
  };
  for (const [name, settings] of Object.entries(plots)) writeFileSync(join(folder, `${name}.svg`), plot(settings));
}
