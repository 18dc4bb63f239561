'use strict';
// Draws the charts with uPlot, again when the colours or widths change, and light for print.
const charts = JSON.parse(document.getElementById('charts').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const short = value => value == null ? '–' : Math.abs(value) >= 1e4 ?
  Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 2}).format(value) :
  String(Number(value.toPrecision(4)));

function options(chart, element) {
  const stacked = chart.kind === 'stack', last = chart.labels.length - 1;
  const name = at => chart.names.length ? chart.names[at] ?? '' : short(at);
  const axis = {stroke: colour('soft'), grid: {stroke: colour('line'), width: 1},
    ticks: {stroke: colour('line'), width: 1}, font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif'};
  // Without a pointer the legend says the newest values.
  const ends = chart.y.map(values => values.findLastIndex(value => value != null));
  const paint = at => {
    const own = colour(stacked ? `phase${at + 1}` : `s${at + 1}`);
    const series = {label: chart.labels[at].slice(0, 80), stroke: own, width: 2, spanGaps: true,
      value: (_, value, __, where) => short(chart.y[at][where ?? ends[at]])};
    // A line of few points may lie among many of another one, or be a point.
    if (chart.y[at].filter(value => value != null).length <= 40) series.points = {show: true};
    if (stacked) Object.assign(series, {fill: own, width: 0, points: {show: false}});
    if (chart.kind === 'bars') Object.assign(series, {fill: own, width: 0,
      paths: uPlot.paths.bars({size: [1, 100], align: 1, gap: 1}), points: {show: false}});
    if (chart.kind === 'dots') Object.assign(series, {paths: () => null,
      points: {show: true, size: 10, fill: own}});
    return series;
  };
  const order = chart.labels.map((_, at) => stacked ? last - at : at);
  const high = Math.max(...chart.y.flat().filter(value => value != null), 0);
  const fromZero = chart.kind !== 'line' || chart.unit;
  const isTime = chart.kind === 'dots', isBars = chart.kind === 'bars';
  const range = (_, low, most) => {
    if (chart.names.length) return [-.2, chart.names.length - .8];
    if (low === most) return isTime ? [low - 60, most + 60] : [low - 1, most + 1];
    const margin = isTime ? (most - low) * .05 : 0;
    return [low - margin, most + (isBars ? chart.x[1] - chart.x[0] : margin)];
  };
  const steps = isTime ? {size: 50} : {size: 34, values: (_, values) => values.map(name),
    ...(chart.names.length && {splits: chart.x})};
  return {width: element.clientWidth, height: element.closest('.small') ? 150 : 230,
    scales: {x: {time: isTime, range},
      y: stacked ? {range: [0, 100]} : fromZero ? {range: [0, high * 1.08 || 1]} : {}},
    tzDate: seconds => uPlot.tzDate(new Date(seconds * 1e3), 'Etc/UTC'),
    axes: [{...axis, space: 60, ...steps},
      {...axis, size: 58, values: (_, values) => values.map(short)}],
    series: [{label: chart.x_label, value: (_, value) => name(value ?? chart.x.at(-1))},
      ...order.map(paint)],
    cursor: {drag: {x: false, y: false}, points: {show: !stacked}},
    legend: {show: !isTime && !isBars,
      markers: {width: 0, fill: (_, at) => paint(order[at - 1]).stroke}}};
}

function columns(chart) {
  if (chart.kind !== 'stack') return [chart.x, ...chart.y];
  const sums = [];  // uPlot stacks nothing: the largest sum is drawn first, and others over it.
  chart.y.forEach((values, at) => sums.push(values.map(
    (value, where) => value + (at ? sums[at - 1][where] : 0))));
  return [chart.x, ...sums.reverse()];
}

const drawn = new Map();
function draw(chart, width) {
  const element = document.getElementById(chart.id);
  drawn.get(chart.id)?.destroy();
  if (chart.x.length) drawn.set(chart.id, new uPlot(
    {...options(chart, element), ...(width && {width})}, columns(chart), element));
}
function all(isDark = dark.matches, width = 0) {
  document.documentElement.classList.toggle('dark', isDark);
  charts.forEach(chart => draw(chart, width));
}
all();
dark.addEventListener('change', () => all());
addEventListener('beforeprint', () => all(false, 310));  // Half of a sheet.
addEventListener('afterprint', () => all());
const resized = new ResizeObserver(entries => entries.forEach(entry => {
  const plot = drawn.get(entry.target.id), width = entry.target.clientWidth;
  if (plot && width && plot.width !== width) plot.setSize({width, height: plot.height});
}));
charts.forEach(chart => resized.observe(document.getElementById(chart.id)));
