// Markdown: one row for each scenario, one column for each report (NAME.json) of `einmal probe`.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

const reports = process.argv.slice(2).map((file) => ({
  name: basename(file, '.json'), report: JSON.parse(readFileSync(file, 'utf8')),
}));
const words = { passed: 'passed', failed: '**failed**', not_judged: '–' };
const row = (cells) => console.log(`| ${cells.join(' | ')} |`);

row(['scenario', ...reports.map(({ name }) => name)]);
row(['---', ...reports.map(() => '---')]);
for (const { name } of reports[0].report.scenarios) {
  row([`\`${name}\``, ...reports.map(({ report }) =>
    words[report.scenarios.find((each) => each.name === name).verdict])]);
}
row(['passed / failed / not judged', ...reports.map(({ report }) =>
  `${report.passed} / ${report.failed} / ${report.not_judged}`)]);
