// Opens a page in Chromium at three widths, light and dark, and prints what is wrong with it.
//   node look_at_page.mjs CHROMIUM PAGE [FOLDER for pictures]
import fs from 'node:fs';
import {createRequire} from 'node:module';
const require = createRequire(process.cwd() + '/');
const puppeteer = require('puppeteer-core');
const [chromium, page, folder] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: chromium, args: ['--no-sandbox', '--disable-gpu']});
const wrong = [];

// Tab leads to all that a person may use, each once and in order, with a mark. Enter opens it.
async function pressed(tab) {
  const found = [], count = await tab.evaluate(() => [...document.querySelectorAll(
    'a, summary, .scroll')].filter(node => node.checkVisibility()).map((node, at) => {
    node.dataset.at = at;
  }).length);
  const hasOpened = [];
  for (let at = 0; at < count; ++at) {
    await tab.keyboard.press('Tab');
    const [got, is, marked] = await tab.evaluate(() => {
      const node = document.activeElement, style = getComputedStyle(node);
      return [node.dataset.at, node.tagName,
        style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0];
    });
    if (Number(got) !== at) return [...found, `Tab number ${at} leads to ${is} number ${got}`];
    if (!marked) found.push(`${is} number ${at} has no mark when it is focused`);
    if (is === 'SECTION' || is === 'DIV' || hasOpened.includes(is)) continue;
    hasOpened.push(is);
    await tab.keyboard.press('Enter');
    if (!await tab.evaluate(at => {  // A link has lost the focus.
      const node = document.querySelector(`[data-at="${at}"]`);
      const aim = node.hash && document.querySelector(node.hash);
      return node.tagName === 'SUMMARY' ? node.parentElement.open :
        aim && location.hash === node.hash && aim.getBoundingClientRect().top < innerHeight;
    }, at)) found.push(`Enter opens nothing at ${is} number ${at}`);
    if (is === 'SUMMARY') await tab.keyboard.press('Space');
    else await tab.focus(`[data-at="${at}"]`);
  }
  return found;
}
for (const width of [400, 1000, 1600]) for (const scheme of ['light', 'dark']) {
  const where = `${width} px, ${scheme}`, tab = await browser.newPage();
  tab.on('pageerror', error => wrong.push(`${where}: ${error}`));
  tab.on('console', said => said.type() === 'error' && wrong.push(`${where}: ${said.text()}`));
  tab.on('request', request => request.url().startsWith('file:') ||
    request.url().startsWith('data:') || wrong.push(`${where}: asks for ${request.url()}`));
  await tab.setViewport({width, height: 900});
  await tab.setBypassCSP(true);  // For axe, which is not of the page.
  await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
  await tab.goto(`file://${page}`);
  await new Promise(done => setTimeout(done, 500));
  if (folder) await tab.screenshot({path: `${folder}/${width}-${scheme}.png`, fullPage: true});
  wrong.push(...(await tab.evaluate(() => {
    const found = [], root = document.documentElement;
    if (root.scrollWidth > root.clientWidth)
      found.push(`the page is ${root.scrollWidth - root.clientWidth} px too wide`);
    const scrolls = node => node && (node.matches('.scroll, nav ul') || scrolls(node.parentElement));
    for (const node of document.querySelectorAll('header *, main *, nav *')) {
      const box = node.getBoundingClientRect();
      if (box.width && !scrolls(node) && box.right > root.clientWidth + 1)
        found.push(`${node.tagName} ${node.className} ends at ${box.right}`);
    }
    const cards = [...document.querySelectorAll('.card')].map(node => node.getBoundingClientRect());
    cards.forEach((a, at) => cards.slice(at + 1).forEach(b => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        found.push(`cards overlap at ${b.top}`);
    }));
    const plots = [...document.querySelectorAll('.plot')];
    if (!plots.length || plots.some(plot => !plot.querySelector('canvas')))
      found.push('a chart is not drawn');
    return found;
  })).map(one => `${where}: ${one}`));
  await tab.addScriptTag({content: fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')});
  for (const one of (await tab.evaluate(() => axe.run())).violations)
    wrong.push(`${where}: ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map(node => node.html)}`);
  wrong.push(...(await pressed(tab)).map(one => `${where}: ${one}`));
  await tab.close();
}
await browser.close();
console.log(wrong.join('\n'));
