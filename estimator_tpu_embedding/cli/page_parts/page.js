'use strict';
// Draws the charts with uPlot, again when the colours change, and light for print.
const charts = JSON.parse(document.getElementById('charts').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const colour = name =>
  getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const compact = Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 2});
const short = value => value == null ? '–' :
  Math.abs(value) >= 1e4 ? compact.format(value) : String(Number(value.toPrecision(4)));

function options(chart, element, width) {
  const [isStack, isBars, isTime] = ['stack', 'bars', 'dots'].map(kind => chart.kind === kind);
  const name = at => chart.names.length ? chart.names[at] ?? '' : short(at);
  const line = {stroke: colour('line'), width: 1};
  const axis = {stroke: colour('soft'), grid: line, ticks: line, font: '12px system-ui'};
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
  if (isStack) series.reverse();
  const high = Math.max(...chart.y.flat(), 0);
  const low = chart.x[0], most = chart.x.at(-1);
  const room = low === most ? (isTime ? 60 : 1) :  // Dots need it at their sides.
    isTime || chart.names.length ? (most - low) * .05 : 0;
  const range = [low - room, most + (isBars && chart.x[1] - chart.x[0] || room)];
  const steps = isTime ? {size: 50} : {size: 34, values: (_, values) => values.map(name),
    ...(chart.names.length && {splits: chart.x})};
  return {width, height: element.closest('.small') ? 150 : 230,
    scales: {x: {time: isTime, range},
      y: isStack ? {range: [0, 100]} :
        chart.kind !== 'line' || chart.unit ? {range: [0, high * 1.08 || 1]} : {}},
    tzDate: seconds => uPlot.tzDate(new Date(seconds * 1e3), 'Etc/UTC'),
    axes: [{...axis, space: 60, ...steps},
      {...axis, size: 58, values: (_, values) => values.map(short)}],
    series: [{label: chart.x_label, value: (_, value) => name(value ?? chart.x.at(-1))}, ...series],
    cursor: {drag: {x: false, y: false}, points: {show: !isStack}},
    legend: {show: !isTime && !isBars,
      markers: {width: 0, fill: (_, at) => series[at - 1].stroke}}};
}

function columns(chart) {
  if (chart.kind !== 'stack') return [chart.x, ...chart.y];
  // uPlot stacks nothing: the sum of all is drawn first, and the others over it.
  return [chart.x, ...chart.y.map((_, at) => chart.x.map((_, where) => chart.y.slice(0, at + 1)
    .reduce((sum, values) => sum + values[where], 0))).reverse()];
}

const drawn = new Map();
function draw(isDark = dark.matches, width = undefined) {
  document.documentElement.classList.toggle('dark', isDark);
  for (const chart of charts) {
    const element = document.getElementById(chart.id);
    drawn.get(chart.id)?.destroy();
    drawn.set(chart.id, new uPlot(
      options(chart, element, width ?? element.clientWidth), columns(chart), element));
  }
}
draw();
dark.addEventListener('change', () => draw());
addEventListener('beforeprint', () => draw(false, 310));  // Half of a sheet.
addEventListener('afterprint', () => draw());
const resized = new ResizeObserver(entries => entries.forEach(entry => {
  const plot = drawn.get(entry.target.id), width = entry.target.clientWidth;
  if (plot && width && plot.width !== width) plot.setSize({width, height: plot.height});
}));
charts.forEach(chart => resized.observe(document.getElementById(chart.id)));
