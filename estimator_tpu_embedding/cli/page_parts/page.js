'use strict';
// Draws the charts with uPlot, again when colours or widths change, and light for print.
const charts = JSON.parse(document.getElementById('charts').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const colour = name =>
  getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const short = value => value == null ? '–' : value.toLocaleString('en', {
  maximumSignificantDigits: 4, notation: Math.abs(value) < 1e4 ? 'standard' : 'compact'});

function options(chart, element, width) {
  const [isStack, isBars, isTime, isLog] = ['stack', 'bars', 'dots', 'log'].map(
    kind => chart.kind === kind);
  const line = {stroke: colour('line'), width: 1};
  const axis = {stroke: colour('soft'), grid: line, ticks: line, font: '12px system-ui',
    // A logarithmic axis has no text at some of its lines.
    values: (_, values) => values.map(value => value == null ? '' : short(value))};
  const series = chart.labels.map((label, at) => {
    const own = colour(`s${at + 1}`), known = chart.y[at].filter(value => value != null);
    return {label: label.slice(0, 80), stroke: own, width: 2, spanGaps: true,
      // Without a pointer the legend says the newest values.
      value: (_, __, ___, where) => short(where == null ? known.at(-1) : chart.y[at][where]),
      // A line of few points may lie among many of another one, or be a point.
      ...(known.length <= 40 && {points: {show: true}}),
      ...{stack: {fill: own, width: 0, points: {show: false}},
        bars: {fill: own, width: 0, points: {show: false},
          paths: uPlot.paths.bars({size: [1, 100], align: 1, gap: 1})},
        dots: {paths: () => null, points: {show: true, size: 10, fill: own}}}[chart.kind]};
  });
  const low = chart.x[0], last = chart.x.at(-1), room = isTime ? 60 : 1;
  return {width, height: element.closest('.small') ? 150 : 230,
    scales: {x: {time: isTime, ...(isLog && {distr: 3, log: 2}),
      ...(isBars && {range: [low, last + (chart.x[1] - low || room)]}),
      ...(!isBars && low === last && {range: [low - room, last + room]})},
      y: chart.unit ? {range: (_, low, high) => [0, isStack ? 100 : high > 0 ? high * 1.08 : 1]} :
        {}},
    tzDate: seconds => uPlot.tzDate(new Date(seconds * 1e3), 'Etc/UTC'),
    axes: [{...axis, space: 60, ...(isTime ? {size: 50, values: undefined} : {size: 34})},
      {...axis, size: 58}],
    series: [{label: chart.x_label, value: (_, value) => short(value ?? last)},
      ...(isStack ? series.reverse() : series)],
    cursor: {drag: {x: false, y: false}, points: {show: !isStack}},
    legend: {show: !isTime && !isBars,
      markers: {width: 0, fill: (_, at) => series[at - 1].stroke}}};
}

// uPlot stacks nothing: the sum of all is drawn first, and the others over it.
const stacked = columns => columns.reduce((sums, values) => [
  values.map((value, at) => value + (sums[0]?.[at] ?? 0)), ...sums], []);

function draw(isDark = dark.matches, width = undefined) {
  document.documentElement.classList.toggle('dark', isDark);
  for (const chart of charts) {
    const element = document.getElementById(chart.id);
    chart.plot?.destroy();
    chart.plot = new uPlot(options(chart, element, width ?? element.clientWidth),
      [chart.x, ...(chart.kind === 'stack' ? stacked(chart.y) : chart.y)], element);
  }
}
draw();
dark.addEventListener('change', () => draw());
addEventListener('resize', () => draw());
addEventListener('beforeprint', () => draw(false, 310));  // Half of a sheet.
addEventListener('afterprint', () => draw());
